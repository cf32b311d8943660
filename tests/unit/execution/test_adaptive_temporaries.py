"""Lists of temporaries that are made anew each time learn as one list does, and ask as rarely."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import adaptive, list_record, moved_runs
from fusionq.execution import compile as compiling
from fusionq.execution import prepare as preparing
from tests.unit.execution.adaptive_lists import (
    Immediate,
    Joined,
    Program,
    Times,
    bound_where_wanted,
    chosen_of,
    run_often,
)
from tests.unit.execution.programs import neighbours, scale


class Temporaries(Program):
    """In new memory each time, on one queue."""

    def begin(self) -> None:
        self.a, self.b = (fq.Buffer(np.zeros(self.n, np.float32)) for _ in range(2))
        super().begin()


class TemporariesAgain(Temporaries):
    """Of which the list has each submission several times."""

    def steps(self) -> None:
        for _ in range(3):
            self.queue.submit(scale, self.n, self.a, self.b, np.float32(2))
            self.queue.submit(scale, self.n, self.b, self.a, np.float32(0.5))

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        assert np.array_equal(self.b.numpy(), 2 * self.host[0])


class JoinedTemporaries(Temporaries, Joined):
    """The same of what joins."""


class FlaggedTemporaries(Temporaries):
    """Of which one is flagged, so that the first run has a plan."""

    def begin(self) -> None:
        super().begin()
        self.between = fq.Buffer(np.zeros(self.n, np.float32), promote_private=True)

    def steps(self) -> None:
        self.queue.submit(scale, self.n, self.a, self.between, np.float32(2))
        self.queue.submit(neighbours, self.n, self.between, self.b)

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        a, b = self.host
        assert np.array_equal(self.b.numpy()[1:-1], 2 * (a[:-2] + a[2:]))
        assert np.array_equal(self.b.numpy()[[0, -1]], b[[0, -1]])


def looks_at(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[str]:
    """The calls of a function from now on."""
    original, calls = getattr(module, name), []

    def counted(*arguments, **options):  # type: ignore[no-untyped-def]
        calls.append(name)
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_the_fastest_is_chosen(background: Immediate, times: Times) -> None:
    program = Temporaries()
    assert program.run().report.strategy == "unfused"
    assert chosen_of(program) == "megakernel"
    assert program.run().report.strategy == "megakernel"
    tried = times.ran.index("megakernel")
    assert times.ran[tried - 1 : tried + 3] == ["unfused", "megakernel"] * 2
    launches = program.queue._state.launcher.cache.by_sizes
    program.run()
    assert launches._runs and not launches._open, "launches of which only the pointers change"


def test_those_whose_first_run_has_a_plan_learn_too(
    background: Immediate, times: Times
) -> None:
    """Lists have launches of their own from the third on, which ask for all of them."""
    background.works = False
    program = FlaggedTemporaries()
    assert program.run().report.choice.startswith("auto runs")
    run_often(program, 40)
    background.works = True
    assert chosen_of(program, 400) == "megakernel"
    assert program.run().report.strategy == "megakernel"


def test_while_the_background_builds_nobody_asks(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    background.works = False
    times.update(unfused=1e-6)
    program = Temporaries()
    program.run(), program.run()
    looks = [
        looks_at(monkeypatch, preparing, "plans_key"),
        looks_at(monkeypatch, preparing, "plans_key_by_memory"),
        looks_at(monkeypatch, compiling, "plans_key"),
    ]
    asked = looks_at(monkeypatch, adaptive.AdaptiveList, "next_run")
    for _ in range(64):
        assert program.run().report.strategy == "unfused"
    (record,) = list_record.RECORDS._records.values()
    assert sum(map(len, looks)) <= 2 * len(asked) and len(asked) < 12
    assert 32 <= record.runs <= 66
    background.works = True
    assert chosen_of(program, 200) == "unfused"


def test_samples_of_several_runs_are_of_lists_in_other_memory(
    background: Immediate, times: Times
) -> None:
    times.update({name: seconds * 3e-5 for name, seconds in times.items()})
    program = Temporaries()
    program.run()
    (record,) = list_record.RECORDS._records.values()
    record.is_unseen = True  # as after a sample that nobody waited for
    assert chosen_of(program, 100) == "megakernel"
    assert record.trials.in_batches
    tried = times.ran.index("megakernel")
    batches = ["unfused"] * 3 + ["megakernel"] * 3
    assert times.ran[tried - 1 : tried + 7] == ["unfused", "megakernel", *batches]


def test_what_drifts_is_compared_again(background: Immediate, times: Times) -> None:
    program = Temporaries()
    program.run()
    assert chosen_of(program) == "megakernel"
    program.run(), program.run()
    times["megakernel"] = 9.0
    run_often(program, 60)
    assert chosen_of(program) == "unfused"
    assert program.run().report.strategy == "unfused"


def test_two_kinds_take_turns(background: Immediate, times: Times) -> None:
    first, other = Temporaries(), JoinedTemporaries()
    other.queue = first.queue
    for _ in range(40):
        first.run(), other.run()
    assert first.run().report.strategy == "megakernel"
    assert other.run().report.strategy == "fused"


def test_where_the_model_chooses_in_the_end(background: Immediate, times: Times) -> None:
    background.works = False
    program = JoinedTemporaries()
    program.run(), program.run(), program.run()
    (record,) = list_record.RECORDS._records.values()
    record.is_left_to_model = True
    for _ in range(300):
        if program.run().report.strategy == "fused":
            break
    assert program.run().report.strategy == "fused"
    assert not program.queue._state.launcher.cache.by_sizes._open


def test_submissions_that_nobody_keeps_are_not_looked_up_to_be_built_together(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    background.works = False
    times.update(unfused=1e-6)
    for program in (Temporaries(), TemporariesAgain()):
        program.run(), program.run()
        built = looks_at(monkeypatch, compiling, "build_alone")
        for _ in range(5):
            program.run()
        assert not built


def test_launches_are_bound_once_for_lists_in_other_memory(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    background.binds = False
    for program in (Temporaries(), JoinedTemporaries()):
        times.ran.clear(), list_record.RECORDS.clear()
        bound = bound_where_wanted(monkeypatch)
        program.run()
        (record,) = list_record.RECORDS._records.values()
        while record.trials.chosen is None:
            program.run()
        tried = [name for name in times.ran if name != "unfused"]
        assert len(tried) > len(set(tried)) >= len(bound) > 0


def test_what_is_done_for_each_list_counts_in_trials(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches that are moved, or that have to be bound where they cannot be; not what is bound
    once for a list that comes again, or for all of a kind."""
    background.binds = False

    def prepared(program: Program) -> list[float]:
        times.ran.clear(), times.prepared.clear(), list_record.RECORDS.clear()
        program.run()
        chosen_of(program)
        ran = zip(times.ran, times.prepared, strict=True)
        return [seconds for name, seconds in ran if name == "megakernel"]

    moved = prepared(Temporaries())
    assert not moved[0] and all(moved[1:]) and len(moved) > 1
    assert not any(prepared(Program()))
    monkeypatch.setattr(moved_runs, "kind_of", lambda backend, pending: None)
    assert all(prepared(Temporaries()))


