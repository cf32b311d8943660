"""Kernels compiled by numba-dpex, on a SYCL device."""

from fusionq.backends.dpex.environment import load_numba_dpex

__all__ = ["load_numba_dpex"]
