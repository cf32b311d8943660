from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import QUEUES


@functools.cache
def default_runtime() -> str | None:
    """Whose the default device is, "sycl" or "cuda"; None where there is none."""
    try:
        with fq.FusionQueue() as queue:
            return queue._state.launcher.backend.abilities.runtime
    except fq.DeviceError:
        return None


def has_sycl() -> bool:
    """Whether the default device is a SYCL device, which it is where there is one."""
    return default_runtime() == "sycl"


@pytest.fixture(params=["reference", "sycl"])
def target(request: pytest.FixtureRequest) -> str | None:
    """What makes a queue: the reference backend, or the default device, SYCL's or a GPU."""
    if request.param == "sycl" and default_runtime() is None:
        pytest.skip("no SYCL device and no GPU")
    return None if request.param == "sycl" else "reference"


@pytest.fixture
def queue(target: str | None) -> Iterator[fq.FusionQueue]:
    q = fq.FusionQueue(target)
    yield q
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        q.close()
    assert not QUEUES


@pytest.fixture
def sycl_queue() -> Iterator[fq.FusionQueue]:
    if not has_sycl():
        pytest.skip("no SYCL device")
    with fq.FusionQueue() as q:
        yield q


def floats(n: int = 8, start: float = 1.0) -> fq.Buffer:
    """A buffer of float32: start, start + 1, …"""
    return fq.Buffer(np.arange(n, dtype=np.float32) + np.float32(start))


def empty(n: int = 8, **flags: bool) -> fq.Buffer:
    """A buffer of float32 without memory."""
    return fq.Buffer(n, np.float32, **flags)
