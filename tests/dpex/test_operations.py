"""The operations' tests of the SYCL backend, on the dpex backend.

Whatever numba-dpex does differently from NumPy, the source that is printed for it makes up for.
"""

from __future__ import annotations

import pytest

from fusionq.ir.types import FLOAT16
from tests.unit.sycl import test_operations as operations
from tests.unit.sycl.test_operations import (  # noqa: F401  # collected here, for this device
    test_arithmetic,
    test_bool_operations,
    test_casts,
    test_comparisons_and_order,
    test_exact_functions_of_one_argument,
    test_integer_powers,
    test_operations_with_constants,
    test_random_bits_round_as_in_numpy,
)

pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)


@pytest.fixture(autouse=True)
def _without_float16(request, monkeypatch):
    """numba-dpex has no float16."""
    if FLOAT16 in _parameters(request.node):
        pytest.skip("numba-dpex cannot compile float16")
    monkeypatch.setattr(operations, "ALL", tuple(t for t in operations.ALL if t != FLOAT16))


def _parameters(node):
    call = getattr(node, "callspec", None)
    return () if call is None else call.params.values()
