"""Which work-items a lane does at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.interior import parted
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.unroll_and_jam import jammed
from fusionq.ir.nodes import Binary, Const, Expr, For, ItemQuery, Kernel, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body
from tests.unit.codegen.host_dialect import HOST
from tests.unit.codegen.test_host_workers import TARGET
from tests.unit.megakernel.cases import blur, reverse, stencil_2d
from tests.unit.megakernel.plans import persistent

N = 24


@fq.kernel
def stores_two(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    value = a[a.shape[0] - 1 - i]
    b[i] = value + 1
    c[i] = value * 2


@fq.kernel
def loads_what_it_stored(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i]
    c[i] = b[i] + 1


@fq.kernel
def chooses_where(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    place = a[i] % b.shape[0]
    b[(i + place) % b.shape[0]] = c[i]


@fq.kernel
def sums(item: fq.Item, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    total = np.int64(0)
    for k in range(3):
        total += a[(i + k) % a.shape[0]]
    b[i] = total


@fq.kernel
def by_groups(item: fq.NdItem, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_global_id(0)
    b[i] = a[item.get_group().get_group_id(0)] + c[item.get_local_id(0)]


def array(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


def code_of(kernel: Any, *arrays: Any) -> tuple[Kernel, Any]:
    """The first stage's kernel, and what it does inside of rows."""
    calls = [(kernel, N, *arrays), (reverse, N, arrays[1], array(N))]
    code = persistent(*calls).body.codes[0]
    body, inner = parted(code)
    return code.kernel, body if inner is None else inner.body


@pytest.mark.parametrize(
    ("kernel", "arrays", "items", "stores"),
    [(blur, 2, 4, 1), (stores_two, 3, 4, 2)],
)
def test_all_load_before_any_stores(kernel: Any, arrays: int, items: int, stores: int) -> None:
    code, body = code_of(kernel, *(array(N) for _ in range(arrays)))
    found = jammed(code, body, 4, 256)
    assert found is not None and found.items == items
    assert [a.shape for a in found.arrays] == [(items,)] * stores
    assert all(isinstance(stmt, For) for stmt in found.body) and len(found.body) == 2
    assert jammed(code, body, 1, 256) is None


@pytest.mark.parametrize("kernel", [loads_what_it_stored, chooses_where, sums])
def test_where_that_might_change_what_is_loaded_or_is_no_straight_line(kernel: Any) -> None:
    assert jammed(*code_of(kernel, array(N), array(N), array(N)), 4, 256) is None


def test_many_loads_are_of_fewer_work_items() -> None:
    kernel = persistent(*stencil_2d(N)).body.codes[0]
    _, inner = parted(kernel)
    assert inner is not None
    found = jammed(kernel.kernel, inner.body, 4, 256)
    assert found is not None and found.items == 2


def test_the_hosts_lanes_do_several_at_once() -> None:
    """What these kernels compute is compared where they run (``test_host_workers``)."""
    text = generate(persistent(*stencil_2d(N)).stage.kernel, "strict", TARGET, HOST).text
    assert "kept_0[2]" in text


def test_other_ids_move_with_the_work_item() -> None:
    """Those of work-groups are said in global ids before; without that they are not known."""
    arrays = [array(N) for _ in range(3)]
    calls = [(by_groups, fq.NdRange(N, 4), *arrays), (reverse, N, arrays[1], array(N))]
    code = persistent(*calls).body.codes[0]
    assert code.local_range is None
    found = jammed(code.kernel, parted(code)[0], 4, 256)
    assert found is not None
    ids = [e for e in expressions(found.body) if isinstance(e, ItemQuery)]
    assert ids and all(e.query == "global_id" for e in ids)
    first = found.body[0]
    assert isinstance(first, For)
    own = ItemQuery("global_id", 0)
    moved = Binary(INT64, "add", own, Binary(INT64, "mul", Var(INT64, "turn_0"), Const(INT64, 256)))
    inside = list(expressions(first.body))
    for op in ("floordiv", "mod"):
        assert Binary(INT64, op, moved, Const(INT64, 4)) in inside  # type: ignore[arg-type]

    def group(e: Expr) -> Expr:
        quotient = Binary(INT64, "floordiv", own, Const(INT64, 4))
        return ItemQuery("group_id", 0) if e == quotient else e

    assert jammed(code.kernel, rewrite_body(parted(code)[0], group), 4, 256) is None
