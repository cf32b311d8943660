"""Orders, scopes and address spaces of memory operations.

The names and values are those of ``numba_dpex.kernel_api``.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class MemoryOrder(IntEnum):
    """How an atomic operation or a fence orders other accesses.

    Source: SYCL 2020, section 3.8.3.1.  ``CONSUME_UNSUPPORTED`` exists for its value only.
    """

    RELAXED = 0
    ACQUIRE = 1
    CONSUME_UNSUPPORTED = 2
    RELEASE = 3
    ACQ_REL = 4
    SEQ_CST = 5

    __str__ = Enum.__str__


class MemoryScope(IntEnum):
    """The work-items for which an order holds.  Source: SYCL 2020, section 3.8.3.2."""

    WORK_ITEM = 0
    SUB_GROUP = 1
    WORK_GROUP = 2
    DEVICE = 3
    SYSTEM = 4

    __str__ = Enum.__str__


class AddressSpace(IntEnum):
    """Where an array's elements lie.  Source: SYCL 2020, section 4.7.7.1."""

    PRIVATE = 0
    GLOBAL = 1
    CONSTANT = 2
    LOCAL = 3
    GENERIC = 4

    __str__ = Enum.__str__


MEMORY_MODEL = (MemoryOrder, MemoryScope, AddressSpace)
"""The enumerations above, whose members are numbers too."""
