"""The oracle: interprets kernels in pure Python and NumPy, one work-item at a time."""

from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.backends.reference.checked_arrays import OutOfBounds
from fusionq.backends.reference.functions import run_function

__all__ = ["OutOfBounds", "ReferenceBackend", "run_function"]
