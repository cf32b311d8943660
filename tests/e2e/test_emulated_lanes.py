"""Kernels whose sub-groups the compiler emulates, since it does not vectorise them."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.sycl import program
from fusionq.backends.sycl.lanes import with_emulated_lanes


@fq.kernel
def sums_of_sub_groups(item, a, b):
    i = item.get_global_id(0)
    group = item.get_sub_group()
    b[i] = fq.reduce_over_group(group, a[i], "add")


def results(target, n):
    with fq.FusionQueue(target) as queue:
        a, b = fq.Buffer(np.arange(n, dtype=np.int64)), fq.Buffer(np.zeros(n, np.int64))
        queue.submit(sums_of_sub_groups, fq.NdRange(fq.Range(n), fq.Range(64)), a, b)
        return b.numpy().copy()


def test_they_compute_the_same(sycl_queue, every_program_compiled, monkeypatch):
    if sycl_queue.device.kind != "cpu":
        pytest.skip("sub-groups are emulated on CPUs")
    asked = []

    def lacks(device, text, entry_point, native, options):
        asked.append(with_emulated_lanes(text) is not None)
        return asked[-1]

    monkeypatch.setattr(program, "lacks_lanes", lacks)
    found = results(None, 4096)
    assert found.tobytes() == results("reference", 4096).tobytes()
    assert any(asked)