def test_lists_whose_arrays_share_memory_in_another_way_are_bound_anew(
    background: Immediate, times: Times
) -> None:
    """The same call sites and sizes, in turn over two Buffers, over one, and over views of one."""
    queue = fq.FusionQueue("reference")
    for k in range(36):
        whole = np.arange(64.0)
        if k % 3 == 0:
            a, b = fq.Buffer(whole[:32]), fq.Buffer(whole[32:])
        elif k % 3 == 1:
            a = b = fq.Buffer(whole[:32])
        else:
            both = fq.Buffer(whole)
            a, b = both[:32], both[32:]
        x, y = whole[:32].copy(), whole[32:].copy()
        if k % 3 == 1:
            y = x
        with fq.fusion(queue):
            for _ in range(2):
                queue.submit(scale, 32, a, b, 2.0)
                queue.submit(scale, 32, b, a, 3.0)
        for _ in range(2):
            y[:] = x * 2.0
            x[:] = y * 3.0
        assert np.array_equal(a.numpy(), x) and np.array_equal(b.numpy(), y)


def test_scalars_of_moved_launches_are_the_list_s(background: Immediate, times: Times) -> None:
    queue = fq.FusionQueue("reference")
    for k in range(24):
        a, b = fq.Buffer(np.arange(32.0)), fq.Buffer(32, np.float64)
        with fq.fusion(queue):
            queue.submit(scale, 32, a, b, float(k))
            queue.submit(scale, 32, b, a, 0.5 * k)
        assert np.array_equal(a.numpy(), np.arange(32.0) * k * (0.5 * k))
