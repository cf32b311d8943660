"""A persistent kernel's workers: right schedules under every interleaving, wrong ones that show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from fusionq.backends.base import ArrayBinding
from fusionq.backends.reference import ReferenceBackend
from fusionq.backends.reference.launch import ReferenceLaunch
from fusionq.backends.reference.workers import (
    WORD,
    Choice,
    Control,
    Instruction,
    Launched,
    delayed,
    launch,
    random_choice,
)
from fusionq.base.target import LaunchShape
from fusionq.codegen import queue_layout as q
from fusionq.ir.nodes import ArrayParam, Binary, Call, Const, Expr, ItemQuery, Kernel, Load, Store
from fusionq.ir.types import INT64
from tests.unit.targets import REFERENCE

Cells = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A schedule written out, with counters numbered from 0; ``work`` makes an instruction's
    steps."""

    instructions: tuple[Instruction, ...]
    wait_table: dict[Instruction, tuple[tuple[int, int], ...]]
    signal_table: dict[Instruction, tuple[int, ...]]
    work: Callable[[Instruction], Iterator[object]]
    assignment: tuple[tuple[Instruction, ...], ...] | None = field(default=None)

    def waits(self, instruction: Instruction) -> Sequence[tuple[int, int]]:
        own = self.wait_table.get(instruction, ())
        return [(q.FIRST_COUNTER + counter, count) for counter, count in own]

    def signals(self, instruction: Instruction) -> Sequence[int]:
        return [q.FIRST_COUNTER + counter for counter in self.signal_table.get(instruction, ())]

    def run(self, instruction: Instruction) -> Iterator[object]:
        return self.work(instruction)

    def without_wait(self, instruction: Instruction, counter: int) -> Table:
        kept = tuple(w for w in self.wait_table[instruction] if w[0] != counter)
        return replace(self, wait_table={**self.wait_table, instruction: kept})

    def assigned(self, workers: int) -> Table:
        lists = tuple(self.instructions[w::workers] for w in range(workers))
        return replace(self, assignment=lists)


# ------------------------------------------------------------------ a stencil, in cells
TILES, STEPS, WORKERS = 4, 3, 3
LINE = REFERENCE.control_line
START = np.array([3, 1, 4, 1], np.int64)


def memory() -> npt.NDArray[np.uint32]:
    """Control memory for the counters of all tests."""
    return np.zeros((q.FIRST_COUNTER + STEPS * TILES) * LINE, np.uint32)


def memory_after(
    launches: int, table: Table, workers: int, assigned: bool
) -> npt.NDArray[np.uint32]:
    """The control memory after so many launches that went well."""
    words = memory()
    control = Control(words, LINE)
    control.write(q.HEAD, launches * (len(table.instructions) + workers))
    if assigned:
        control.write(q.ARRIVED, launches * workers)
        control.write(q.MODE, 2 * launches)
    for instruction in table.instructions:
        for line in table.signals(instruction):
            control.add(line, launches)
    return words


def neighbours(tile: int) -> range:
    return range(max(tile - 1, 0), min(tile + 2, TILES))


def stencil(cells: Cells) -> Table:
    """Time steps from one row of ``cells`` to the other and back, a cell a tile, in a skewed
    order.  A tile waits for its neighbours of the step before, which have then also read what it
    overwrites; counter ``step * TILES + tile`` is the tile's."""

    def work(instruction: Instruction) -> Iterator[object]:
        step, tile = instruction
        total = 10 * step
        for other in neighbours(tile):
            total += int(cells[step % 2, other])
            yield None
        cells[(step + 1) % 2, tile] = total
        yield None

    every = sorted(product(range(STEPS), range(TILES)), key=lambda i: (i[1] + 2 * i[0], i[0]))
    return Table(
        tuple(every),
        {
            (step, tile): tuple(((step - 1) * TILES + n, 1) for n in neighbours(tile))
            for step, tile in every
            if step
        },
        {(step, tile): (step * TILES + tile,) for step, tile in every},
        work,
    )


def in_program_order(launches: int) -> Cells:
    cells = np.stack([START, np.zeros_like(START)])
    for _, step, tile in product(range(launches), range(STEPS), range(TILES)):
        for _ in stencil(cells).run((step, tile)):
            pass
    return cells


