"""Examples of random tests are the same in each run: what conftest.py sets of Hypothesis."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers


def test_examples_do_not_depend_on_the_modules_imported_so_far():
    if not settings().derandomize:
        pytest.skip("this profile draws new examples in each run")
    assert len(providers._get_local_constants()) == 0
