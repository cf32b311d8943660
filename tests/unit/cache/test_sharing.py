"""Parts of cache entries that occur several times are written once."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.cache.relocation import absolute, relative
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.cache.sharing import packed, unpacked
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

REASON = "a text that is longer than a reference to it"


@dataclass(frozen=True)
class Leaf:
    text: str


@dataclass(frozen=True)
class Pair:
    first: Leaf
    second: Leaf
    names: tuple[str, ...]


@dataclass(frozen=True)
class Top:
    pairs: tuple[Pair, ...]


def written(data: object) -> object:
    return json.loads(json.dumps(packed(data)))


def test_what_occurs_once_is_written_as_it_is():
    data = [["Leaf", "x"], {"a": [1, 2.5, None, True]}, "x", REASON]
    assert packed(data) == {"data": data, "shared": []}
    assert unpacked(written(data)) == data


def test_what_occurs_several_times_is_written_once():
    leaf = Leaf(REASON)
    pair = Pair(leaf, leaf, (REASON, "x"))
    top = Top((pair,) * 50)
    contents = json.dumps(packed(encode(top)))
    assert contents.count(REASON) == 1 and contents.count("Pair") == 1
    found = decode(Top, unpacked(json.loads(contents)))
    assert found == top
    assert len({id(p) for p in found.pairs}) == 1
    assert found.pairs[0].first is found.pairs[0].second


def test_equal_parts_that_are_not_one_are_right_too():
    top = Top(tuple(Pair(Leaf("a"), Leaf("b"), ("a",)) for _ in range(3)))
    assert decode(Top, unpacked(written(encode(top)))) == top


def test_sharing_outlives_relocation():
    functions = [("kernels.py", 10, 5)] * 3
    leaf = Leaf("kernels.py:12 says why, at some length")
    data = encode(Top((Pair(leaf, leaf, ()),) * 4))
    moved = absolute(unpacked(written(relative(data, functions))), [("other.py", 20, 5)] * 3)
    (text,) = {pair.first.text for pair in decode(Top, moved).pairs}
    assert text == "other.py:22 says why, at some length"
    assert len({id(pair) for pair in moved[1]}) == 1


@pytest.mark.parametrize(
    "contents",
    [
        [],
        {"data": []},
        {"data": [], "shared": {}},
        {"data": ["\0=", 0], "shared": []},
        {"data": ["\0=", -1], "shared": [1]},
        {"data": ["\0=", "0"], "shared": [1]},
        {"data": ["\0=", True], "shared": [1, 2]},
        {"data": ["\0=", 0], "shared": [["\0=", 0]]},
        {"data": ["\0=", 0], "shared": [[["\0=", 1]], [["\0=", 0]]]},
    ],
)
def test_what_is_no_such_data_is_refused(contents):
    with pytest.raises(MalformedData):
        unpacked(contents)


@fq.kernel
def averaged(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        b[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.333


def test_a_plan_of_repeats_has_their_kernel_once():
    a, b = np.zeros(5000), np.zeros(5000)
    calls = [(averaged, 5000, a, b), (averaged, 5000, b, a)] * 20
    plan = make_plan(submissions(*calls), FusionOptions(strategy="sequence"), REFERENCE)
    assert len(plan.stages) == 40 and len({id(stage.kernel) for stage in plan.stages}) == 1
    contents = json.dumps(packed(encode(plan)))
    assert contents.count('"Kernel"') == 1
    assert contents.count(__file__) == 1
    found = decode(Plan, unpacked(json.loads(contents)))
    assert found == plan
    assert len({id(stage.kernel) for stage in found.stages}) == 1
