"""Random kernels: the IR computes what the Python function does, bit for bit."""

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.in_turn import one_in
from tests.unit.frontend.random_kernels import SIZE, Program
from tests.unit.frontend.running import define, run_both


@pytest.mark.parametrize("seed", one_in(4, range(60)))
def test_random_kernel(seed):
    text = Program(seed).text
    function = define(text, math=math)
    values = np.random.default_rng(seed)
    dtype = ("float32", "int32", "float64")[seed % 3]
    x = (values.random(SIZE) * 9 - 3).astype(dtype)
    try:
        run_both(function, SIZE, x, values.random((4, SIZE)), 3, 0.75)
    except AssertionError:
        print(text)
        raise
    except (KernelLanguageError, ZeroDivisionError) as error:
        # Python numbers divided by 0: both ways refuse, each in its own time.
        assert "by zero" in str(error)
