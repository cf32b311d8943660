"""Random kernels have no races of their own: no two work-items write the same element.

Each body runs as plain Python, over arrays that note who wrote what.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.halo_programs import halo_programs
from tests.property.index_forms import FORMS, FormAxis
from tests.property.kernel_parameters import ItemArray
from tests.property.launches import Array
from tests.property.programs import Program, SubmissionSpec
from tests.property.reductions import View
from tests.property.running import examples
from tests.property.stage_programs import stage_programs


class Noted:
    """An array whose writers are noted by element."""

    def __init__(self, data: Array) -> None:
        self._data = data
        self.writers: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        self.item: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    def __getitem__(self, index: Any) -> Any:
        return self._data[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        place = index if isinstance(index, tuple) else (index,)
        self.writers.setdefault(tuple(map(int, place)), set()).add(self.item)
        with np.errstate(all="ignore"):
            self._data[index] = np.asarray(value).astype(self._data.dtype)


class PlainItem:
    """A work-item's ids."""

    def __init__(self, ids: tuple[int, ...], extents: tuple[int, ...]) -> None:
        self._ids, self._extents = ids, extents

    def get_id(self, dim: int) -> int:
        return self._ids[dim]

    get_global_id = get_id

    def get_linear_id(self) -> int:
        return int(np.ravel_multi_index(self._ids, self._extents))


def check(program: Program) -> None:
    data = [spec.data.copy() for spec in program.buffers]
    for submission in program.submissions:
        run(submission, data)


def run(submission: SubmissionSpec, data: list[Array]) -> None:
    range_, kernel = submission.range, submission.kernel
    extents = tuple(range_.global_range if isinstance(range_, fq.NdRange) else range_)
    function = kernel.define()
    arguments: list[Any] = []
    for parameter, argument in zip(kernel.parameters, submission.arguments, strict=True):
        if isinstance(argument, View):
            array = data[argument.buffer][argument.slices]
            noted = isinstance(parameter, ItemArray) and parameter.written
            arguments.append(Noted(array) if noted else array)
        else:
            arguments.append(argument)
    outputs = [a for a in arguments if isinstance(a, Noted)]
    for ids in product(*map(range, extents)):
        for output in outputs:
            output.item = ids
        with np.errstate(all="ignore"):
            function(PlainItem(ids, extents), *arguments)
    for output in outputs:
        for place, writers in output.writers.items():
            assert len(writers) == 1, f"{writers} write element {place}:\n{kernel.source}"


@pytest.mark.parametrize("form", FORMS)
def test_indices_that_no_two_work_items_have(form: str) -> None:
    """Also where the range is larger than the array; the text says what the values say."""
    axis = FormAxis(0, form=form)
    for n, items in product(range(9), range(20)):
        taken = [axis.values([i], n) for i in range(items)]
        found = [v for values in taken for v in values if 0 <= v < n]
        assert len(found) == len(set(found))
        for i, values in enumerate(taken):
            inside = n > 0 and eval(axis.guard("n"), {"i": i, "n": n})
            assert inside == any(0 <= v < n for v in values)
            assert not inside or values == [eval(axis.text("n"), {"i": i, "n": n})]


@examples(100)
@given(stage_programs())
def test_stages(program: Program) -> None:
    check(program)


@examples(40)
@given(st.sampled_from((1, 2)).flatmap(lambda ndim: halo_programs(ndims=(ndim,))))
def test_halos(program: Program) -> None:
    check(program)
