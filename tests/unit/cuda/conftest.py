"""What the tests of this directory need."""

from __future__ import annotations

import pytest

from fusionq.backends.cuda.compiler import nvrtc_version
from fusionq.base.errors import DeviceError


@pytest.fixture(scope="session")
def nvrtc() -> tuple[int, int]:
    """NVRTC's version; skips with the reason where it is not there."""
    try:
        return nvrtc_version()
    except DeviceError as error:
        pytest.skip(str(error))
