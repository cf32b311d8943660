"""Every program of the corpus, in every form: NumPy's result, the same bits by the strategies."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import get_args
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import settings

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.benchmarks.corpus.program import CorpusProgram
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.workload import CorpusWorkload, Problem

ON_THE_INTERPRETER: tuple[Strategy, ...] = ("megakernel", "overlap", "sequence")
"""A program takes one of them; the cases of test_strategy_cases.py and the random lists of
tests/property take all."""
ON_THE_DEVICE: tuple[Strategy, ...] = ("fused", "auto")
FUSED_ON_THE_INTERPRETER = list(PROGRAMS.values())
FUSED_ON_THE_DEVICE = list(PROGRAMS.values())
if settings.get_current_profile_name() != "nightly":
    FUSED_ON_THE_INTERPRETER = FUSED_ON_THE_INTERPRETER[::4]
    FUSED_ON_THE_DEVICE = FUSED_ON_THE_DEVICE[1::3]
QUICKLY_BUILT = 6
"""Submissions of a list whose persistent kernel a CPU's compiler is asked to build in a test."""


def check_all(workload: CorpusWorkload, strategies: tuple[Strategy, ...]) -> None:
    """The unfused run, then a fusion by each strategy, each against NumPy and the first.  The
    device's compiler takes the kernels of the first as one program; the interpreter has none."""
    unfused = fq.fusion(workload.queue, strategy="unfused")
    with unfused if workload.queue.device.kind != "reference" else nullcontext():
        workload.submit()
    workload.queue.wait()
    workload.check(bit_for_bit=True)
    check_fused(workload, strategies)


def check_fused(workload: CorpusWorkload, strategies: tuple[Strategy, ...]) -> None:
    for strategy in strategies:
        workload.spoil()
        with fq.fusion(workload.queue, strategy=strategy) as fusion:
            workload.submit()
        fusion.event.wait()
        try:
            workload.check(bit_for_bit=True)
        except AssertionError as error:
            raise AssertionError(f"strategy {strategy!r}: {error}") from None


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_every_strategy_gives_the_same_bits_on_the_interpreter(program: CorpusProgram) -> None:
    """Each form unfused; of every fourth program the first by a strategy too, each in turn, and of
    all in the profile ``nightly``."""
    queue = fq.FusionQueue("reference")
    problem = Problem(program, program.sizes["tiny"])
    strategies: tuple[Strategy, ...] = ()
    if program in FUSED_ON_THE_INTERPRETER:
        number = FUSED_ON_THE_INTERPRETER.index(program)
        strategies = ON_THE_INTERPRETER[number % len(ON_THE_INTERPRETER) :][:1]
    for form in program.forms:
        check_all(CorpusWorkload(problem, form, queue), strategies)
        strategies = ()


def test_every_strategy_is_tried() -> None:
    assert {*ON_THE_INTERPRETER, *ON_THE_DEVICE, "unfused"} == set(get_args(Strategy))


@pytest.mark.parametrize("program", FUSED_ON_THE_DEVICE, ids=lambda program: program.name)
def test_fused_as_unfused_on_the_device(program: CorpusProgram) -> None:
    """The last form of every third program, and of all in the profile ``nightly``; by ``auto``
    where a persistent kernel is built quickly.  Where NumPy's result is the unfused one bit for
    bit, it is compared with that alone."""
    try:
        queue = fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    problem = Problem(program, program.sizes["tiny"])
    workload = CorpusWorkload(problem, program.forms[-1], queue)
    submitted = Mock()
    workload.form.submit(submitted, problem.size, *workload.buffers.values())
    fused, auto = ON_THE_DEVICE
    strategy = auto if len(submitted.method_calls) <= QUICKLY_BUILT else fused
    if program.tolerance:
        check_all(workload, (strategy,))
    else:
        check_fused(workload, (strategy,))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_a_description_is_whole(program: CorpusProgram) -> None:
    assert len(program.forms) >= 2
    assert len({form.name for form in program.forms}) == len(program.forms)
    assert program.description and program.source and all(f.description for f in program.forms)
    arrays = program.arrays(program.sizes["tiny"], np.random.default_rng(0))
    assert set(program.inputs) <= arrays.keys()
    assert program.outputs and set(program.outputs) <= arrays.keys() - set(program.inputs)
    assert set(program.sizes) == {"tiny", "in cache", "out of cache"}
    for size in program.sizes.values():
        assert len(size) == len(program.axes)


def test_there_are_enough_in_both_halves() -> None:
    assert len(PROGRAMS) >= 40
    halves = [program.half for program in PROGRAMS.values()]
    assert 2 * halves.count("fit") / 3 < halves.count("report") < 3 * halves.count("fit") / 2


def test_a_result_that_was_there_before_is_no_result() -> None:
    """A run that does nothing is found, for every program."""
    for program in PROGRAMS.values():
        problem = Problem(program, program.sizes["tiny"])
        workload = CorpusWorkload(problem, program.forms[0], fq.FusionQueue("reference"))
        with pytest.raises(AssertionError, match=program.name):
            workload.check(bit_for_bit=False)


def test_a_written_input_is_found() -> None:
    program = PROGRAMS["hotspot"]
    problem = Problem(program, program.sizes["tiny"])
    workload = CorpusWorkload(problem, program.forms[0], fq.FusionQueue("reference"))
    workload.submit()
    workload.host["power"][3, 3] = 7
    with pytest.raises(AssertionError, match="input power"):
        workload.check(bit_for_bit=False)


def test_the_page_lists_every_program() -> None:
    page = (Path(__file__).parents[3] / "docs" / "corpus.md").read_text(encoding="utf-8")
    for program in PROGRAMS.values():
        forms = ", ".join(form.name for form in program.forms)
        row = (f"`{program.name}`", program.half, program.description, forms, program.source)
        assert f"| {' | '.join(row)} |" in page
    assert f"{len(PROGRAMS)} from the literature" in page
