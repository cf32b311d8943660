"""Work-groups with work-items that do nothing but take part in barriers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.options import FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.codegen.padded_rows import (
    padded_rows,
    with_padded_rows,
    with_padding_if_legal,
)
from fusionq.ir.nodes import Break, If, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import make_plan
from tests.unit.frontend.running import binding, define, specialised
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

ITEMS = 10
SPACE = fq.NdRange(3 * ITEMS, ITEMS)
X = np.arange(3 * ITEMS, dtype=np.float32)
BARRIER = "fq.group_barrier(item.get_group())"


def lowered(*lines: str, space: fq.NdRange = SPACE, x: np.ndarray = X) -> Kernel:
    """A kernel of ``lines``, with a barrier behind its first statement."""
    text = (
        "def padded(item, x, s, n, out):\n"
        "    l, g = item.get_local_id(0), item.get_global_id(0)\n"
        "    s[l] = x[g] if x.ndim == 1 else x[g, 0]\n"
        f"    {BARRIER}\n" + "".join(f"    {line}\n" for line in lines)
    )
    tile = fq.LocalAccessor(64, np.float32)
    return specialised(define(text, fq=fq, np=np), space, x, tile, 5, x)


def padded(kernel: Kernel, items: int = ITEMS) -> Kernel:
    made = padded_rows(kernel, items)
    assert made is not None
    verify(made)
    return made


def test_what_it_becomes() -> None:
    text = print_kernel(padded(lowered("out[g] = s[9 - l]")))
    assert """\
    if item.get_local_id(0) < 10:
        l = item.get_local_id(0)
        g = item.get_group().get_group_id(0) * 10 + item.get_local_id(0)
""" in text  # fmt: skip
    assert """\
    group_barrier(item.get_group())
    if item.get_local_id(0) < 10:
        out[g] = s[9 - l]
""" in text  # fmt: skip


def test_what_decides_about_barriers_is_found_out_by_all() -> None:
    lines = (
        "d = n - 1",
        "own = d + 1",
        "while d > 0:",
        "    if l < d:",
        "        s[l] = s[l] + s[l + d] * own",
        f"    {BARRIER}",
        "    d //= 2",
        "out[g] = s[0]",
    )
    text = print_kernel(padded(lowered(*lines)))
    assert """\
        own = d + 1
    while d > 0:
        if item.get_local_id(0) < 10:
            if l < d:
""" in text  # fmt: skip
    assert """\
        group_barrier(item.get_group())
        d = d // 2
""" in text  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        ("for k in range(l):", f"    {BARRIER}"),
        ("for k in range(np.int64(x[0])):", f"    {BARRIER}"),
        ("if s[0] > 1:", f"    {BARRIER}"),
        ("d = np.int64(x[0])", "while d > 0:", f"    {BARRIER}", "    d //= 2"),
        ("d = 1", "if l > 3:", "    d = 2", "for k in range(d):", f"    {BARRIER}"),
        ("for k in range(n):", "    if k == 2:", "        break", f"    {BARRIER}"),
        ("for k in range(n):", "    if k == 2:", "        continue", f"    {BARRIER}"),
        ("d = 1", "while d < n:", "    out[d] = 1", "    d += 1", "if d > 2:", f"    {BARRIER}"),
        ("out[g] = fq.reduce_over_group(item.get_group(), s[l], 'add')",),  # of floats
        ("if fq.any_of_group(item.get_group(), s[l] > 1):", f"    {BARRIER}"),
    ],
)
def test_barriers_that_padding_may_not_reach(lines: tuple[str, ...]) -> None:
    assert padded_rows(lowered(*lines), ITEMS) is None


@pytest.mark.parametrize(
    "call, expected",
    [
        ("fq.any_of_group(item.get_group(), s[l] > 1)", "s[l] > 1.0"),
        ("fq.reduce_over_group(item.get_group(), n + l, 'max')", "n + l"),
        ("fq.inclusive_scan_over_group(item.get_group(), l, 'add')", "l"),
    ],
)
def test_padding_gives_what_changes_nothing_to_functions(call: str, expected: str) -> None:
    text = print_kernel(padded(lowered(f"x = {call}", "out[g] = np.float32(x)")))
    assert f"{expected} if item.get_local_id(0) < 10 else" in text, text


def test_broadcasts_of_lines() -> None:
    kernel = lowered("k = n - 2", "out[g] = fq.group_broadcast(item.get_group(), s[l], k)")
    text = print_kernel(padded(kernel))
    assert "    k = n - 2\n" in text and "        k = n - 2" not in text  # by padding, too
    assert (
        padded_rows(lowered("out[g] = fq.group_broadcast(item.get_group(), s[l], l)"), 10) is None
    )


def test_sub_groups_would_see_padding() -> None:
    kernel = lowered("out[g] = s[l]")
    assert padded_rows(replace(kernel, sub_group_size=8), ITEMS) is None
    assert padded_rows(kernel, ITEMS) is not None


def test_a_mark_goes_where_padding_is_legal_no_longer() -> None:
    kernel = replace(lowered("for k in range(n):", f"    {BARRIER}"), padded_row=(10, 16))
    assert with_padding_if_legal(kernel) is kernel
    *before, loop = kernel.body
    ended = (*before, replace(loop, body=(If(loop.start == loop.stop, (Break(),)), *loop.body)))
    assert with_padding_if_legal(replace(kernel, body=ended)).padded_row is None
    assert with_padded_rows(replace(kernel, padded_row=None)).padded_row is None


TEXT = """
def places(item, x, out):
    y, x_, z = item.get_local_id(0), item.get_local_id(1), item.get_local_id(2)
    fq.group_barrier(item.get_group())
    i, j, k = item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)
    group = item.get_group()
    place = (y * 2 + x_) * item.get_local_range(2) + z
    out[i, j, k, 0] = place
    out[i, j, k, 1] = item.get_global_range(2) * 100 + item.get_global_range(1)
    out[i, j, k, 2] = group.get_group_id(2) * 100 + group.get_group_id(0)
    out[i, j, k, 3] = item.get_local_linear_id()
