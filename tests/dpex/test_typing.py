"""The kernel language's types under the NumPy that numba-dpex needs."""

from __future__ import annotations

from tests.unit.frontend.test_numpy_versions import (  # noqa: F401  # collected here, for NumPy 1
    test_a_python_number_takes_the_type_beside_it,
    test_constants,
    test_plain_python_needs_numpy_2,
    test_types_at_run_time,
)
