"""Rows in registers between loops: which are kept, and the text of that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.options import FusionOptions
from fusionq.codegen.kept_loops import KeptLoops, kept_loops
from fusionq.codegen.kept_rows import with_kept_rows
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import For, If, Kernel, Load, Store
from fusionq.ir.walk import expressions, statements
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.conformance.test_kept_rows import in_place, maxima, run, scale, softmax, turned
from tests.unit.codegen.kept_rows_backend import keeping_queue
from tests.unit.cuda.compile_only import TARGET
from tests.unit.lists import submissions

GROUP = 32
SPACE = fq.NdRange((4, GROUP), (1, GROUP))
LONG = 32 * GROUP


@fq.kernel
def twice(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i, j] = a[i, j] + a[i, j]
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i, j] = b[i, j] * a[i, j]


@fq.kernel
def shared(item: fq.NdItem, a, b):
    """Several work-groups store to one element, the same values."""
    i = item.get_global_id(0)
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i // 2, j] = a[i // 2, j]
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i // 2, j] = b[i // 2, j] * a[i // 2, j]


@fq.kernel
def chosen(item: fq.NdItem, a, b):
    """Of which some elements are not there."""
    i = item.get_global_id(0)
    for j in range(item.get_local_id(1), b.shape[1], GROUP):
        b[i, j] = a[i, j] if j < a.shape[1] else b[i, j]
    for j in range(item.get_local_id(1), b.shape[1], GROUP):
        b[i, j] = b[i, j] + a[i, j] if j < a.shape[1] else b[i, j]


@fq.kernel
def backwards(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i, a.shape[1] - 1 - j] = a[i, j]
    for j in range(item.get_local_id(1), a.shape[1], GROUP):
        b[i, j] = b[i, j] + a[i, j]


def matrix(columns: int = LONG, dtype: type = np.float32) -> np.ndarray:
    return np.zeros((4, columns), dtype)


def plan_of(*commands: object, strategy: str = "fused") -> Plan:
    return make_plan(submissions(*commands), FusionOptions(strategy=strategy), TARGET)


def kernel_of(*commands: object) -> Kernel:
    (stage,) = plan_of(*commands).stages
    return stage.kernel


def loops_of(kernel: Kernel) -> KeptLoops | None:
    return kept_loops(kernel, flatten_blocks(kernel.body))


def kept_in(kernel: Kernel) -> dict[str, int]:
    """The arrays of which rows are kept, and how many loops touch each."""
    found = loops_of(kernel)
    return {} if found is None else {row.array: len(row.touching) for row in found.rows}


def test_what_is_kept() -> None:
    assert kept_in(kernel_of((twice, SPACE, matrix(), matrix()))) == {"a": 2, "b": 2}


def test_not_where_several_work_items_store_to_an_element() -> None:
    kernel = kernel_of((shared, SPACE, matrix(), matrix()))
    assert kept_in(kernel) == {"a": 2}
    assert not kernel.param("b").stored_by_one


def test_not_where_memory_is_shared() -> None:
    a = matrix()
    assert kept_in(kernel_of((twice, SPACE, a[:, 1:], a[:, :-1]))) == {}


def test_not_what_is_loaded_under_a_condition_first() -> None:
    """It may lie outside of the array."""
    assert kept_in(kernel_of((chosen, SPACE, matrix(LONG - 40), matrix()))) == {}


def test_not_what_is_stored_otherwise_too() -> None:
    assert kept_in(kernel_of((backwards, SPACE, matrix(), matrix()))) == {"a": 2}
    x = matrix()
    assert kept_in(kernel_of((in_place, SPACE, x, np.zeros(4, np.float32)))) == {}


def stores_to(kernel: Kernel, array: str) -> int:
    """In what runs where all of the first iterations are kept."""
    kept = with_kept_rows(kernel, flatten_blocks(kernel.body), loads_early=False)
    assert kept is not None
    full = [
        s for s in kept.body
        if isinstance(s, If) and any(isinstance(e, For) for e in s.then)
    ]  # fmt: skip
    return sum(isinstance(s, Store) and s.array == array for s in statements(full))


def test_what_is_stored_again_is_stored_once() -> None:
    kernel = replace(kernel_of((twice, SPACE, matrix(), matrix())), kept_turns=(8, 0))
    assert stores_to(kernel, "b") == 1


def test_but_not_before_others_load_it() -> None:
    a, b, c = matrix(), matrix(), matrix()
    commands = (twice, SPACE, a, b), (turned, (4, LONG), b, c), (twice, SPACE, c, b)
    kernel = replace(kernel_of(*commands), kept_turns=(8, 0))
    rows = loops_of(kernel)
    assert rows is not None and "b" in {row.array for row in rows.rows}
    assert stores_to(kernel, "b") == 4


def test_nothing_else_loads_what_is_kept() -> None:
    kernel = replace(kernel_of((twice, SPACE, matrix(), matrix())), kept_turns=(4, 2))
    kept = with_kept_rows(kernel, flatten_blocks(kernel.body), loads_early=False)
    assert kept is not None and not kept.early
    loads = [e for e in expressions(kept.body) if isinstance(e, Load) and e.array in ("a", "b")]
    # For the registers: whole and masked; and what is left of each loop: a, a; b, a.
    assert len(loads) == 2 + 4


def test_loads_before_the_launch_before_has_ended() -> None:
    """Of what no submission writes."""
    kernel = replace(kernel_of((twice, SPACE, matrix(), matrix())), kept_turns=(4, 2))
    kept = with_kept_rows(kernel, flatten_blocks(kernel.body), loads_early=True)
    assert kept is not None and kept.once == {"a"}
    assert {e.array for e in expressions(kept.early) if isinstance(e, Load)} == {"a"}


@pytest.mark.parametrize(
    ("columns", "turns"),
    [
        (3 * GROUP, None), (4 * GROUP, (4, 1)), (5 * GROUP - 1, (4, 1)), (31 * GROUP + 9, (28, 4)),
        (32 * GROUP, (32, 0)), (64 * GROUP, (32, 0)), (65 * GROUP, None),
    ],
)  # fmt: skip
def test_how_much_is_kept(columns: int, turns: tuple[int, int] | None) -> None:
    """By the length of rows: a plan serves those of which as much is kept."""
    plan = plan_of((twice, SPACE, matrix(columns), matrix(columns)))
    assert plan.stages[0].kernel.kept_turns == turns
    for other in (4, 5, 28, 31, 32, 64, 65):
        commands = submissions((twice, SPACE, matrix(other * GROUP), matrix(other * GROUP)))
        again = plan_of((twice, SPACE, matrix(other * GROUP), matrix(other * GROUP)))
        if plan.validity.holds(commands):
            assert again.stages[0].kernel.kept_turns == turns


def test_registers_are_those_of_what_lives_between_loops() -> None:
    kernel = kernel_of((twice, SPACE, matrix(), matrix()))
    found = loops_of(kernel)
    assert found is not None and found.words == 2  # a and b
    wide = kernel_of((twice, SPACE, matrix(dtype=np.float64), matrix(dtype=np.float64)))
    assert wide.kept_turns == (CODE_LIMITS.kept_words // 4, 0)


def test_unfused_runs_kernels_as_they_are_written() -> None:
    (stage,) = plan_of((twice, SPACE, matrix(), matrix()), strategy="unfused").stages
    assert stage.kernel.kept_turns is None


def test_rows_of_plain_ranges_join_where_rows_are_kept() -> None:
    """What comes behind a work-group's row is part of its launch for ``auto`` too, where there are
    work-groups enough, and the row is not too long."""
    for rows, columns, launches in ((128, LONG, 1), (16, LONG, 2), (128, 80 * GROUP, 2)):
        x, top = np.zeros((rows, columns), np.float32), np.zeros(rows, np.float32)
        space = fq.NdRange((rows, GROUP), (1, GROUP))
        commands = (maxima, space, x, top), (scale, (rows, columns), top, x)
        assert len(plan_of(*commands, strategy="sequence").stages) == launches


@pytest.mark.parametrize("columns", [GROUP - 1, GROUP, 2 * GROUP + 5, 5 * GROUP, 7 * GROUP + 3])
def test_results_have_the_same_bits(columns: int) -> None:
    with fq.FusionQueue("reference") as queue:
        expected, _ = run(queue, softmax, "unfused", columns, "float32")
    with keeping_queue() as (queue, _):
        found, _ = run(queue, softmax, "fused", columns, "float32")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


def test_the_device_of_these_tests_keeps_rows() -> None:
    with keeping_queue() as (queue, backend):
        run(queue, softmax, "fused", 3 * GROUP + 1, "uint32")  # which no other test has
    assert [made is not None for _, made in backend.built] == [True]