def outcome(
    choose: Choice,
    resident: int | None = None,
    launches: int = 1,
    change: Callable[[Table], Table] = lambda table: table,
    before: int = 0,
    workers: int = WORKERS,
) -> tuple[Cells, list[Launched]]:
    cells = np.stack([START, np.zeros_like(START)])
    table = change(stencil(cells))
    control = Control(memory_after(before, table, workers, table.assignment is not None), LINE)
    at_once = workers if resident is None else resident
    ran = [
        launch(table, control, epoch, workers, at_once, choose)
        for epoch in range(before + 1, before + launches + 1)
    ]
    return cells, ran


@dataclass(frozen=True)
class Stall:
    """What a launch that gave up has left in the control memory."""

    instruction: Instruction
    counter: int
    expected: int
    seen: int


def stall(
    choose: Choice,
    resident: int = WORKERS,
    change: Callable[[Table], Table] = lambda table: table,
    good_launches: int = 0,
) -> Stall | None:
    """What the launch after ``good_launches`` of the right schedule stalled at; None: nothing."""
    table = stencil(np.stack([START, np.zeros_like(START)]))
    words = memory_after(good_launches, table, WORKERS, change(table).assignment is not None)
    epoch = good_launches + 1
    ran = launch(change(table), Control(words, LINE), epoch, WORKERS, resident, choose)
    record = words.reshape(-1, LINE)[q.STALL].tolist()
    assert ran.stalled is bool(record[q.FLAG])
    if not ran.stalled:
        return None
    stage, tile, line, expected, seen = record[q.STALL_STAGE : q.STALL_SEEN + 1]
    assert (stage, tile) not in [instruction for _, instruction in ran.ran]
    return Stall((stage, tile), line - q.FIRST_COUNTER, expected, seen)


def choices(workers: int = WORKERS) -> Iterator[Choice]:
    """Random interleavings, and each worker held up at each of its steps."""
    yield from map(random_choice, range(40))
    longest = max(outcome(random_choice(0), workers=workers)[1][0].steps)
    for worker, step in product(range(workers), range(longest)):
        yield delayed(worker, step, random_choice(step))


@pytest.mark.parametrize("assigned", [False, True], ids=["tickets", "assigned"])
@pytest.mark.parametrize("resident", range(1, WORKERS + 1))
def test_every_interleaving_gives_the_result_of_program_order(
    resident: int, assigned: bool
) -> None:
    expected = in_program_order(2)
    schedules = set()
    for choose in choices():
        change = (lambda t: t.assigned(WORKERS)) if assigned else (lambda t: t)
        cells, ran = outcome(choose, resident, 2, change)
        np.testing.assert_array_equal(cells, expected)
        schedules |= {one.schedule for one in ran}
        for one in ran:
            assert sorted(i for _, i in one.ran) == sorted(product(range(STEPS), range(TILES)))
    # The adversary may hold a worker up until the others stop looking for it.
    both = {"static", "dynamic"}
    assert schedules == (both if assigned and resident == WORKERS else {"dynamic"})


