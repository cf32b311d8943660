"""The programs of the corpus compile for three generations of GPUs, unfused and fused, and spill no
registers."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.benchmarks.corpus.program import CorpusProgram
from fusionq.benchmarks.corpus.programs import PROGRAMS
from tests.in_turn import one_in
from tests.unit.cuda.compile_only import ARCHITECTURES, compiling_queue

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nvrtc")]
STRATEGIES: tuple[Strategy, ...] = ("unfused", "fused")
MOST_STACK = 64
"""Bytes of local memory: what ``cos`` and ``sin`` of large arguments take."""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_every_form(program: CorpusProgram) -> None:
    size = program.sizes["tiny"]
    arrays = program.arrays(size, np.random.default_rng(0))
    with compiling_queue(in_turn=True) as (queue, backend):
        few = len(program.forms) < 3
        for number, form in enumerate(program.forms):
            for strategy in STRATEGIES if few else one_in(2, STRATEGIES, first=number % 2):
                buffers = [fq.Buffer(array) for array in arrays.values()]
                with fq.fusion(queue, strategy=strategy):
                    form.submit(queue, size, *buffers)
    assert {architecture for _, architecture in backend.resources} == set(ARCHITECTURES)
    for of, resources in backend.resources.items():
        assert resources.spill_stores == resources.spill_loads == 0, (of, resources)
        assert resources.stack_bytes <= MOST_STACK, (of, resources)
