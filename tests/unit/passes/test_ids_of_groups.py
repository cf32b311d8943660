"""Ids of work-groups in terms of global ids."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.ir.nodes import ItemQuery
from fusionq.ir.printer import print_kernel
from fusionq.ir.walk import expressions
from fusionq.passes.ids_of_groups import in_global_ids
from tests.unit.megakernel.cases import reverse
from tests.unit.megakernel.plans import persistent

SHAPE, LOCAL = (4, 24), (2, 8)


@fq.kernel
def of_groups(item: fq.NdItem, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_global_id(0), item.get_global_id(1)
    g, h = item.get_group().get_group_id(0), item.get_group().get_group_id(1)
    k, m = item.get_local_id(0), item.get_local_id(1)
    b[i, j] = a[g, h] + a[k, m] * item.get_local_range(1) + item.get_group().get_group_range(1)


@fq.kernel
def sums(item: fq.NdItem, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_global_id(0)
    b[i] = fq.reduce_over_group(item.get_group(), a[i], "add") + item.get_local_id(0)


def test_quotients_and_remainders() -> None:
    a, b = np.zeros(SHAPE, np.int64), np.zeros(SHAPE, np.int64)
    range_ = fq.NdRange(SHAPE, LOCAL)
    code = persistent((of_groups, range_, a, b), (of_groups, range_, b, a)).body.codes[0]
    assert code.local_range is None
    text = print_kernel(code.kernel)
    for part in ("get_id(0) // 2", "get_id(1) // 8", "get_id(0) % 2", "get_id(1) % 8"):
        assert part in text
    queries = {e.query for e in expressions(code.kernel.body) if isinstance(e, ItemQuery)}
    assert queries == {"global_id"}


def test_without_work_groups_nothing_changes() -> None:
    a, b = np.zeros(24, np.int64), np.zeros(24, np.int64)
    code = persistent((reverse, 24, a, b), (reverse, 24, b, a)).body.codes[0]
    assert in_global_ids(code.kernel.body, (8,)) == code.kernel.body


def test_work_group_functions_keep_theirs() -> None:
    a, b = np.zeros(24, np.int64), np.zeros(24, np.int64)
    code = persistent((sums, fq.NdRange(24, 8), a, b), (reverse, 24, b, a)).body.codes[0]
    assert code.local_range == (8,)
