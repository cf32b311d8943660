"""Kernels with barriers as plain Python: the work-items of a group run together."""

import threading

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from tests.unit.groups.kernels import reverse_in_group, sum_by_tree, sum_in_one_group

SPACE = fq.NdRange(12, 4)


@pytest.mark.parametrize("order", ["natural", "reversed", "shuffled"])
def test_work_items_meet_in_every_order(order):
    x, out, total = np.arange(12.0), np.zeros(12), np.zeros(1)
    tile = fq.LocalAccessor(4, np.float64)
    run_function(reverse_in_group.function, SPACE, (x, tile, out), order)
    assert out.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]
    run_function(sum_by_tree.function, SPACE, (x, tile, total), order)
    assert total.tolist() == [66]
    run_function(sum_in_one_group.function, fq.NdRange(5, 5), (x, total), order)
    assert total.tolist() == [66]


def test_every_group_has_its_own_local_memory():
    def k(item, tile, out):
        i = item.get_global_id(0)
        out[i] = tile[0]
        fq.group_barrier(item.get_group())
        tile[0] = i

    out = np.zeros(12, "int64")
    run_function(k, SPACE, (fq.LocalAccessor(1, np.int64), out))
    assert (out == np.iinfo("int64").max).all()  # undefined: neither a 0 nor a group's before


def test_errors_end_the_group():
    def wrong_index(item, x):
        fq.group_barrier(item.get_group())
        x[item.get_global_id(0) + 9] = 1

    def missing(item, x):
        if item.get_local_id(0) > 0:
            fq.group_barrier(item.get_group())

    def mixed(item, x):
        if item.get_local_id(0) > 0:
            fq.group_barrier(item.get_group())
        else:
            fq.any_of_group(item.get_group(), True)

    def elsewhere(item, x):
        fq.group_broadcast(item.get_group(), x[0], 4)

    threads = threading.active_count()
    for function, error, message in (
        (wrong_index, IndexError, "outside the shape"),
        (missing, fq.DeviceError, "3 of the 4 work-items of a group wait at barrier"),
        (mixed, fq.DeviceError, "wait at any and barrier"),
        (elsewhere, IndexError, "linear local id 4 in a group of 4"),
    ):
        with pytest.raises(error, match=message):
            run_function(function, SPACE, (np.zeros(12),))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(1)
    assert threading.active_count() <= threads
