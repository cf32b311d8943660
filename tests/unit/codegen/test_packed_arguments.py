"""Kernels that take their arguments as one structure."""

from __future__ import annotations

import pytest

from fusionq.codegen.joined_source import joined
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C, OPENCL_C_OF_MANY_ARGUMENTS
from fusionq.ir.nodes import ArrayParam, Const, ItemQuery, Kernel, Param, ScalarParam, Store
from fusionq.ir.types import FLOAT32, INT8, INT64
from tests.unit.codegen.built_kernels import elementwise, fused_example, mul
from tests.unit.targets import TWO_CORES

PARAMS = ScalarParam("x", FLOAT32), ScalarParam("y", INT8)


def scaled() -> Kernel:
    return elementwise("scaled", {}, FLOAT32, mul(Param(FLOAT32, "x"), Const(FLOAT32, 2.0)), PARAMS)


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_members_are_the_arguments_in_order():
    source = generate(scaled(), "strict", TWO_CORES, OPENCL_C)
    members = source.text.partition("typedef struct {")[2].partition("}")[0]
    apart = generate(scaled(), "strict", TWO_CORES, OPENCL_C_OF_MANY_ARGUMENTS)
    given = apart.text.partition(" scaled(")[2].partition(")")[0]
    assert [m.strip() for m in members.split(";")] == [*map(str.strip, given.split(",")), ""]
    assert source.slots == apart.slots and source.is_packed and not apart.is_packed
    assert " scaled( const fq_arguments fq_passed ) {" in in_one_line(source.text)


def test_the_body_is_the_same():
    """Members are constants of the names that arguments have."""
    packed = generate(fused_example(), "strict", TWO_CORES, OPENCL_C).text
    apart = generate(fused_example(), "strict", TWO_CORES, OPENCL_C_OF_MANY_ARGUMENTS).text
    body = apart.partition("\n) {\n")[2]
    declared = packed.partition("\n) {\n")[2].removesuffix(body)
    assert body and packed.endswith(body)
    assert all(" = fq_passed." in line for line in declared.splitlines())


def test_one_argument_is_no_structure():
    body = (Store("a", (Const(INT64, 0),), Const(FLOAT32, 2.0)),)
    kernel = Kernel("one", 1, (ArrayParam("a", FLOAT32, 1),), (), body)
    source = generate(kernel, "strict", TWO_CORES, OPENCL_C)
    assert len(source.slots) == 1 and "struct" not in source.text and not source.is_packed


@pytest.mark.parametrize(("streamed", "is_packed"), [(0, True), (1, True), (2, False), (3, False)])
def test_several_non_temporal_stores_have_arguments_of_their_own(
    streamed: int, is_packed: bool
) -> None:
    """Members are loaded again behind each store, and then no branch is the same for all."""
    arrays = [ArrayParam(f"a{k}", FLOAT32, 1, contiguous=True, restrict=True) for k in range(3)]
    place = (ItemQuery("global_id", 0),)
    body = tuple(
        Store(a.name, place, Const(FLOAT32, 2.0), nontemporal=k < streamed)
        for k, a in enumerate(arrays)
    )
    source = generate(Kernel("stores", 1, (*arrays,), (), body), "strict", TWO_CORES, OPENCL_C)
    assert source.is_packed == is_packed == ("fq_passed" in source.text)
    given = source.text.partition(" stores(")[2].partition(")")[0]
    assert ("ulong a1_address" in given) != is_packed


def test_kernels_of_one_unit_have_structures_of_their_own():
    sources = [generate(kernel, "strict", TWO_CORES, OPENCL_C) for kernel in (scaled(), scaled())]
    text, names = joined(sources)
    for number, name in enumerate(names):
        assert f"}} fq_arguments_{number};" in text
        given = f"const fq_arguments_{number} fq_passed_{number}"
        assert f" {name}( {given} ) {{" in in_one_line(text)
