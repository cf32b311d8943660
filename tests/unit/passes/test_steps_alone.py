"""Steps between barriers that few of a work-group do: by its first work-item."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.nodes import Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.steps_alone import with_steps_alone
from tests.unit.frontend.running import define, specialised
from tests.unit.targets import device

CPU = device(kind="cpu")
SPACE = fq.NdRange(64, 32)
X = np.zeros(64, np.float32)


def lowered(*lines: str) -> Kernel:
    """A kernel of work-groups of 32 with ``lines`` between two barriers."""
    text = (
        "def steps(item, x, s, n, out):\n"
        "    l, g = item.get_local_id(0), item.get_global_id(0)\n"
        "    v = x[g]\n"
        "    s[l] = v\n"
        "    fq.group_barrier(item.get_group())\n"
        + "".join(f"    {line}\n" for line in lines)
        + "    fq.group_barrier(item.get_group())\n"
        "    out[g] = s[0]\n"
    )
    tile = fq.LocalAccessor(32, np.float32)
    return specialised(define(text, fq=fq, np=np), SPACE, X, tile, 5, X)


def alone(kernel: Kernel) -> Kernel:
    made = with_steps_alone(kernel, (32,), CPU)
    verify(made)
    return made


def test_what_it_becomes() -> None:
    kernel = lowered(
        "d = 16",
        "while d > 0:",
        "    if l < d:",
        "        s[l] += s[l + d]",
        "    fq.group_barrier(item.get_group())",
        "    d //= 2",
    )
    text = print_kernel(alone(kernel))
    assert """\
    while d > 0:
        if item.get_local_id(0) == 0:
            for place in range(np.minimum(d, 32)):
                s[place] = s[place] + s[place + d]
        group_barrier(item.get_group())
""" in text, text


@pytest.mark.parametrize(
    "lines",
    (
        ("if l < n: s[l] += s[l + 16]",),
        ("if n > l: s[l] = max(s[l], s[l + 16])",),
        ("if l < 8: s[l] += s[l + 8]",),
        ("if l < 5 and s[l + 5] > s[l]: s[l] = s[l + 5]",),
        ("if l < n:", "    a, b = s[l], s[l + 16]", "    if a < b: s[l] = b"),
        ("d = n // 2", "if l < d: s[l] += s[l + d]"),
    ),
)
def test_steps(lines: tuple[str, ...]) -> None:
    kernel = lowered(*lines)
    assert alone(kernel) != kernel


@pytest.mark.parametrize(
    "lines",
    (
        ("if l < 16: s[l] += s[l + 16]",),  # whole vectors
        ("if l < n: s[l] += v",),  # of the work-item alone
        ("if l < n: s[l] += x[l]",),  # not local
        ("if l < n: out[l] = s[l]",),
        ("if l < n: s[l] = np.exp(s[l])",),
        ("if l < v: s[l] += s[l + 16]",),  # not the same for all
        ("if l >= n: s[l] += s[l - 1]",),
        ("if l < n: s[l] += s[l + 1]", "else: s[l] = 0"),
        ("s[l] *= 2", "if l < n: s[l] += s[l + 16]"),  # each its own before
        ("if l < n: s[l] += s[l + 16]", "s[l] *= 2"),  # and behind
        ("w = s[l]", "if l < n: s[l] += s[l + 16]", "fq.group_barrier(item.get_group())",
         "s[l] = w"),
        ("w = s[0]", "if l < n:", "    w = s[l]", "    s[l] = w * 2",
         "fq.group_barrier(item.get_group())", "s[l] = w"),  # read behind the step
        ("for k in range(3):", "    if l < n: s[l] += s[l + 16]"),
        ("for k in range(3):", "    if l < n: s[l] += s[l + 16]",
         "    fq.group_barrier(item.get_group())", "    s[l] += 1"),
    ),
)  # fmt: skip
def test_others_stay(lines: tuple[str, ...]) -> None:
    kernel = lowered(*lines)
    assert with_steps_alone(kernel, (32,), CPU) == kernel


def test_threads_and_plain_ranges_stay() -> None:
    kernel = lowered("if l < n: s[l] += s[l + 16]")
    assert with_steps_alone(kernel, (32,), replace(CPU, kind="gpu")) == kernel
    assert with_steps_alone(kernel, None, CPU) == kernel
