"""Stages with one body find their arguments in a worker's table: code does not grow with them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fusionq.codegen import queue_layout as q
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.codegen.stage_tables import (
    code_bodies,
    operands_of,
    table_words,
    words_before_waits,
)
from fusionq.ir.nodes import ArrayParam
from fusionq.planning.build_cost import build_work
from tests.unit.megakernel.cases import blur, shift
from tests.unit.megakernel.plans import PersistentPlan, persistent
from tests.unit.targets import REFERENCE, TWO_CORES


def through(arrays: int) -> PersistentPlan:
    """A chain from array to array, by one kernel."""
    made = [np.zeros(100) for _ in range(arrays)]
    return persistent(*((blur, 100, a, b) for a, b in pairwise(made)))


def in_place(steps: int) -> PersistentPlan:
    """Steps over two arrays that differ in a scalar."""
    a, b = np.zeros(100), np.zeros(100)
    calls: list[Any] = []
    for k in range(steps):
        calls += [(shift, 100, a, b, k + 1), (shift, 100, b, a, -k - 1)]
    return persistent(*calls)


def lines(plan: PersistentPlan) -> int:
    """Lines of the text that are no parameter and fill no cell."""
    text = generate(plan.stage.kernel, "strict", TWO_CORES, OPENCL_C).text
    body = text[text.index(") {", text.index("__kernel")) :].splitlines()
    body = [line for line in body if " = fq_passed." not in line]
    return sum("(fq_given + " not in line or "fq_operands" in line for line in body)


@pytest.mark.slow
@pytest.mark.parametrize("made", [through, in_place])
def test_the_text_does_not_grow_with_the_sets_of_operands(made: Any) -> None:
    few, many = made(5), made(20)
    assert len(set(operands_of(few.body).rows)) < len(set(operands_of(many.body).rows))
    assert lines(few) == lines(many)
    work = build_work(many.stage.kernel)
    assert work.operands <= len(many.stage.kernel.params) + 10


@pytest.mark.parametrize("plan", [through(6), in_place(4)])
def test_each_stage_finds_its_own(plan: PersistentPlan) -> None:
    """The cells of different parameters do not overlap, nor do the workers' tables."""
    body, schedule, operands = plan.body, plan.schedule(workers=3), operands_of(plan.body)
    records = schedule.words[q.HEADER :][: len(body.stages) * q.RECORD].reshape(-1, q.RECORD)
    numbers = code_bodies(body)
    for stage, record in zip(body.stages, records, strict=True):
        varying = operands.varying[numbers[stage.code]]
        assert varying
        found = schedule.words[record[q.OPERANDS] :][: len(varying)]
        wanted = [operands.cells[stage.arguments[k]] for k in varying]
        assert [int(cell) for cell in found] == wanted
    params = {param.name: param for param in plan.stage.kernel.params}

    def cells(name: str) -> int:
        match params[name]:
            case ArrayParam(contiguous=True) as array:
                return 1 + array.ndim
            case ArrayParam() as array:
                return 1 + 2 * array.ndim
        return 1

    taken = [cell + k for name, cell in operands.cells.items() for k in range(cells(name))]
    assert sorted(taken) == list(range(operands.count))
    # Workers beside rings keep what comes before the waits.
    waits = {int(record[q.WAITS]) >> q.WAITED_SHIFT for record in records}
    assert min(waits) == words_before_waits(body) <= table_words(body) == schedule.words[q.ORDER]
    assert all(record[q.OPERANDS] < min(waits) for record in records)
    counts = [int(record[q.WAITS]) & ((1 << q.WAITED_SHIFT) - 1) for record in records]
    assert counts == [len(stage.producers) for stage in body.stages]
    line = REFERENCE.control_line
    tables = schedule.control_words - int(schedule.words[q.GIVEN]) * line
    assert tables == 3 * q.table_lines(operands.count, line) * line
    assert tables // 3 * 4 >= operands.count * 8


def test_stages_that_do_not_differ_have_no_table() -> None:
    a, b = np.zeros((4, 9)), np.zeros(9)
    plan = persistent((blur, 9, a[0], b), (shift, 9, b, a[1], 1))
    assert operands_of(plan.body).count == 0
    text = generate(plan.stage.kernel, "strict", TWO_CORES, OPENCL_C).text
    assert "fq_given" not in text and "fq_operands" not in text
