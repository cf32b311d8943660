"""The vocabulary of work-groups: where work-items take part together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from fusionq.ir.nodes import (
    AtomicOp,
    GroupFunction,
    GroupOp,
    MemoryOrderName,
    MemoryScopeName,
    Space,
)
from fusionq.ir.types import ScalarType

Define: TypeAlias = Callable[[str, str], None]
"""Takes the name and the text of a function that an expression calls; the unit then has it, once,
before the kernel."""


class Groups(Protocol):
    """Barriers, fences, atomic operations and group functions.

    What the language has no call for is a function of its own, handed to ``define``: in CUDA C++ a
    broadcast is one with a ``__shared__`` variable between two ``__syncthreads()``, an atomic
    maximum of floats one that repeats ``atomicCAS``.  Reductions and scans without a call of their
    own are not the dialect's care: the printer makes them of broadcasts.
    """

    linear_local_id: str
    """Of the work-item in its work-group, the last dimension fastest."""

    sub_group_local_id: str
    """Of the work-item in its sub-group."""

    linear_local_range: str
    """Work-items of a work-group: an expression of ``Scalars.size_type``."""

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        """A work-group barrier that orders accesses to the memories named."""

    def fence(self, order: MemoryOrderName, scope: MemoryScopeName) -> str:
        """``atomic_fence``, over global and local memory."""

    def read_ahead(self, element: str, define: Define) -> str | None:
        """A hint that ``element``, of global memory, is read or written soon, and need not be
        there; None where it is none that a work-item should give."""

    def atomic(
        self,
        op: AtomicOp,
        type: ScalarType,
        space: Space,
        element: str,
        value: str | None,
        order: MemoryOrderName,
        scope: MemoryScopeName,
        define: Define,
        expected: str | None = None,
    ) -> str:
        """The operation on ``element``, an lvalue in ``space``; its value is the one before.
        ``expected``: of a ``compare_exchange``.  A
        load does not release, a store does not acquire.  The element's declared type is not atomic:
        ``cuda::atomic_ref`` or a cast of its address makes it so."""

    def collective_type(self, type: ScalarType) -> ScalarType:
        """The type in which ``collective`` computes values of ``type``."""

    def has_collective(self, function: GroupFunction, op: GroupOp | None) -> bool:
        """Whether ``collective`` knows the function, over all types."""

    def collective(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        value: str,
        type: ScalarType,
        define: Define,
    ) -> str:
        """A reduction or scan by ``op``, or ``any`` or ``all``, over the work-group, of ``value``,
        which has ``type``."""

    def most_together(self, type: ScalarType) -> int:
        """Of how many values of ``type`` reductions take less time together; 1: of none.  More only
        where ``collective_type`` gives the type itself."""

    def joint_reduction(
        self, op: GroupOp, variables: Sequence[str], type: ScalarType, define: Define
    ) -> str:
        """Reduces the value of each of the ``variables``, of ``type``, into that variable."""

    def broadcast_type(self, type: ScalarType) -> ScalarType:
        """The type in which ``broadcast`` passes values of ``type`` on."""

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        """``value``, of ``type``, of the work-item with the linear local id ``source``, for the
        whole work-group of ``ndim`` dimensions."""

    def shuffle_type(self, type: ScalarType) -> ScalarType:
        """The type in which ``shuffle`` passes values of ``type`` on."""

    def shuffle(self, value: str, type: ScalarType, place: str) -> str:
        """``value``, of ``type``, of the work-item at ``place`` (an int) in its sub-group."""
