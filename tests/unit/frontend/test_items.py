"""Item, NdItem and Group, in kernels and as plain Python."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import Binary, Compare, Const, ItemQuery, Logical, Store
from fusionq.ir.types import INT64
from fusionq.language import Item, NdItem, NdRange
from tests.unit.frontend.running import define, items, run_both, specialised

RANGES = [(6,), (3, 4), (2, 3, 2)]
ND_RANGES = [
    NdRange((6,), (3,)), NdRange((4, 6), (2, 3)), NdRange((2, 4, 6), (1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("extents", RANGES)
def test_item(extents):
    dims = range(len(extents))
    queries = [f"item.get_{what}({d})" for d in dims for what in ("id", "range")]
    queries += ["item.get_linear_id()", "item.get_linear_range()", "item.dimensions"]
    body = "".join(f"    out[i, {n}] = {q}\n" for n, q in enumerate(queries))
    function = define(f"def k(item, out):\n    i = item.get_linear_id()\n{body}")
    size = int(np.prod(extents))
    (out,) = run_both(function, extents, np.zeros((size, len(queries)), "int64"))
    assert out[-1].tolist() == [
        *(v for n in extents for v in (n - 1, n)), size - 1, size, len(extents),
    ]  # fmt: skip


@pytest.mark.parametrize("nd_range", ND_RANGES)
def test_nd_item_and_group(nd_range):
    per_dimension = [
        "item.get_global_id", "item.get_local_id", "item.get_global_range", "item.get_local_range",
        "group.get_group_id", "group.get_group_range", "group.get_local_range",
    ]  # fmt: skip
    queries = [f"{q}({d})" for d in range(nd_range.ndim) for q in per_dimension] + [
        "item.get_global_linear_id()", "item.get_local_linear_id()",
        "item.get_global_linear_range()", "item.get_local_linear_range()",
        "group.get_group_linear_id()", "group.get_group_linear_range()",
        "group.get_local_linear_range()", "group.leader", "group.dimensions", "item.dimensions",
    ]  # fmt: skip
    body = "".join(f"    out[i, {n}] = {q}\n" for n, q in enumerate(queries))
    function = define(
        "def k(item, out):\n    i = item.get_global_linear_id()\n"
        f"    group = item.get_group()\n{body}"
    )
    (out,) = run_both(function, nd_range, np.zeros((nd_range.size, len(queries)), "int64"))
    leaders = out[:, queries.index("group.leader")]
    assert leaders.sum() == nd_range.size / np.prod(nd_range.local_range)


def test_ids_may_leave_out_the_only_dimension():
    function = define("def k(item, a):\n    a[item.get_id()] = item.get_range()\n")
    assert specialised(function, 3, np.zeros(3)).body[0].indices == (ItemQuery("global_id", 0),)
    with pytest.raises(KernelLanguageError, match=r"get_range takes one dimension"):
        specialised(function, (3, 3), np.zeros(3))


def test_linear_ids_are_arithmetic():
    function = define("def k(item, a):\n    a[item.get_linear_id()] = 1\n")
    store = specialised(function, (2, 3, 4), np.zeros(24)).body[0]
    ids = [ItemQuery("global_id", d) for d in range(3)]
    extents = [ItemQuery("global_range", d) for d in range(3)]
    row = Binary(INT64, "add", Binary(INT64, "mul", ids[0], extents[1]), ids[1])
    assert isinstance(store, Store)
    assert store.indices == (Binary(INT64, "add", Binary(INT64, "mul", row, extents[2]), ids[2]),)


def test_the_leader_has_local_id_zero():
    function = define("def k(item, a):\n    if item.get_group().leader:\n        a[0] = 1\n")
    cond = specialised(function, NdRange((4, 4), (2, 2)), np.zeros(1)).body[0].cond
    zeros = [Compare("eq", ItemQuery("local_id", d), Const(INT64, 0)) for d in range(2)]
    assert cond == Logical("and", *zeros)


def test_a_group_is_the_nd_items():
    function = define("def k(item, a):\n    a[0] = item.get_group().get_group_id(0)\n")
    with pytest.raises(KernelLanguageError, match="the Item has no 'get_group'"):
        specialised(function, 4, np.zeros(1))


def test_plain_items_give_int64():
    item = Item((1, 2), (3, 4))
    for value in (item.get_id(0), item.get_range(1), item.get_linear_id(), item.get_linear_range()):
        assert type(value) is np.int64
    assert (item.get_linear_id(), item.get_linear_range(), item.dimensions) == (6, 12, 2)
    nd_item = NdItem((3, 5), (1, 2), (1, 1), (4, 6), (2, 3))
    assert type(nd_item.get_group().get_group_range(0)) is np.int64
    assert type(nd_item.get_group().leader) is np.bool_


@pytest.mark.parametrize("dim", [2, -1])
def test_plain_items_check_the_dimension(dim):
    with pytest.raises(IndexError, match="2 dimension"):
        Item((1, 2), (3, 4)).get_id(dim)
    with pytest.raises(TypeError, match="needs a dimension"):
        Item((1, 2), (3, 4)).get_id()


def test_plain_nd_items_cover_the_range_once():
    ids = [int(i.get_global_linear_id()) for i in items(NdRange((4, 6), (2, 3)))]
    assert sorted(ids) == list(range(24))


@pytest.mark.parametrize(
    "parameters, taken",
    [("item", True), ("it: fq.Item", True), ("it", False), ("a", False),
     ("a: np.ndarray", False)],
)
def test_an_id_by_index_needs_to_be_told_from_an_argument(parameters, taken):
    """``a[0]`` may be meant for an array of which no argument was given."""
    first = parameters.partition(":")[0]
    function = define(f"def k({parameters}, out):\n    out[0] = {first}[0]\n", fq=fq)
    if taken:
        run_both(function, 1, np.ones(1))
        return
    with pytest.raises(KernelLanguageError, match="the Item cannot be indexed"):
        specialised(function, 1, np.ones(1))


def test_every_argument_is_given_where_the_first_parameter_is_called_item():
    kernel = fq.kernel(define("def k(item, out):\n    out[0] = item[0]\n"))
    with pytest.raises(fq.ArgumentError, match=r"takes 1 arguments after its item \(out\), not 2"):
        fq.FusionQueue("reference").submit(kernel, 1, np.ones(1), np.ones(1))
