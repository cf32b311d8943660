"""What the tests of this directory need: a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fusionq as fq
from fusionq.backends.cuda.devices import device_count


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    """Skips with the reason where there is no GPU."""
    try:
        count = device_count()
    except fq.DeviceError as error:
        pytest.skip(str(error).splitlines()[0])
    if not count:
        pytest.skip("the driver shows no GPU")


@pytest.fixture
def queue(gpu: None) -> Iterator[fq.FusionQueue]:
    """A queue with a stream of its own."""
    with fq.FusionQueue("cuda") as made:
        yield made
