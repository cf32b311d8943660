"""Which work-item writes an element, as expressions of its kernel."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.recomputation import writer_of
from fusionq.ir.printer import print_expr
from fusionq.passes.inline_producer import index_of
from fusionq.planning.writing_items import writing_items
from tests.unit.lists import submissions


@fq.kernel
def turned(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j]


@fq.kernel
def mirrored(item: fq.Item, a, out, by):
    i = item.get_id(0)
    out[out.shape[0] - 1 - i + by] = a[i]


def items_of(kernel, space, *arguments) -> list[str]:
    """The ids of the work-item that writes an element of the second argument."""
    calls = submissions((kernel, space, *arguments))
    writer = writer_of(analyse(calls), 1)
    assert not isinstance(writer, str)
    return [print_expr(item) for item in writing_items(calls[0], writer)]


def test_axes_in_another_order() -> None:
    plane, out = np.zeros((4, 5), np.float32), np.zeros((5, 4), np.float32)
    first, second = items_of(turned, (4, 5), plane, out)
    own = [print_expr(index_of(d)) for d in (0, 1)]
    assert [first, second] == [own[1], own[0]]


def test_sizes_and_scalars_are_the_kernels() -> None:
    """An integer of another type than int64 is one before it is computed with."""
    a, out = np.zeros(6, np.float32), np.zeros(8, np.float32)
    for by, said in ((np.int64(2), "by"), (np.int32(2), "int64(by)")):
        (item,) = items_of(mirrored, 6, a, out, by)
        assert said in item and "out.shape[0]" in item and print_expr(index_of(0)) in item
        assert ("int64(by)" in item) == (said != "by")
