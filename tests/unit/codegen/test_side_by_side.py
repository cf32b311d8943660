"""Kernels side by side in one launch, as they are printed."""

from __future__ import annotations

from fusionq.codegen.group_parts import ItemsOfParts, branches, first_group
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Const,
    For,
    ItemQuery,
    Kernel,
    Load,
    Param,
    ScalarParam,
    Store,
    Var,
)
from fusionq.ir.side_by_side import put_side_by_side
from fusionq.ir.types import FLOAT32, INT64
from fusionq.ir.verifier import verify
from tests.unit.targets import TWO_CORES

ID, SIZE = ItemQuery("global_id", 0), ItemQuery("local_range", 0)
ONE, FOUR = Const(INT64, 1), Const(INT64, 4)


def summed(array: str, variable: str) -> tuple[Assign | For | Store, ...]:
    """``variable`` is the sum of the array's first four elements, which the work-item stores."""
    k = Var(INT64, "k")
    total = Var(FLOAT32, variable)
    added = Assign(variable, Binary(FLOAT32, "add", total, Load(FLOAT32, array, (k,))))
    return (
        Assign(variable, Const(FLOAT32, 0.0)),
        For("k", Const(INT64, 0), FOUR, ONE, (added,)),
        Store(array, (ID,), total),
    )


def of_three() -> Kernel:
    bodies = (summed("a", "s"), summed("b", "s"), summed("c", "t"))
    groups = [Param(INT64, name) for name in ("m", "n", "m")]
    first = [Var(INT64, "first_1"), Var(INT64, "first_2")]
    body = put_side_by_side(bodies, groups, SIZE, first)
    arrays = tuple(ArrayParam(name, FLOAT32, 1, restrict=True) for name in "abc")
    scalars = (ScalarParam("m", INT64), ScalarParam("n", INT64))
    variables = (("first_1", INT64), ("first_2", INT64), ("s", FLOAT32), ("t", FLOAT32))
    kernel = Kernel("three", 1, (*arrays, *scalars), variables, body)
    verify(kernel)
    return kernel


def test_each_work_group_runs_one_of_them() -> None:
    text = generate(of_three(), "strict", TWO_CORES, OPENCL_C).text
    lines = [line.strip() for line in text.splitlines()]
    chosen = [line for line in lines if "fq_first_group =" in line]
    assert chosen == [
        "const long fq_first_group = get_group_id(0) < first_1 ? 0 : "
        "get_group_id(0) < first_2 ? first_1 : first_2;"
    ]
    begun = [line for line in lines if line.startswith(("if (get_group_id", "} else"))]
    assert begun == [
        "if (get_group_id(0) < first_1) {",
        "} else if (get_group_id(0) < first_2) {",
        "} else {",
    ]
    own = "get_global_id(0) - fq_first_group * get_local_size(0)"
    assert own in text, "ids are those of the kernel"
    first, _, last = lines.index(begun[0]), lines.index(begun[1]), lines.index(begun[2])
    assert any("a[" in line for line in lines[first:last])
    assert not any("c[" in line for line in lines[first:last])
    assert any("c[" in line for line in lines[last:])


def test_what_their_loops_keep_has_names_of_its_own() -> None:
    """Each kernel may be printed by another rewriting, whose variables are not the others'."""
    text = generate(of_three(), "strict", TWO_CORES, OPENCL_C).text
    assert text.count("fq_first_group =") == 1
    for number in range(3):
        assert text.count(f"{'abc'[number]}[") >= 2, "each is read and written"


def test_ids_of_one_of_several_kernels() -> None:
    items = ItemsOfParts(OPENCL_C.items)
    number = OPENCL_C.items.query("group_id", 0, 2)
    assert items.query("group_id", 0, 2) == f"({number} - fq_first_group)"
    whole, size = (OPENCL_C.items.query(q, 0, 2) for q in ("global_id", "local_range"))
    assert items.query("global_id", 0, 2) == f"({whole} - fq_first_group * {size})"
    for query, dim in (("global_id", 1), ("group_id", 1), ("local_id", 0)):
        assert items.query(query, dim, 2) == OPENCL_C.items.query(query, dim, 2)
    assert items.device_function("clock") == OPENCL_C.items.device_function("clock")


def test_first_work_groups_and_branches() -> None:
    assert first_group(["p"], "g", "long") == "const long fq_first_group = g < p ? 0 : p;"
    assert branches(["p", "q"], "g", [["one;"], ["two;", ""], ["three;"]]) == [
        "if (g < p) {", "    one;", "} else if (g < q) {", "    two;", "", "} else {",
        "    three;", "}",
    ]  # fmt: skip