"""


@pytest.mark.parametrize("items, whole", [(1, 8), (5, 8), (7, 16), (9, 16)])
def test_ids_and_ranges_are_those_of_the_work_groups(items: int, whole: int) -> None:
    space = fq.NdRange((2, 4, 3 * items), (1, 2, items))
    found = []
    out = np.full((2, 4, 3 * items, 4), -1, np.int64)
    kernel = specialised(define(TEXT, fq=fq), space, out, out)
    backend = ReferenceBackend(order="natural")
    for made, size in ((kernel, items), (padded(kernel, items), whole)):
        result = out.copy()
        program = backend.build(made, "strict")
        shape = LaunchShape((2, 4, 3 * size), (1, 2, size))
        bound = [binding(result)] * sum(p.name in ("x", "out") for p in made.params)
        backend.prepare(program, bound, shape).launch(()).wait()
        found.append(result)
    np.testing.assert_array_equal(*found)
    assert found[0].min() >= 0


@fq.kernel
def reversed_in_groups(item: fq.NdItem, a, b, c):
    i, size = item.get_global_id(0), item.get_local_range(0)
    b[i] = a[i]
    fq.group_barrier(item.get_group())
    c[i] = b[i // size * size + size - 1 - item.get_local_id(0)]


@pytest.mark.parametrize(
    "lanes, size, launched",
    [(16, 250, 256), (16, 256, 256), (8, 8, 8), (16, 8, 16), (16, 7, 7), (0, 250, 250)],
)
def test_which_launches_have_padding(lanes: int, size: int, launched: int) -> None:
    target = replace(TWO_CORES, device=replace(TWO_CORES.device, group_lanes=lanes))
    a = np.zeros(3 * size, np.float32)
    listed = submissions((reversed_in_groups, fq.NdRange(3 * size, size), a, a.copy(), a.copy()))
    plan = make_plan(listed, FusionOptions(), target)
    (stage,) = plan.stages
    assert launch_shape_of(stage, listed, target) == LaunchShape((3 * launched,), (launched,))
    assert (stage.kernel.padded_row is not None) == (launched != size)


def test_a_work_group_is_never_larger_than_the_device_takes() -> None:
    info = replace(TWO_CORES.device, group_lanes=16, max_work_group_size=250)
    target = replace(TWO_CORES, device=info)
    a = np.zeros(500, np.float32)
    listed = submissions((reversed_in_groups, fq.NdRange(500, 250), a, a.copy(), a.copy()))
    (stage,) = make_plan(listed, FusionOptions(), target).stages
    assert stage.kernel.padded_row is None
