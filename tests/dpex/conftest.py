from __future__ import annotations

import pytest

from fusionq.backends.dpex import load_numba_dpex
from fusionq.errors import DeviceError

try:
    load_numba_dpex()
except DeviceError as error:
    pytest.skip(f"these tests need the extra dpex: {error}", allow_module_level=True)


@pytest.fixture(scope="session")
def device():
    """The dpex backend on the default SYCL device."""
    from fusionq.backends.dpex.backend import DpexBackend

    return DpexBackend()