def test_words_wrap() -> None:
    expected = in_program_order(4)
    for seed, assigned in product(range(5), (False, True)):
        change = (lambda t: t.assigned(WORKERS)) if assigned else (lambda t: t)
        for before in (WORD - 2, WORD // 2 - 2, WORD // (STEPS * TILES + WORKERS) - 1):
            cells, _ = outcome(random_choice(seed), WORKERS, 4, change, before)
            np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("assigned", [False, True], ids=["tickets", "assigned"])
def test_a_launch_leaves_the_control_memory_as_the_next_one_needs_it(assigned: bool) -> None:
    cells = np.stack([START, np.zeros_like(START)])
    table = stencil(cells).assigned(WORKERS) if assigned else stencil(cells)
    words = memory()
    for epoch in (1, 2, 3):
        ran = launch(table, Control(words, LINE), epoch, WORKERS, WORKERS, random_choice(epoch))
        there = memory_after(epoch, table, WORKERS, assigned)
        there[LINE * q.MODE] += ran.schedule == "static"
        np.testing.assert_array_equal(words, there)


def test_every_launch_looks_again_whether_all_are_resident() -> None:
    schedules = set()
    for seed in range(30):
        table = stencil(np.stack([START, np.zeros_like(START)])).assigned(WORKERS)
        control, choose = Control(memory(), LINE), random_choice(seed)
        ran = [
            launch(table, control, epoch, WORKERS, resident, choose)
            for epoch, resident in enumerate((WORKERS, 1, WORKERS), 1)
        ]
        schedules.add(tuple(one.schedule for one in ran))
    assert ("static", "dynamic", "static") in schedules
    assert all(second == "dynamic" for _, second, _ in schedules)


def test_an_assigned_worker_runs_its_list() -> None:
    ran = [
        outcome(random_choice(seed), change=lambda t: t.assigned(WORKERS))[1][0]
        for seed in range(20)
    ]
    static = next(one for one in ran if one.schedule == "static")
    table = stencil(np.zeros((2, TILES), np.int64)).assigned(WORKERS)
    assert table.assignment is not None
    for worker, own in enumerate(table.assignment):
        assert tuple(i for w, i in static.ran if w == worker) == own


# ------------------------------------------------------------------------ wrong plans
@pytest.mark.parametrize(
    ("instruction", "tile"),
    [((step, tile), n) for step in (1, 2) for tile in range(TILES) for n in neighbours(tile)],
)
def test_a_missing_wait_shows(instruction: Instruction, tile: int) -> None:
    """With a worker for each instruction: fewer may all be held before they come to this one."""
    counter = (instruction[0] - 1) * TILES + tile
    expected = in_program_order(1)
    workers = STEPS * TILES
    assert any(
        not np.array_equal(expected, outcome(
            choose, change=lambda t: t.without_wait(instruction, counter), workers=workers
        )[0])
        for choose in choices(workers)
    )  # fmt: skip


def test_a_target_that_counts_too_few_shows() -> None:
    """Two producers share a counter, and their consumer waits for one of them."""

    def change(table: Table, target: int) -> Table:
        return replace(
            table,
            instructions=((0, 0), (0, 1), (1, 0)),
            signal_table={(0, 0): (0,), (0, 1): (0,)},
            wait_table={(1, 0): ((0, target),)},
        )

    both = sum(sum(int(START[n]) for n in neighbours(tile)) for tile in (0, 1))
    for target, is_right in ((2, True), (1, False)):
        changed = partial(change, target=target)
        found = {int(outcome(choose, change=changed)[0][0, 0]) for choose in choices()}
        assert 10 + both in found
        assert (len(found) == 1) is is_right


def too_many(table: Table) -> Table:
    return replace(table, wait_table={**table.wait_table, (1, 2): ((TILES, 2),)})


def test_a_target_that_counts_too_many_stalls() -> None:
    found = {stall(random_choice(seed), change=too_many) for seed in range(20)}
    assert None not in found
    assert Stall((1, 2), TILES, 2, 1) in found  # the others wait for this one


@pytest.mark.parametrize("resident", [1, WORKERS])
def test_an_instruction_before_what_it_waits_for_stalls(resident: int) -> None:
    """With tickets: as soon as all resident workers hold such instructions."""

    def change(table: Table) -> Table:
        return replace(table, instructions=table.instructions[::-1])

    for seed in range(5):
        found = stall(random_choice(seed), resident, change)
        assert found is not None
        assert (found.expected, found.seen) == (1, 0)


def test_a_cycle_stalls_even_where_all_are_resident() -> None:
    def change(table: Table) -> Table:
        cycle = {(0, 0): ((1, 1),), (0, 1): ((0, 1),)}
        return replace(table, wait_table={**table.wait_table, **cycle})

    first = {stall(random_choice(seed), change=change) for seed in range(20)}
    assert first >= {Stall((0, 0), 1, 1, 0), Stall((0, 1), 0, 1, 0)}


def test_an_assignment_against_the_order_stalls() -> None:
    """Each list has to follow one order of all instructions."""

    def change(table: Table) -> Table:
        turned = tuple(own[::-1] for own in table.assigned(WORKERS).assignment or ())
        return replace(table, assignment=turned)

    stalled = {stall(choose, change=change) is not None for choose in choices()}
    assert stalled == {True, False}  # the lists, and tickets instead


def test_a_later_launch_names_the_values_of_its_epoch() -> None:
    found = {stall(random_choice(seed), change=too_many, good_launches=1) for seed in range(20)}
    assert Stall((1, 2), TILES, 4, 2) in found


# ------------------------------------------------------------------------ the scheduler
def test_a_delayed_worker_moves_only_when_nobody_else_can() -> None:
    held: list[bool] = []

    def first(movable: Sequence[int], steps: Sequence[int]) -> int:
        if steps[0] == 4:
            held.append(0 in movable)
            assert 0 not in movable or movable == [0]
        return movable[0]

    outcome(delayed(0, 4, first))
    assert held.index(True) == len(held) - 1 > 10


def test_no_more_workers_than_resident_have_begun_and_not_ended() -> None:
    seen: list[int] = []

    def one_by_one(movable: Sequence[int], steps: Sequence[int]) -> int:
        seen.append(sum(s > 0 for s in steps))
        return max(movable, key=lambda w: (steps[w] == 0, -steps[w]))

    _, (ran,) = outcome(one_by_one, resident=2)
    assert seen[:3] == [0, 1, 2]
    # The third starts when one of the first two has taken a ticket too many.
    assert seen.index(3) > min(ran.steps[:2])


@pytest.mark.parametrize("resident", [0, WORKERS + 1])
def test_as_many_resident_workers_as_there_are(resident: int) -> None:
    with pytest.raises(ValueError, match="resident: needs 1 to 3"):
        outcome(random_choice(0), resident)


def test_an_assignment_is_for_the_workers_of_the_launch() -> None:
    with pytest.raises(ValueError, match="assigned to 2 workers, and 3 are launched"):
        outcome(random_choice(0), change=lambda t: t.assigned(2))


# ------------------------------------------------------------- with the oracle's kernels
def blur() -> Kernel:
    """``b[i] = a[i - 1] + 2 a[i] + a[i + 1]``, the ends repeated."""
    item = ItemQuery("global_id", 0)

    def const(value: int) -> Const:
        return Const(INT64, value)

    def at(shift: int) -> Expr:
        index = Binary(INT64, "add", item, const(shift))
        last = Binary(INT64, "sub", ItemQuery("global_range", 0), const(1))
        inside = Call(INT64, "minimum", (last, Call(INT64, "maximum", (const(0), index))))
        return Load(INT64, "a", (inside,))

    centre = Binary(INT64, "mul", const(2), at(0))
    total = Binary(INT64, "add", Binary(INT64, "add", at(-1), centre), at(1))
    params = (ArrayParam("a", INT64, 1), ArrayParam("b", INT64, 1))
    return Kernel("blur", 1, params, (), (Store("b", (item,), total),))


@pytest.mark.parametrize("is_right", [True, False])
def test_instructions_made_of_work_items(is_right: bool) -> None:
    """Two passes over 8 elements in tiles of 2; the tiles' items are interleaved too."""
    size = 8
    start = np.arange(size, dtype=np.int64) ** 2
    backend = ReferenceBackend()
    program = backend.build(blur(), "strict")

    def passes(a: Cells, b: Cells) -> list[tuple[ArrayBinding, ArrayBinding]]:
        there, back = (ArrayBinding(x.ctypes.data, (size,), (1,)) for x in (a, b))
        return [(there, back), (back, there)]

    shape = LaunchShape((size,), (1,))
    a, b = start.copy(), np.zeros_like(start)
    for arguments in passes(a, b):
        backend.prepare(program, arguments, shape).launch()

    agree = []
    workers = 2 * TILES
    for seed, choose in enumerate(choices(workers)):
        c, d = start.copy(), np.zeros_like(start)
        launches = [backend.prepare(program, arguments, shape) for arguments in passes(c, d)]

        def work(
            instruction: Instruction,
            launches: list[ReferenceLaunch] = launches,
            seed: int = seed,
        ) -> Iterator[object]:
            stage, tile = instruction
            return launches[stage].item_steps([(range(2 * tile, 2 * tile + 2),)], seed=seed)

        table = replace(
            stencil(np.zeros((2, TILES), np.int64)),
            instructions=tuple(product(range(2), range(TILES))),
            work=work,
        )
        if not is_right:
            table = table.without_wait((1, 1), 2)
        launch(table, Control(memory(), LINE), 1, workers, workers, choose)
        agree.append(np.array_equal(a, c) and np.array_equal(b, d))
    assert all(agree) if is_right else not all(agree)
