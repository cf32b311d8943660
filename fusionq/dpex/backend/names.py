"""User names as Python identifiers."""

from __future__ import annotations

import builtins
import keyword

from fusionq.codegen.helper_functions import PREFIX
from fusionq.codegen.names import Names
from fusionq.ir.functions import FLOAT_FUNCTIONS

_IMPORTED = {
    "np", "item", "kernel", "device_func", "global_array", "local_array", "private_array",
    "Item", "NdItem", "AtomicRef", "AddressSpace", "MemoryOrder", "MemoryScope",
    "atomic_fence", "group_barrier", "pow", "work_dim", *FLOAT_FUNCTIONS,
}  # fmt: skip
_RESERVED = {*_IMPORTED, *keyword.kwlist, *dir(builtins)}


def python_names() -> Names:
    """Identifiers that are neither Python's nor the module's own."""
    return Names(lambda name: name in _RESERVED or name.startswith(PREFIX))
