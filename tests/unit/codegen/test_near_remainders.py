"""Remainders of sums, which are compared with their divisor on GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import target_of
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.kernel_source import generate
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import device

TARGET = target_of(replace(device(), narrow_indices=True))
NEAR = "fq_near_mod_"
A = np.zeros((6, 8), np.int64)


def text_of(*call: object) -> str:
    """What the kernel does, in CUDA C++."""
    (stage,) = make_plan(submissions(call), FusionOptions(), TARGET).stages
    return generate(stage.kernel, "strict", TARGET, CUDA_CPP).text.partition("__global__")[2]


@fq.kernel
def neighbour(item: fq.Item, a: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    w = item.get_range(1)
    out[i, j] = a[i, (j + w - 1) % w]


def test_multiples_of_the_divisor_are_left_out() -> None:
    """So that the sum has 32 bits, as its terms have."""
    text = text_of(neighbour, (6, 8), A, A.copy())
    (call,) = [line for line in text.splitlines() if NEAR in line]
    _, _, arguments = call.partition(f"{NEAR}i32(")
    assert arguments.partition(")]")[0].endswith(" - 1, w")


@fq.kernel
def of_values(item: fq.Item, x: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = (x[i] + n - 1) % n


def test_a_sum_that_may_wrap_is_kept() -> None:
    text = text_of(of_values, 8, A[0], np.int64(7), A[1].copy())
    assert f"{NEAR}i64((long long)((unsigned long long)x[" in text
    assert "(int)n - 1), " in text


@fq.kernel
def rows(item: fq.Item, a: Any, w: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[0, (i * w + j) % w] + a[0, i % w] + a[0, (i + 1) % 8]


def test_others_are_divided() -> None:
    """Products, ids by themselves, and by constants."""
    assert NEAR not in text_of(rows, (6, 8), A, np.int64(8), A.copy())
