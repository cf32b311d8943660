"""What repeats in a report is said once, with its range; the data keeps everything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.span import Span
from fusionq.planning.plan import Dependence
from fusionq.report.patterns import DependencePattern, dependence_patterns
from fusionq.report.progressions import FEWEST, progressions, relative, sum_of, written
from fusionq.report.report import Report

HERE = Span("here.py", 1, "a = b")


def dependence(producer: int, consumer: int, buffer: str = "x") -> Dependence:
    return Dependence(producer, consumer, buffer, 0, "RAW", "GLOBAL", "why", HERE, HERE)


def patterns(pairs: Sequence[tuple[int, int]]) -> list[DependencePattern]:
    return dependence_patterns([dependence(*pair) for pair in pairs], lambda s: "step")


def numbers(text: str, **known: int) -> list[int]:
    """What ``0 … 3`` and ``1, 3, …, 15 - d`` stand for."""
    parts = [part.strip() for part in re.split(r",|…", text) if part.strip()]
    *start, last = [eval(part, {}, known) for part in parts]
    if "…" not in text:
        return [*start, last]
    stride = start[1] - start[0] if len(start) > 1 else 1
    return list(range(start[0], last + 1, stride))


def meant(pattern: DependencePattern) -> list[tuple[int, int]]:
    """The dependences that a reader of the pattern's words takes it for."""
    words = pattern.where
    distances, steps = [0], words.removeprefix("k = ")
    if words.startswith("d = "):
        far, _, steps = words.removeprefix("d = ").partition(", k = ")
        distances = numbers(far)
    found = []
    for d in distances:
        for k in numbers(steps, d=d) if steps else [0]:
            values = {"k": k, "d": d}
            found.append((eval(pattern.producer, {}, values), eval(pattern.consumer, {}, values)))
    return found


@given(st.sets(st.integers(0, 60)))
def test_progressions_hold_each_number_once(found: set[int]) -> None:
    made = progressions(found)
    assert sorted(n for r in made for n in r) == sorted(found)
    assert all(len(r) == 1 or len(r) >= FEWEST for r in made)
    assert [r[0] for r in made] == sorted(r[0] for r in made)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (range(5), ["0 … 4"]),
        (range(3, 20, 4), ["3, 7, …, 19"]),
        ([0, 1], ["0", "1"]),
        ([0, 5, 1, 6, 11, 10], ["0, 5, 10", "1, 6, 11"]),
        ([7, 0, 1, 2, 3], ["0 … 3", "7"]),
    ],
)
def test_progressions_as_text(found: Sequence[int], text: list[str]) -> None:
    assert [written(r) for r in progressions(found)] == text


pairs = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda pd: (pd[0], pd[0] + pd[1]))


@given(st.sets(pairs, max_size=40))
def test_patterns_mean_the_dependences_and_no_others(found: set[tuple[int, int]]) -> None:
    made = patterns(sorted(found))
    assert sorted(pair for pattern in made for pair in meant(pattern)) == sorted(found)
    assert sum(pattern.count for pattern in made) == len(found)


@given(st.integers(2, 12), st.integers(1, 3), st.integers(1, 4))
def test_all_pairs_of_steps_are_one_pattern(steps: int, near: int, stride: int) -> None:
    """As of a loop whose body has ``stride`` submissions, one of which writes what it reads."""
    found = [(stride * a, stride * b + near - 1) for a in range(steps) for b in range(a + 1, steps)]
    made = patterns(found)
    assert sorted(pair for pattern in made for pair in meant(pattern)) == sorted(found)
    if steps > FEWEST:
        assert len(made) == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([(k, k + 1) for k in range(15)], ("k", "k + 1", "k = 0 … 14")),
        ([(5 * k + 2, 5 * k + 4) for k in range(4)], ("k", "k + 2", "k = 2, 7, …, 17")),
        ([(0, k) for k in range(1, 9)], ("0", "k", "k = 1 … 8")),
        ([(k, 9) for k in range(9)], ("k", "9", "k = 0 … 8")),
        (
            [(a, b) for a in range(16) for b in range(a + 1, 16, 2)],
            ("k", "k + d", "d = 1, 3, …, 15, k = 0 … 15 - d"),
        ),
    ],
)
def test_the_words_of_a_pattern(
    found: Sequence[tuple[int, int]], words: tuple[str, str, str]
) -> None:
    (pattern,) = patterns(found)
    assert (pattern.producer, pattern.consumer, pattern.where) == words


