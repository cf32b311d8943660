"""What tests of one module or package need."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache

import pytest

from fusionq.base.errors import DeviceError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Tests that come to compile for NVIDIA GPUs are skipped there where NVRTC is missing, whether
    they ask for it before (``nvrtc``) or not."""
    try:
        return (yield)
    except DeviceError as error:
        if str(error) == _why_nvrtc_is_missing():
            pytest.skip(str(error))
        raise


@cache
def _why_nvrtc_is_missing() -> str | None:
    """What whoever compiles by it is told, if it is missing."""
    from fusionq.backends.cuda.compiler import nvrtc_version

    try:
        nvrtc_version()
    except DeviceError as error:
        return str(error)
    return None
