"""What stands for the objects of ``numba_dpex.kernel_api`` here, with stand-ins for them."""

from __future__ import annotations

from enum import Enum

import pytest

import fusionq as fq
from fusionq.dpex.dialect import DIALECT
from fusionq.dpex.kernel_api import is_dpex_function, translated


def there(cls, module="numba_dpex.kernel_api.somewhere"):
    """The class, as numba-dpex's."""
    cls.__module__ = module
    return cls


@there
class MemoryScope(Enum):
    DEVICE = 7


@there
class Range(tuple):
    pass


@there
class NdRange:
    global_range, local_range = Range((8, 4)), Range((2, 4))


@there
class LocalAccessor:
    _shape, _dtype = (3, 2), "float32"


@there
def group_barrier():
    """Stands for the function."""


@there
class Nameless:
    """There is nothing of that name here."""


def test_classes_functions_and_members_by_name():
    assert translated(MemoryScope.DEVICE) is fq.MemoryScope.DEVICE
    assert translated(MemoryScope) is fq.MemoryScope
    assert translated(group_barrier) is fq.group_barrier
    assert translated(Nameless) is Nameless


def test_ranges_and_local_memory_are_made_anew():
    assert translated(Range((3, 5))) == fq.Range(3, 5)
    nd = translated(NdRange())
    assert (nd.global_range, nd.local_range) == (fq.Range(8, 4), fq.Range(2, 4))
    local = translated(LocalAccessor())
    assert isinstance(local, fq.LocalAccessor) and local.shape == (3, 2)


@pytest.mark.parametrize(
    "value", [3, None, "text", fq.Range(3), test_classes_functions_and_members_by_name]
)
def test_all_else_is_what_it_is(value):
    assert translated(value) is value
    assert not is_dpex_function(value)
    assert DIALECT.kernel(value) is None


def test_a_function_is_known_by_its_class():
    class Dispatcher:
        py_func = staticmethod(test_a_function_is_known_by_its_class)

    assert not is_dpex_function(Dispatcher())
    assert is_dpex_function(there(Dispatcher, "numba_dpex.core.kernel_interface")())
