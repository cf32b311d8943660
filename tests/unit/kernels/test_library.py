"""Every library kernel against its NumPy reference, on the interpreter and on the device.

A kernel's dtypes share one program, which runs the kernel once for each of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels import LIBRARY, LibraryKernel
from tests.in_turn import is_whole
from tests.unit.tables import for_each

SIZES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,), (37,), (0,), (1000,)),
    2: ((1, 1), (5, 17), (0, 3), (33, 64)),
    3: ((1, 1, 1), (3, 4, 7), (2, 0, 3), (5, 8, 33)),
}
BEYOND_A_SLAB = (9001,)
"""For kernels that cut a vector into slabs: two whole ones and a part."""
FAMILIES = sorted({entry.family for entry in LIBRARY.values()})
ONE_A_FAMILY = {(entry.family, entry.ndim): name for name, entry in LIBRARY.items()}


@pytest.fixture(scope="module")
def interpreter() -> Iterator[fq.FusionQueue]:
    with fq.FusionQueue("reference") as made:
        yield made


@pytest.fixture(scope="module")
def device() -> Iterator[fq.FusionQueue]:
    try:
        made = fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    with made:
        yield made


def whole(array: np.ndarray[Any, Any]) -> fq.Buffer:
    return fq.Buffer(array)


def every_other(array: np.ndarray[Any, Any]) -> fq.Buffer:
    """A view with gaps: every other element of each axis."""
    wide = np.zeros(tuple(2 * extent + 1 for extent in array.shape), array.dtype)
    every = tuple(slice(1, None, 2) for _ in array.shape)
    wide[every] = array
    return fq.Buffer(wide)[every]


def backwards(array: np.ndarray[Any, Any]) -> fq.Buffer:
    """A view with negative strides."""
    flip = (slice(None, None, -1),) * array.ndim
    return fq.Buffer(array[flip].copy())[flip]


def check(
    queue: fq.FusionQueue,
    entry: LibraryKernel,
    extents: tuple[int, ...],
    dtypes: tuple[str, ...],
    buffer: Callable[[np.ndarray[Any, Any]], fq.Buffer] = whole,
) -> None:
    """Run the kernel on each of ``dtypes``, all in one launch, and compare."""
    submitted(queue, entry, extents, dtypes, buffer)()


def submitted(
    queue: fq.FusionQueue,
    entry: LibraryKernel,
    extents: tuple[int, ...],
    dtypes: tuple[str, ...],
    buffer: Callable[[np.ndarray[Any, Any]], fq.Buffer] = whole,
) -> Callable[[], None]:
    """Submit the kernel for each of ``dtypes``, as one launch; what compares the results."""
    arguments = {d: entry.arguments(extents, d, np.random.default_rng(7)) for d in dtypes}
    on_device = {
        dtype: [buffer(a) if isinstance(a, np.ndarray) else a for a in own]
        for dtype, own in arguments.items()
    }
    kernel = entry.kernel
    if len(dtypes) > 1:
        kernel = for_each(kernel, entry.parameters, dtypes)
    queue.submit(kernel, entry.range_of(extents), *chain(*on_device.values()))

    def compare() -> None:
        for dtype, own in arguments.items():
            assert_right(entry, extents, dtype, on_device[dtype], own)

    return compare


def assert_right(
    entry: LibraryKernel,
    extents: tuple[int, ...],
    dtype: str,
    on_device: Sequence[Any],
    arguments: Sequence[Any],
) -> None:
    """``on_device`` holds what the reference makes of ``arguments``."""
    expected = copy.deepcopy(arguments)
    bound: float | np.ndarray[Any, Any] = 0
    entry.reference(*expected)
    if entry.reorders and np.dtype(dtype).kind == "f":
        absolute = [abs(a) if isinstance(a, np.ndarray) else copy.copy(a) for a in arguments]
        entry.reference(*absolute)
        largest = np.maximum(absolute[-1], np.abs(expected[-1]))
        bound = math.prod(extents) * np.finfo(dtype).eps * largest
    for parameter, found, wanted in zip(entry.parameters, on_device, expected, strict=True):
        if isinstance(found, fq.Buffer):
            assert isinstance(wanted, np.ndarray)
            is_output = parameter == entry.parameters[-1]
            where = f"{parameter} of {dtype}"
            if is_output and np.any(bound):
                assert (np.abs(found.numpy() - wanted) <= bound).all(), where
            else:
                assert_close(found.numpy(), wanted, entry.ulps if is_output else 0, where)


def assert_close(
    found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], ulps: int, name: str
) -> None:
    if ulps:
        allowed = ulps * np.spacing(np.maximum(np.abs(wanted), 1).astype(wanted.dtype))
        assert (np.abs(found - wanted) <= allowed).all(), name
    else:
        assert found.tobytes() == wanted.tobytes(), f"{name}: {found!r} for {wanted!r}"


def taken(entry: LibraryKernel, number: int) -> tuple[str, ...]:
    """Every third dtype from that of the number on, or the last."""
    return entry.dtypes[number::3] or entry.dtypes[-1:]


@pytest.mark.parametrize("name", LIBRARY)
def test_kernel_is_its_reference_on_the_interpreter(interpreter: fq.FusionQueue, name: str) -> None:
    """Each dtype once, another size for each; the device has all of both."""
    entry = LIBRARY[name]
    sizes = SIZES[entry.ndim][:3]
    for number, extents in enumerate(sizes):
        check(interpreter, entry, extents, entry.dtypes if is_whole() else taken(entry, number))
    if entry.family == "slabs":
        check(interpreter, entry, BEYOND_A_SLAB, entry.dtypes[:1])
    check_views(interpreter, entry)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_are_their_references_on_the_device(device: fq.FusionQueue, family: str) -> None:
    """Kernels of a list that is not fused are built as one program, as far as they may be.  Each
    has two sizes, the next one the others; on the interpreter they have more."""
    entries = [entry for entry in LIBRARY.values() if entry.family == family]
    compare = []
    with fq.fusion(device, strategy="unfused"):
        for number, entry in enumerate(entries):
            sizes = SIZES[entry.ndim]
            for extents in sizes if is_whole() else sizes[number % 2 * 2 :][:2]:
                compare.append(submitted(device, entry, extents, entry.dtypes))
            if entry.family == "slabs":
                compare.append(submitted(device, entry, BEYOND_A_SLAB, entry.dtypes))
    device.wait()
    for one in compare:
        one()


@pytest.mark.parametrize("name", ONE_A_FAMILY.values())
def test_views_on_the_device(device: fq.FusionQueue, name: str) -> None:
    """Strides are the same arguments for all kernels."""
    for buffer in (every_other, backwards):
        entry = LIBRARY[name]
        check(device, entry, SIZES[entry.ndim][1], entry.dtypes, buffer)


def check_views(queue: fq.FusionQueue, entry: LibraryKernel) -> None:
    for buffer in (every_other, backwards):
        check(queue, entry, SIZES[entry.ndim][1], entry.dtypes[-2:], buffer)


def test_every_family_is_there() -> None:
    families = {entry.family for entry in LIBRARY.values()}
    assert families == {
        "elementwise", "axpy", "activations", "copy_fill", "select", "multidim",
        "reductions", "scans", "row_reductions", "slabs", "normalisation", "products", "attention",
        "stencils",
    }  # fmt: skip


@pytest.mark.parametrize("name", LIBRARY)
def test_kernel_says_what_it_does(name: str) -> None:
    entry = LIBRARY[name]
    assert entry.kernel.__doc__, f"{name} has no docstring"
    assert entry.kernel.__name__ == name


def test_references_tell_their_outputs_from_their_inputs() -> None:
    """A reference that wrote nothing would let a kernel that writes nothing pass."""
    for entry in LIBRARY.values():
        before = entry.arguments(SIZES[entry.ndim][1], entry.dtypes[-1], np.random.default_rng(1))
        after = copy.deepcopy(before)
        entry.reference(*after)
        *inputs, output = zip(before, after, strict=True)
        assert all(np.array_equal(a, b) for a, b in inputs if isinstance(a, np.ndarray)), entry.name
        assert not np.array_equal(*output), entry.name
