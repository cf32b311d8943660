"""Which loops of one work-item over local memory become vectors, and how that is written."""

import re

import numpy as np
import pytest

from fusionq.codegen.opencl.unit import OpenCLUnit
from fusionq.codegen.vector_steps import vector_step
from fusionq.ir.nodes import Binary, Const, For, Load, Select, Store, Var
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, INT64

PLACE = Var(INT64, "place")


def step(
    count=64, distance=64, start=0, step=1, op="add", type=FLOAT32, other="s", at=PLACE, more=()
):
    there = (Binary(INT64, "add", PLACE, Const(INT64, distance)),)
    value = Binary(type, op, Load(type, "s", (at,)), Load(type, other, there))
    bounds = (Const(INT64, start), Const(INT64, count), Const(INT64, step))
    return For("place", *bounds, (Store("s", (PLACE,), value), *more))


@pytest.mark.parametrize(
    ("given", "lanes"),
    [
        ({}, 8), ({"type": FLOAT64}, 4), ({"op": "mul"}, 8), ({"count": 8, "distance": 8}, 8),
        ({"count": 64, "distance": 256}, 8), ({"count": 4, "distance": 4, "type": FLOAT64}, 4),
    ],
)  # fmt: skip
def test_steps_of_sums_are_vectors(given, lanes):
    found = vector_step(step(**given), {"s"})
    assert found is not None
    assert found.lanes == lanes
    assert found.count == given.get("count", 64)


@pytest.mark.parametrize(
    "given",
    [
        {"distance": 63}, {"distance": 0}, {"distance": -64}, {"count": 60}, {"start": 8},
        {"step": 2}, {"step": -1}, {"op": "sub"}, {"type": INT32}, {"other": "t"}, {"count": 0},
        {"at": Binary(INT64, "add", PLACE, Const(INT64, 1))}, {"at": Var(INT64, "k")},
        {"more": (Store("s", (PLACE,), Const(FLOAT32, np.float32(0))),)},
    ],
)  # fmt: skip
def test_other_loops_are_not(given):
    assert vector_step(step(**given), {"s"}) is None


def test_only_arrays_in_local_memory_and_no_extrema():
    assert vector_step(step(), {"t"}) is None
    loop = step()
    (store,) = loop.body
    value = Select(FLOAT32, Const(INT64, 1), store.value.lhs, store.value.rhs)
    chosen = For("place", loop.start, loop.stop, loop.step, (Store("s", (PLACE,), value),))
    assert vector_step(chosen, {"s"}) is None


def test_elements_need_no_alignment_but_their_own():
    texts = {}
    text = OpenCLUnit().vector_step("s[k]", "s[k + 64]", "+", "float", 8, texts.__setitem__)
    assert text == (
        "*(__local fq_float8*)&s[k] = *(__local fq_float8*)&s[k] + *(__local fq_float8*)&s[k + 64];"
    )
    assert re.search(r"typedef float8 fq_float8 .*aligned\(sizeof\(float\)\)", texts["fq_float8"])
