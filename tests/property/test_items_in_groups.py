"""Random lists of work-groups that write some rows each, and of plain ranges that read these, their
neighbours' or those of others: bit for bit as unfused."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.running import examples, needs_device

GROUPS, LANES = 6, 8


def _writer(each: int, by_leader: bool) -> Any:
    """Each work-group writes ``each`` elements, by its first work-item or by several of them."""

    @fq.kernel
    def by_one(item: fq.NdItem, a, out):
        group = item.get_group()
        g = group.get_group_id(0)
        total = fq.reduce_over_group(group, a[g * each], "add")
        if item.get_local_linear_id() == 0:
            for k in range(each):
                out[g * each + k] = total + a[g * each + k] * (k + 1)

    @fq.kernel
    def by_several(item: fq.NdItem, a, out):
        group = item.get_group()
        g, lane = group.get_group_id(0), item.get_local_linear_id()
        total = fq.reduce_over_group(group, lane, "add")
        if lane >= LANES - each:
            out[g * each + LANES - 1 - lane] = total + 3 * a[g * each + LANES - 1 - lane]

    return by_one if by_leader else by_several


def _reader(form: str, each: int, n: int) -> Any:
    @fq.kernel
    def own(item: fq.Item, a, b, out):
        i = item.get_id(0)
        out[i] = a[i] + 2 * b[i]

    @fq.kernel
    def turned(item: fq.Item, a, b, out):
        i = item.get_id(0)
        out[i] = a[i // each * each + each - 1 - i % each] - b[i]

    @fq.kernel
    def before(item: fq.Item, a, b, out):
        i = item.get_id(0)
        out[i] = a[max(i - 1, 0)] + b[i] * item.get_range(0)

    @fq.kernel
    def other_end(item: fq.Item, a, b, out):
        i = item.get_id(0)
        if i % 2 == 0:
            out[i] = a[n - 1 - i] + b[i] + i

    return {"own": own, "turned": turned, "before": before, "other_end": other_end}[form]


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, list[tuple[Any, ...]]]:
    """How many elements arrays have, and what is submitted: a kernel, its range, and the numbers of
    its arrays."""
    each = draw(st.sampled_from((1, 2, 4, 7, LANES)))
    n = GROUPS * each
    flat = draw(st.booleans())
    space = fq.NdRange(GROUPS * LANES, LANES) if flat else fq.NdRange((GROUPS, LANES), (1, LANES))
    made: list[tuple[Any, ...]] = []
    array = st.integers(0, 3)
    for _ in range(draw(st.integers(2, 6))):
        out = draw(array)
        if not made or draw(st.integers(0, 2)) == 0:
            source = draw(array.filter(lambda a, out=out: a != out))
            made.append((_writer(each, draw(st.booleans())), space, source, out))
        else:
            form = draw(st.sampled_from(("own", "turned", "before", "other_end")))
            a = draw(array.filter(lambda a, out=out, form=form: form == "own" or a != out))
            last = made[-1][-1]
            a = last if draw(st.booleans()) and (form == "own" or last != out) else a
            made.append((_reader(form, each, n), n, a, draw(array), out))
    return n, made


def _run(queue: fq.FusionQueue, n: int, made: Any, strategy: str) -> list[np.ndarray]:
    arrays = [fq.Buffer((np.arange(n) * (k + 3)) % 11 - 4) for k in range(4)]
    with fq.fusion(queue, strategy=strategy) as f:
        for kernel, space, *numbers in made:
            queue.submit(kernel, space, *(arrays[k] for k in numbers))
    f.event.wait()
    return [np.array(array.numpy()) for array in arrays]


def _check(target: str | None, made: tuple[int, list[tuple[Any, ...]]], strategy: str) -> None:
    n, calls = made
    with fq.FusionQueue(target) if target else fq.FusionQueue() as queue:
        expected = _run(queue, n, calls, "unfused")
        found = _run(queue, n, calls, strategy)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@examples(30)
@given(lists(), st.sampled_from(("fused", "sequence", "megakernel")))
def test_on_the_reference_device(made: Any, strategy: str) -> None:
    _check("reference", made, strategy)


@needs_device
@examples(8)
@given(lists(), st.sampled_from(("fused", "megakernel")))
def test_on_the_sycl_device(made: Any, strategy: str) -> None:
    _check(None, made, strategy)
