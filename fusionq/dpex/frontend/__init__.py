"""Kernels of numba-dpex as kernel IR."""
