"""What all values of a kernel's integer variables lie in, wherever they are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fusionq.codegen.intervals import Intervals
from fusionq.codegen.scoping import Body
from fusionq.ir.interval_arithmetic import Interval, arithmetic, of_type
from fusionq.ir.nodes import Assign, Const, For, Kernel
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import assigned_variable, statements


def variable_intervals(
    kernel: Kernel, bodies: Sequence[Body], intervals: Intervals, types: Collection[ScalarType]
) -> dict[str, Interval]:
    """The intervals of the variables of ``types`` and of the loops' in ``bodies``; a variable that
    is set by something else than an assignment may be anything of int64.  ``intervals`` is filled
    meanwhile."""
    type_of = dict(kernel.variables)
    known: dict[str, Interval] = {}
    for stmt in (s for body in bodies for s in statements(body)):
        name: str | None
        match stmt:
            case Assign(name, value):
                if type_of[name] not in types:
                    continue
                interval = intervals.of(value)
                intervals.assigned(stmt)
            case For(name):
                interval = _of_loop(stmt, intervals)
                intervals.entered(stmt)
            case _:
                name, interval = assigned_variable(stmt), of_type(INT64)
        if name is not None:
            before = known.get(name, interval)
            known[name] = min(before[0], interval[0]), max(before[1], interval[1])
    return known


def _of_loop(loop: For, intervals: Intervals) -> Interval:
    """What a loop's variable may be, the value that ends it included."""
    start, stop, step = (intervals.of(e) for e in (loop.start, loop.stop, loop.step))
    beyond = stop if step in ((1, 1), (-1, -1)) else arithmetic("add", stop, step)
    if not isinstance(loop.step, Const) or not loop.step.value or beyond is None:
        return of_type(INT64)
    ends = start, stop, beyond
    return min(low for low, _ in ends), max(high for _, high in ends)