def test_what_differs_is_no_pattern() -> None:
    chain = [(k, k + 1) for k in range(4)]
    by_buffer = [dependence(*pair, buffer=f"b{pair[0]}") for pair in chain]
    assert len(dependence_patterns(by_buffer, lambda s: "step")) == 4
    by_kernel = dependence_patterns([dependence(*pair) for pair in chain], lambda s: f"k{s}")
    assert [(p.producer, p.consumer) for p in by_kernel] == [(str(p), str(c)) for p, c in chain]


def test_words_relative_to_a_submission() -> None:
    text = "RAW dependence of submission 7 on submission 5 of { [7] -> [5] }, which [6] writes"
    assert relative(text, 7, "k") == (
        "RAW dependence of submission k on submission k - 2 of { [7] -> [5] }, which [k - 1] writes"
    )
    assert sum_of("k", 3) == "k + 3"


# -------------------------------------------------------------------------- whole reports
N, STEPS = 1500, 16
"""More elements than a work-group has work-items."""


@fq.kernel
def smooth(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = (x[max(i - 1, 0)] + x[i] + x[min(i + 1, x.shape[0] - 1)]) / 3


@fq.kernel
def double(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + x[i]


def steps(strategy: Any, *kernels: Any) -> Report:
    """``STEPS`` times the kernels, from each of some buffers to the next and round again."""
    queue = fq.FusionQueue("reference")
    buffers = [fq.Buffer(np.ones(N, np.float32)) for _ in range(1 + len(set(kernels)))]
    with fq.fusion(queue, strategy=strategy) as fusion:
        for _ in range(STEPS):
            for kernel in kernels:
                queue.submit(kernel, N, buffers[0], buffers[1])
                buffers = [*buffers[1:], buffers[0]]
    return fusion.report


def test_equal_steps_read_as_a_pattern() -> None:
    report = steps("sequence", smooth)
    text = str(report)
    assert len(text.splitlines()) < 30
    assert "Launches 1 … 15 of 1 submission each, k = 1 … 15\n" in text
    assert re.search(
        r"\n  apart because: (RAW|WAR) dependence of submission k on submission k - 1 has", text
    )
    assert "\n  [k] smooth  Range(1500)  " in text
    for kind in ("RAW", "WAR"):
        (line,) = [line for line in text.splitlines() if f"{kind} GLOBAL — " in line]
        assert line.startswith("  buffers[0] or buffers[1]: [k] smooth → [k + ")
        assert "k = 0 … 1" in line
    assert " more; report.dependences" not in text
    # The data has them all.
    assert len(report.stages) == STEPS
    assert {(k, k + 1) for k in range(STEPS - 1)} <= {
        (d.producer, d.consumer) for d in report.dependences
    }
    found = report.to_dict()
    assert len(found["dependences"]) == len(report.dependences)
    assert [stage["submissions"] for stage in found["stages"]] == [[k] for k in range(STEPS)]


def test_a_loop_of_several_kernels_repeats_with_its_length() -> None:
    text = str(steps("sequence", smooth, double))
    assert "Launches 1 … 15 of 2 submissions each, k = 2, 4, …, 30\n" in text
    assert "\n  [k] smooth      Range(1500)  " in text
    assert "\n  [k + 1] double  Range(1500)  " in text
    assert re.search(r"\[k\] smooth → \[k \+ (1|d)\] double, .*k = 0, 2, …, .*  RAW ITEM — ", text)


def test_the_stages_of_a_persistent_kernel_repeat_too() -> None:
    text = str(steps("megakernel", smooth, smooth, double))
    tiled = [line for line in text.splitlines() if line.startswith(("  stage ", "  stages "))]
    assert len(tiled) < 8
    assert any(re.match(r"  stages \d+, \d+, …, \d+: smooth, double  ", line) for line in tiled)
    assert any(re.match(r"  stages \d+, \d+, …, \d+: smooth  ", line) for line in tiled)


def test_submissions_and_promotions_of_a_launch_repeat() -> None:
    queue = fq.FusionQueue("reference")
    x, out = fq.Buffer(np.ones(N, np.float32)), fq.Buffer((STEPS, N), np.float32)
    all_between = [fq.Buffer(N, np.float32, promote_private=True) for _ in range(STEPS)]
    with fq.fusion(queue) as fusion:
        for k, between in enumerate(all_between):
            queue.submit(double, N, x, between)
            queue.submit(double, N, between, out[k])
    report = fusion.report
    text = str(report)
    assert len(report.promotions) == STEPS
    assert "Launch 0 of 32 submissions\n  [k] double, k = 0, 2, …, 30  Range(1500)  " in text
    assert "\n  [k] double, k = 1, 3, …, 31  Range(1500)  " in text
    assert "  between: [k] double → [k + 1] double, k = 0, 2, …, 30  RAW ITEM — " in text
    assert "  between of [k], k = 0, 2, …, 30: private — " in text


@fq.kernel
def turn_in_pairs(item: fq.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = x[i + 1 - 2 * item.get_local_id(0)]


@fq.kernel
def number(item: fq.NdItem, out: Any) -> None:
    out[item.get_global_id(0)] = item.get_local_id(0)


def test_barriers_that_repeat_are_counted() -> None:
    queue = fq.FusionQueue("reference")
    buffers = [fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)]
    with fq.fusion(queue) as fusion:
        for k in range(4):
            queue.submit(turn_in_pairs, fq.NdRange(N, 2), buffers[k % 2], buffers[1 - k % 2])
    text = str(fusion.report)
    assert "Launch 0 of 4 submissions, work-groups of 2, 3 barriers\n  [0] turn_in_pairs  " in text
    assert "\n  ── barrier before each of these 3: " in text
    assert "which [k - 1] writes in the same work-group" in text
    assert "\n  [k] turn_in_pairs, k = 1 … 3  NdRange" in text


def test_launches_of_repeated_submissions_count_them_from_their_first() -> None:
    queue = fq.FusionQueue("reference")
    x, out = fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)
    with fq.fusion(queue, strategy="sequence") as fusion:
        for _ in range(4):
            for _ in range(5):
                queue.submit(double, N, x, out)
            queue.submit(smooth, N, out, x)
    text = str(fusion.report)
    assert "Launches 1, 3, …, 7 of 1 submission each, k = 5, 11, …, 23\n" in text
    assert "Launches 2, 4, 6 of 5 submissions each, k = 6, 12, 18\n" in text
    assert "\n  [k + j] double, j = 0 … 4  Range(1500)  " in text


def test_launches_whose_submissions_are_no_progression_stand_apart() -> None:
    queue = fq.FusionQueue("reference")
    x, out = fq.Buffer(np.ones(N, np.float32)), fq.Buffer(N, np.float32)
    with fq.fusion(queue, strategy="sequence") as fusion:
        for several in (3, 5, 9):
            for _ in range(several):
                queue.submit(double, N, x, out)
            queue.submit(smooth, N, out, x)
    text = str(fusion.report)
    assert len(fusion.report.stages) == 6
    for number, submission in ((1, 3), (3, 9), (5, 19)):
        assert f"\nLaunch {number} of 1 submission\n" in text
        assert f"\n  [{submission}] smooth  Range(1500)  " in text
    assert "\n  [k] double, k = 4 … 8  Range(1500)  " in text


def test_advice_names_all_launches_that_it_concerns() -> None:
    queue = fq.FusionQueue("reference")
    out = fq.Buffer(N, np.float32)
    with fq.fusion(queue, strategy="sequence") as fusion:
        for k in range(6):
            queue.submit(number, fq.NdRange(N, 2 + 2 * (k % 2)), out)
    (advice,) = [a for a in fusion.report.advice if "one work-group size" in a]
    assert advice.startswith("launches 1 … 5: ")
