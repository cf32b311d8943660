"""numba-dpex: its kernels in ``submit``, its compiler as a backend; see docs/guide/numba-dpex.md.

Registers itself by the entry points ``numba_dpex`` (dialect of kernels) and ``dpex`` (backend);
nothing else imports it.
"""

from fusionq.dpex.environment import load_numba_dpex

__all__ = ["load_numba_dpex"]
