"""Records around what submissions do between barriers, and around the barriers.

    out[i] = a[i]                 record_stage_start("0: copy")
    group_barrier(group)          out[i] = a[i]
    b[i] = out[n - 1 - i]    →    record_stage_end("0: copy")
                                  record_barrier_start("barrier before 1: flip")
                                  group_barrier(group)
                                  record_barrier_end("barrier before 1: flip")
                                  …

Submissions with no barrier between them run work-item by work-item, one after the other within
each: they share one region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fusionq.base.span import NO_SPAN
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Block,
    Fence,
    For,
    GroupCall,
    If,
    Kernel,
    Load,
    Record,
    Stmt,
    While,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import expressions, statements
from fusionq.profiling.instrumentation import Instrumentation, Scope

SEPARATOR = " + "
_SHOWN = 3


class RecordStages(Instrumentation):
    """Measures each submission's part of a fused kernel, and the barriers."""

    def instrument(self, kernel: Kernel, scope: Scope) -> Kernel:
        """``kernel`` with records of kind ``stage`` and ``barrier``; of a persistent kernel's
        stages, whose tiles are recorded by the queue, as they are."""
        if scope.stage.inner:
            return kernel
        found = range_guard(kernel.body)
        if found is None:
            return replace(kernel, body=_phases(kernel.body, kernel.name))
        # Inside, where the CPU device's compiler still sees the range's guard as a bound.
        guard = replace(found.guard, then=_phases(found.guard.then, kernel.name))
        return replace(kernel, body=(*found.before, guard))


def _phases(body: Sequence[Stmt], heading: str) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    together: list[Stmt] = []

    def close() -> None:
        if any(map(_works, together)):
            name = _name(together, heading)
            start, end = Record(name, "stage", "start"), Record(name, "stage", "end")
            result.extend((start, *together, end))
        else:
            result.extend(together)
        together.clear()

    for position, stmt in enumerate(body):
        if not _meets(stmt):
            together.append(stmt)
            continue
        close()
        match stmt:
            case Barrier() | GroupCall():
                name = _meeting_name(stmt, body[position + 1 :], heading)
                start, end = Record(name, "barrier", "start"), Record(name, "barrier", "end")
                result.extend((start, stmt, end))
            case Block(label, inner):
                result.append(Block(label, _phases(inner, label)))
            case For() | While():
                result.append(replace(stmt, body=_phases(stmt.body, heading)))
            case If():
                then, orelse = _phases(stmt.then, heading), _phases(stmt.orelse, heading)
                result.append(replace(stmt, then=then, orelse=orelse))
            case _:
                result.append(stmt)
    close()
    return tuple(result)


def _meets(stmt: Stmt) -> bool:
    """Whether the whole work-group meets in a statement."""
    return any(
        isinstance(s, Barrier) or (isinstance(s, GroupCall) and s.sub_group is None)
        for s in statements((stmt,))
    )


def _works(stmt: Stmt) -> bool:
    """Whether a statement does more than compute ids."""
    if isinstance(stmt, (Record, Fence)):
        return False
    return not isinstance(stmt, Assign) or any(isinstance(e, Load) for e in expressions((stmt,)))


def _headings(body: Iterable[Stmt]) -> list[str]:
    return list(dict.fromkeys(s.label for s in statements(body) if isinstance(s, Block)))


def _name(body: Sequence[Stmt], heading: str) -> str:
    """The headings inside, or the one around."""
    names = _headings(body) or [heading]
    if len(names) <= _SHOWN:
        return SEPARATOR.join(names)
    return f"{names[0]}{SEPARATOR}…{SEPARATOR}{names[-1]} ({len(names)} submissions)"


def _meeting_name(stmt: Barrier | GroupCall, after: Sequence[Stmt], heading: str) -> str:
    what = "barrier" if isinstance(stmt, Barrier) else stmt.function
    if stmt.span != NO_SPAN:
        return f"{what} at {Path(stmt.span.file).name}:{stmt.span.line}"
    following = next(iter(_headings(after)), heading)
    return f"{what} before {following}"
