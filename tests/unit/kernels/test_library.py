"""Every library kernel against its NumPy reference, on the interpreter and on the device."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.kernels import LIBRARY, LibraryKernel

SIZES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((1,), (37,), (0,), (1000,)),
    2: ((1, 1), (5, 17), (0, 3), (33, 64)),
    3: ((1, 1, 1), (3, 4, 7), (2, 0, 3), (5, 8, 33)),
}
BEYOND_A_SLAB = (9001,)
"""For kernels that cut a vector into slabs: two whole ones and a part."""
CASES = [(name, dtype) for name, entry in LIBRARY.items() for dtype in entry.dtypes]


@pytest.fixture(scope="module", params=["reference", "device"])
def queue(request: pytest.FixtureRequest) -> Iterator[fq.FusionQueue]:
    try:
        made = fq.FusionQueue("reference" if request.param == "reference" else None)
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
    dtype: str,
    buffer: Callable[[np.ndarray[Any, Any]], fq.Buffer],
) -> None:
    arguments = entry.arguments(extents, dtype, np.random.default_rng(7))
    on_device = [buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
    expected = copy.deepcopy(arguments)
    queue.submit(entry.kernel, entry.range_of(extents), *on_device).wait()
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
            if is_output and np.any(bound):
                assert (np.abs(found.numpy() - wanted) <= bound).all(), parameter
            else:
                assert_close(found.numpy(), wanted, entry.ulps if is_output else 0, parameter)


def assert_close(
    found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], ulps: int, name: str
) -> None:
    if ulps:
        allowed = ulps * np.spacing(np.maximum(np.abs(wanted), 1).astype(wanted.dtype))
        assert (np.abs(found - wanted) <= allowed).all(), name
    else:
        assert found.tobytes() == wanted.tobytes(), f"{name}: {found!r} for {wanted!r}"


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_kernel_is_its_reference(queue: fq.FusionQueue, name: str, dtype: str) -> None:
    entry = LIBRARY[name]
    on_interpreter = queue.device.kind == "reference"
    for extents in SIZES[entry.ndim][: 3 if on_interpreter else 4]:
        check(queue, entry, extents, dtype, whole)
    if entry.family == "slabs" and (dtype == entry.dtypes[0] or not on_interpreter):
        check(queue, entry, BEYOND_A_SLAB, dtype, whole)


@pytest.mark.parametrize("name", LIBRARY)
def test_kernel_on_views(queue: fq.FusionQueue, name: str) -> None:
    entry = LIBRARY[name]
    for buffer in (every_other, backwards):
        check(queue, entry, SIZES[entry.ndim][1], entry.dtypes[-1], buffer)


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
