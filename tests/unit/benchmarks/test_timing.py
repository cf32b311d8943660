"""What a sample is: runs back to back or one at a time, interleaved over the variants."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from fusionq.benchmarks import timing
from fusionq.benchmarks.results import CaseResult, VariantResult
from fusionq.benchmarks.table import case_notes
from fusionq.benchmarks.timing import Timing, back_to_back, one_at_a_time, time_interleaved
from fusionq.cli.main import app


class Log:
    """A device whose runs say when they are started and waited for."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def start(self) -> Log:
        self.said.append("start")
        return self

    def wait(self) -> None:
        self.said.append("wait")


def test_back_to_back_waits_once() -> None:
    log = Log()
    back_to_back(log.start)(3)
    assert log.said == ["start", "start", "start", "wait"]


def test_one_at_a_time_waits_for_each() -> None:
    log = Log()
    one_at_a_time(log.start)(2)
    assert log.said == ["start", "wait", "start", "wait"]


def test_host_runs_need_no_wait() -> None:
    assert back_to_back(lambda: None)(2) >= 0
    assert one_at_a_time(lambda: None)(2) >= 0


def test_a_sample_times_the_wait() -> None:
    class Slow:
        def wait(self) -> None:
            time.sleep(0.01)

    assert back_to_back(Slow)(1) >= 0.01


def sampler(name: str, seconds: float, asked: list[tuple[str, int]]) -> timing.Sampler:
    """A variant whose runs take ``seconds`` each by its own account."""

    def sample(runs: int) -> float:
        asked.append((name, runs))
        return runs * seconds

    return sample


def test_a_sample_lasts_about_twenty_milliseconds_after_an_untimed_run() -> None:
    asked: list[tuple[str, int]] = []
    (found,) = time_interleaved([sampler("a", 1e-4, asked)], 3)
    assert found.runs_per_sample == round(timing.SAMPLE_SECONDS / 1e-4)
    assert found.seconds == pytest.approx((1e-4,) * 3)
    assert asked[-6:] == [("a", 1), ("a", found.runs_per_sample)] * 3


def test_a_long_run_is_a_sample() -> None:
    asked: list[tuple[str, int]] = []
    (found,) = time_interleaved([sampler("a", 0.5, asked)], 2)
    assert found.runs_per_sample == 1
    assert all(runs == 1 for _, runs in asked)


def test_single_runs_are_samples_of_one() -> None:
    asked: list[tuple[str, int]] = []
    (found,) = time_interleaved([sampler("a", 1e-6, asked)], 2, single=True)
    assert found.runs_per_sample == 1
    assert asked == [("a", 1)] * 4


def test_runs_that_take_no_time_end() -> None:
    (found,) = time_interleaved([sampler("a", 0.0, [])], 1)
    assert found.runs_per_sample == timing.MOST_RUNS


def test_rounds_are_interleaved() -> None:
    asked: list[tuple[str, int]] = []
    samplers = [sampler("a", 1.0, asked), sampler("b", 1.0, asked)]
    timings = time_interleaved(samplers, 3)
    assert [len(t.seconds) for t in timings] == [3, 3]
    timed = [name for name, _ in asked[2:]]
    assert sorted(timed[:4]) == sorted(timed[4:8]) == ["a", "a", "b", "b"]
    assert sum(x != y for x, y in pairwise(timed)) >= 3
    assert timings[0].quantile(0) <= timings[0].median <= timings[0].quantile(1)


@pytest.mark.parametrize(("single", "said"), [(False, "one after the other"), (True, "waited for")])
def test_the_notes_say_what_a_sample_is(single: bool, said: str) -> None:
    variant = VariantResult("unfused", "fusionq", 1, Timing((1.0,), 1))
    assert said in case_notes(CaseResult("c", "d", 1, (variant,), single))[0]


@pytest.mark.slow
def test_bench_single() -> None:
    options = ("--size", "50", "--rounds", "1", "--device", "reference", "--single")
    result = CliRunner().invoke(app, ["bench", "seeds", *options])
    assert result.exit_code == 0, result.output
    assert "one run, submitted and waited for" in result.stdout
