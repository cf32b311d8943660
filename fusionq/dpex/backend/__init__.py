"""Kernel IR as kernels that numba-dpex compiles, on SYCL devices."""
