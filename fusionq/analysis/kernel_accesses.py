"""What is known of a kernel's accesses: relations from instances to elements, in program order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import islpy as isl

from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.ir.nodes import Atomic, Load, Store


@dataclass(frozen=True, eq=False)
class Access:
    """One load or store.

    ``instances``: where it happens; every one of them does if ``happens``, and what a store leaves
    is known if it is ``exact`` as well: not an atomic operation's.
    ``indices``: the element, one affine function of the instance for each dimension, or
    None if unknown.  ``moment``: its place in program order, positions and loop dimensions
    alternating (a loop that counts down has its dimension negated).
    """

    array: str
    kind: Literal["read", "write"]
    instances: isl.Set
    happens: bool
    exact: bool
    indices: tuple[isl.PwAff, ...] | None
    moment: tuple[int | str, ...]
    span: Span
    node: Load | Store | Atomic


@dataclass(frozen=True, eq=False)
class Meeting:
    """A barrier or group function, and the instances that certainly or possibly reach it;
    ``sub_group``: the work-items of a sub-group, where only those meet."""

    instances: isl.Set
    exact: bool
    span: Span
    sub_group: int | None = None


@dataclass(frozen=True, eq=False)
class BindingLoop:
    """A loop that has to run, since the ``name`` that its body binds is read after it, and the
    instances that reach it, perhaps, and find nothing to do; None where they are unknown."""

    name: str
    idle: isl.Set | None
    span: Span


@dataclass(frozen=True)
class KernelShape:
    """A kernel's index space in symbols: the name of each extent of its global range, and the
    explicit work-group size, if any; the symbols of its arrays' extents and integer scalars."""

    global_range: tuple[str, ...]
    local_range: tuple[int, ...] | None
    extents: Mapping[tuple[str, int], str]
    params: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class KernelAccesses:
    """The accesses of a kernel in program order, the places where the
    work-items of a group meet, the loops that have to run, and the symbols whose values they rest
    on."""

    ndim: int
    accesses: tuple[Access, ...]
    meetings: tuple[Meeting, ...]
    binding_loops: tuple[BindingLoop, ...]
    pinned: frozenset[str]


def item_dims(ndim: int) -> list[str]:
    """Names of the id dimensions."""
    return [f"i{d}" for d in range(ndim)]
