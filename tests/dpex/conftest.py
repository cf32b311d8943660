from __future__ import annotations

import importlib.util

import pytest

from fusionq.dpex import load_numba_dpex

if importlib.util.find_spec("numba_dpex") is not None:
    load_numba_dpex()  # so that the tests can import it


@pytest.fixture(scope="session")
def device():
    """The dpex backend on the default SYCL device."""
    from fusionq.dpex.backend.backend import DpexBackend

    return DpexBackend()
