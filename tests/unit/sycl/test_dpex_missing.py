"""The dpex backend where numba-dpex is not installed.  tests/dpex has all the rest."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import fusionq as fq


@pytest.mark.skipif(find_spec("numba_dpex") is not None, reason="numba-dpex is installed")
@pytest.mark.parametrize("target", ["dpex", "dpex:opencl:cpu"])
def test_the_error_says_how_to_install_it(target: str) -> None:
    with pytest.raises(fq.DeviceError, match=r'pip install "fusionq\[dpex\]"') as error:
        fq.FusionQueue(target)
    assert "numba-dpex is not installed" in str(error.value)
