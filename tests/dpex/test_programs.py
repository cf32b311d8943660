"""Random lists of submissions: fused and unfused on the dpex backend, and the reference device,
agree bit for bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given

import fusionq as fq
from fusionq.ir.types import FLOAT16
from tests.property.kernel_expressions import DTYPES, Features
from tests.property.list_runs import check_fused, unfused
from tests.property.programs import Program, programs
from tests.property.running import assert_identical, examples
from tests.property.test_programs import PROMOTE

pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)

FEATURES = Features(
    dtypes=tuple(dtype for dtype in DTYPES if dtype != FLOAT16), transcendental=False, statements=3
)
"""numba-dpex cannot compile float16."""


@examples(8)
@given(programs(FEATURES), PROMOTE)
def test_the_dpex_backend_agrees_with_the_reference(program: Program, promote: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", fq.FusionAborted)
        expected = unfused(program, "reference")
        assert_identical(unfused(program, "dpex"), expected)
        check_fused(program, "dpex", expected, promote=promote)
