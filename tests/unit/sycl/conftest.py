from __future__ import annotations

import pytest

from fusionq.backends.sycl.backend import SyclBackend

pytest.importorskip("dpctl", reason="the SYCL backend needs dpctl")


@pytest.fixture(scope="session")
def device():
    """A backend on the default SYCL device."""
    return SyclBackend()
