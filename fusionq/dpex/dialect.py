"""numba-dpex as a dialect of kernels."""

from __future__ import annotations

from fusionq.dpex.frontend.kernel import DpexKernelFunction, dpex_kernel
from fusionq.dpex.kernel_api import is_dpex_function, translated
from fusionq.frontend.dialect import KernelDialect


def _kernel(obj: object) -> DpexKernelFunction | None:
    return dpex_kernel(obj) if is_dpex_function(obj) else None


DIALECT = KernelDialect(kernel=_kernel, counterpart=translated)
