"""Kernels that a function makes anew at each call: those that are alike are read and checked once,
those that capture something else are kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.frontend import first_kernels
from fusionq.frontend.first_kernels import first_like
from fusionq.submission import admission


@pytest.fixture(autouse=True)
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_kernels, "_first", {})


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The kernels of submissions that took the long way."""
    seen: list[object] = []
    admit = admission.admit

    def counted(backend: Any, kernel: object, *others: Any) -> Any:
        seen.append(kernel)
        return admit(backend, kernel, *others)

    monkeypatch.setattr(admission, "admit", counted)
    yield seen


def scaled_by(factor: Any) -> fq.KernelFunction:
    @fq.kernel
    def scaled(item: fq.Item, a: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = a[i] * factor

    return scaled


def run(kernel: Any, dtype: Any = np.float64, value: Any = 3) -> Any:
    queue = fq.FusionQueue("reference")
    out = fq.Buffer(4, dtype)
    queue.submit(kernel, 4, fq.Buffer(np.full(4, value, dtype)), out)
    return out.numpy()[0]


def test_a_kernel_made_anew_is_read_and_checked_once(admitted: list[object]) -> None:
    queue = fq.FusionQueue("reference")
    a, out = fq.Buffer(np.arange(5.0)), fq.Buffer(5, np.float64)
    for _ in range(6):
        queue.submit(scaled_by(2.0), 5, a, out)
        with fq.fusion(queue):
            queue.submit(scaled_by(2.0), 5, a, out)
    np.testing.assert_array_equal(out.numpy(), np.arange(5.0) * 2)
    assert len(admitted) == 1


def test_it_leaves_nothing_behind(admitted: list[object]) -> None:
    queue = fq.FusionQueue("reference")
    a, out = fq.Buffer(np.arange(5.0)), fq.Buffer(5, np.float64)
    for _ in range(40):
        queue.submit(scaled_by(2.0), 5, a, out)
    assert len(first_kernels._first) == 1
    assert len(queue._state.launcher.cache.known) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (2.0, 2.5), (2, 2.0), (np.float32(2), np.float64(2)), (True, 1), (0.0, -0.0),
        (np.int8(2), np.int64(2)),
    ],
)  # fmt: skip
def test_other_constants_are_other_kernels(one: Any, other: Any) -> None:
    assert first_like(scaled_by(one)) is not first_like(scaled_by(other))
    for factor in (one, other, one):
        expected = np.float64(3) * factor
        assert run(scaled_by(factor)) == expected
        assert np.signbit(run(scaled_by(factor))) == np.signbit(expected)


