"""What ``submit`` has to know of a specialised kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionq.analysis.submission import Argument, ScalarArgument
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Atomic, Const, GroupCall, Kernel, ScalarParam, Stmt, Store
from fusionq.ir.walk import has_ordered_functions, local_bytes, private_bytes, statements

INT64_BOUNDS = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """A kernel, specialised for a signature, as far as it matters before a plan is made.

    ``stored``: the array parameters that it changes.  ``local_bytes``: local memory that a
    work-group takes; with what functions of work-groups keep there, where its size is known.
    ``bounds``: (position among the scalar arguments, least, greatest) for Python ints that it holds
    in an integer type.  ``notes``: what reports say of it.
    """

    name: str
    ndim: int
    stored: tuple[str, ...]
    local_bytes: int
    bounds: tuple[tuple[int, int, int], ...]
    notes: tuple[str, ...] = ()
    sub_group_size: int | None = None
    """Work-items of its sub-groups, where they matter."""
    apart: tuple[tuple[str, str, bool], ...] = ()
    """``Kernel.apart``."""
    ordered_functions: bool = False
    """``has_ordered_functions``, which may take more local memory."""
    private_bytes: int = 0
    """Of the private arrays of a work-item."""
    atomic: tuple[str, ...] = ()
    """The array parameters that atomic operations access."""
    broadcast_from: int = 0
    """The greatest linear local id that work-groups certainly broadcast from, as far as known."""


def facts_of(ir: Kernel, arguments: Sequence[Argument]) -> KernelFacts:
    """The facts of a kernel, which do not depend on the ``arguments``' values."""
    stored = {
        s.array
        for s in statements(ir.body)
        if isinstance(s, Store) or (isinstance(s, Atomic) and s.op != "load")
    }
    return KernelFacts(
        ir.name,
        ir.ndim,
        tuple(sorted(stored)),
        local_bytes(ir),
        _integer_bounds(ir, arguments),
        ir.notes,
        ir.sub_group_size,
        ir.apart,
        has_ordered_functions(ir),
        private_bytes(ir),
        tuple(sorted({s.array for s in statements(ir.body) if isinstance(s, Atomic)})),
        max(map(_broadcast_from, ir.body), default=0),
    )


def _broadcast_from(statement: Stmt) -> int:
    """The constant place that an unconditional ``statement`` takes a work-group's value from."""
    if not isinstance(statement, GroupCall) or statement.function != "broadcast":
        return 0
    source = statement.source
    return int(source.value) if statement.sub_group is None and isinstance(source, Const) else 0


def _integer_bounds(ir: Kernel, arguments: Sequence[Argument]) -> tuple[tuple[int, int, int], ...]:
    """Which scalars are Python ints that must fit an integer type: their place, the bounds."""
    scalars = [a for a in arguments if isinstance(a, ScalarArgument)]
    bounds = []
    for position, argument in enumerate(scalars):
        param = ir.param(argument.name)
        assert isinstance(param, ScalarParam)
        if argument.type.weak and argument.type.is_integer:
            bounds.append((position, *_bounds_of(param)))
    return tuple(bounds)


def _bounds_of(param: ScalarParam) -> tuple[int, int]:
    if param.bounds is not None:
        return param.bounds
    if param.type.is_integer:
        limits = np.iinfo(param.type.name)
        return int(limits.min), int(limits.max)
    return INT64_BOUNDS
