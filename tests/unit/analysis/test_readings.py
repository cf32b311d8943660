"""What is found out once for all analyses of a plan: kernels, and equal relations."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import dependence, list_analysis
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.readings import Readings
from tests.unit.lists import completed, submissions


@fq.kernel
def shifted(item: fq.Item, a, b, distance):
    i = item.get_id(0)
    if i + distance < a.shape[0]:
        b[i] = a[i + distance]


@fq.kernel
def strided(item: fq.Item, a, b, distance):
    i = item.get_id(0)
    if distance * i < a.shape[0]:
        b[i] = a[distance * i]


class Counted:
    """``function``, counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
        self.calls = 0
        original = getattr(module, name)

        def counting(*arguments: object) -> object:
            self.calls += 1
            return original(*arguments)

        monkeypatch.setattr(module, name, counting)


def found(*calls: tuple[object, ...]) -> list[list[str]]:
    """The scopes of the dependences of each submission."""
    listed = Questions(submissions(*calls))
    return [[d.scope for d in of_one] for of_one in completed(direct_dependences(listed))]


def test_lists_of_other_sizes_and_scalars_ask_no_new_questions(monkeypatch):
    """Each pair is over another range, with other distances: a structure of its own."""
    asked = Counted(monkeypatch, dependence, "_of_elements")
    read = Counted(monkeypatch, list_analysis, "known_accesses")

    def pyramid(levels: int):
        a = [np.zeros(1000 - 10 * k) for k in range(levels + 1)]
        return [(shifted, a[k + 1].size, a[k], a[k + 1], 3 + k) for k in range(levels)]

    few = found(*pyramid(4))
    counts = asked.calls, read.calls
    many = found(*pyramid(12))
    assert few[:4] == many[:4] and {tuple(scopes) for scopes in many[1:]} == {("GLOBAL",)}
    assert asked.calls - counts[0] <= counts[0] and read.calls - counts[1] <= counts[1]


def test_an_answer_serves_values_only_for_which_it_is_the_same():
    """Elements that are read beyond those that are written, or among them, by the scalar."""
    a, b, c = (np.zeros(100) for _ in range(3))
    scopes = [
        found((shifted, 100, a, b, 1), (shifted, reach, b, c, distance))[1]
        for reach, distance in ((40, 5), (40, 0), (100, 98), (100, 99), (40, 5))
    ]
    together = found(
        *[
            call
            for reach, distance in ((40, 5), (40, 0), (100, 98), (100, 99), (40, 5))
            for call in ((shifted, 100, a, b, 1), (shifted, reach, b, c, distance))
        ]
    )
    assert scopes == [["GLOBAL"], ["ITEM"], ["GLOBAL"], ["NONE"], ["GLOBAL"]]
    for k, alone in enumerate(scopes):
        assert set(alone) <= set(together[2 * k + 1])


def test_kernels_that_rest_on_values_are_read_for_each(monkeypatch):
    read = Counted(monkeypatch, list_analysis, "known_accesses")
    a, b = np.zeros(100), np.zeros(100)
    for calls, times in (((2, 2, 2), 1), ((2, 3, 2), 2)):
        read.calls = 0
        questions = Questions(submissions(*((strided, 10, a, b, d) for d in calls)))
        for s in range(3):
            questions.ask((s,), "accesses", lambda analysis: len(analysis.accesses))
        assert read.calls == times


@fq.kernel
def exchanged(item: fq.Item, a, distance):
    i = item.get_id(0)
    j = i ^ distance
    if j > i:
        a[i], a[j] = min(a[i], a[j]), max(a[i], a[j])


def test_a_kernel_is_read_for_so_many_values(monkeypatch):
    """What others access is not known then; values that have been read stay known."""
    monkeypatch.setattr(list_analysis, "MOST_VERSIONS", 3)
    a = np.zeros(64)
    distances = (1, 2, 4, 8, 16, 4, 1)
    questions = Questions(submissions(*((exchanged, 64, a, d) for d in distances)))
    known = [
        questions.ask(
            (s,),
            "known",
            lambda analysis: all(x.indices is not None for x in analysis.accesses[0].accesses),
        )
        for s in range(len(distances))
    ]
    assert known == [True, True, True, False, False, True, True]


def test_canonical_objects():
    readings = Readings()
    one = isl.Map("[n] -> { [i] -> [i + 1] : 0 <= i < n }")
    same = isl.Map("[n] -> { [i] -> [1 + i] : i < n and i >= 0 }")
    assert readings.canonical(one) is one
    assert readings.canonical(same) is one
    for other in ("[m] -> { [i] -> [i + 1] : 0 <= i < m }", "[n] -> { [i] -> [i + 1] }"):
        assert readings.canonical(isl.Map(other)) is not one
    assert readings.canonical(one.domain()) is not one