def indexed(table: Any) -> fq.KernelFunction:
    @fq.kernel
    def kernel(item: fq.Item, a: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = a[i] * table[1]

    return kernel


@pytest.mark.parametrize("make", [list, np.array])
def test_contents_of_a_table_that_changes(make: Callable[[Any], Any]) -> None:
    table = make([1.0, 2.0])
    assert run(indexed(table)) == 6
    table[1] = 5.0
    assert run(indexed(table)) == 15
    table[1] = 2.0
    assert run(indexed(table)) == 6


def test_a_function_that_it_calls_is_another() -> None:
    def calling(function: Any) -> fq.KernelFunction:
        @fq.kernel
        def kernel(item: fq.Item, a: Any, out: Any) -> None:
            i = item.get_id(0)
            out[i] = function(a[i])

        return kernel

    def adding(more: float) -> Any:
        return lambda x: x + more

    assert run(calling(adding(1.0))) == 4
    assert run(calling(adding(2.0))) == 5
    assert run(calling(lambda x: x - 1.0)) == 2
    assert first_like(calling(adding(1.0))) is first_like(calling(adding(1.0)))


def test_an_attribute_that_changes() -> None:
    settings = SimpleNamespace(factor=2.0)

    def kernel_now() -> fq.KernelFunction:
        @fq.kernel
        def kernel(item: fq.Item, a: Any, out: Any) -> None:
            i = item.get_id(0)
            out[i] = a[i] * settings.factor

        return kernel

    assert run(kernel_now()) == 6
    settings.factor = 4.0
    assert run(kernel_now()) == 12


class Scaling:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def method(self, item: fq.Item, a: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = a[i] * self.factor


def powers(item: fq.Item, a: Any, out: Any, factor: float) -> None:
    i = item.get_id(0)
    out[i] = a[i] * factor


def test_what_is_bound_is_another() -> None:
    for factor in (2.0, 3.0, 2.0):
        assert run(fq.kernel(Scaling(factor).method)) == 3 * factor
        assert run(fq.kernel(partial(powers, factor=factor))) == 3 * factor


def test_a_captured_name_is_read_when_the_kernel_is_first_used() -> None:
    factor = 2.0

    def make() -> fq.KernelFunction:
        @fq.kernel
        def kernel(item: fq.Item, a: Any, out: Any) -> None:
            i = item.get_id(0)
            out[i] = a[i] * factor

        return kernel

    assert run(make()) == 6
    second = make()
    factor = 7.0
    assert run(second) == 21  # not what the first one has read
    factor = 1.0
    assert run(second) == 21  # once and for all


def test_defaults_are_the_kernels_own() -> None:
    queue = fq.FusionQueue("reference")

    def adding_to(target: fq.Buffer) -> fq.KernelFunction:
        @fq.kernel
        def kernel(item: fq.Item, a: Any, out: Any = target) -> None:
            i = item.get_id(0)
            out[i] = a[i]

        return kernel

    a = fq.Buffer(np.arange(4.0))
    targets = [fq.Buffer(4, np.float64) for _ in range(3)]
    for target in targets:
        queue.submit(adding_to(target), 4, a)
    for target in targets:
        np.testing.assert_array_equal(target.numpy(), np.arange(4.0))


def test_annotations_of_the_item_that_differ() -> None:
    def over(kind: Any) -> fq.KernelFunction:
        def body(item, a, out):  # type: ignore[no-untyped-def]  # below
            out[0] = a[0]

        body.__annotations__["item"] = kind
        return fq.kernel(body)

    assert run(over(fq.Item)) == 3
    with pytest.raises(fq.ArgumentError, match="runs over an NdItem"):
        run(over(fq.NdItem))


def test_options_that_differ() -> None:
    def of(size: int) -> fq.KernelFunction:
        @fq.kernel(work_group_size=size)
        def kernel(item: fq.NdItem, a: Any, out: Any) -> None:
            i = item.get_global_id(0)
            out[i] = a[i]

        return kernel

    queue = fq.FusionQueue("reference")
    a, out = fq.Buffer(np.arange(4.0)), fq.Buffer(4, np.float64)
    queue.submit(of(4), fq.NdRange(4, 4), a, out)
    with pytest.raises(fq.ArgumentError, match=r"work_group_size=\(2,\)"):
        queue.submit(of(2), fq.NdRange(4, 4), a, out)


def test_reductions_of_kernels_made_anew(admitted: list[object]) -> None:
    queue = fq.FusionQueue("reference")
    a = fq.Buffer(np.arange(6.0))
    counts = []
    for _ in range(4):

        @fq.kernel
        def total(item: fq.Item, a: Any, r: Any) -> None:
            r.combine(a[item.get_id(0)])

        result = fq.Buffer(1, np.float64)
        queue.submit(total, 6, a, fq.Reduction(result, "add"))
        assert result.numpy()[0] == 15
        counts.append(len(admitted))
    assert counts[-1] == counts[0]


def test_errors_name_the_kernel_and_its_call() -> None:
    def wrong() -> fq.KernelFunction:
        @fq.kernel
        def kernel(item: fq.Item, a: Any, out: Any) -> None:
            out[item.get_id(0)] = a.nothing

        return kernel

    for _ in range(2):
        with pytest.raises(fq.KernelLanguageError, match="Submitted at"):
            run(wrong())
