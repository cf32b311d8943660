"""Guards and users' conditions on ids are decided for whole work-groups.

    if i < n:                       if first < n:
        inner              →            fence
                                        if i < n:
                                            inner

Intel's CPU compiler makes a bound of its loop over work-items of a guard that holds a whole kernel,
and of conditions inside of it that hold all the rest (``loop_bounds``).  Of others it makes masks,
with which all work-items run what a guard holds.  Those beyond an array's memory are costly, since
a masked access to a page that is not there is a microcode assist: twenty kernels of an optimiser's
step over five ranges in one take 31 ms, decided for whole groups 0.92; ``if i < m`` over a million
work-items and arrays of 4,096 elements 19.7 ms and 0.05.  Without the fence, a relaxed one for the
work-item alone, the compiler makes one condition of both where what they hold is short: a kernel
over 5,000 work-items beside one over 500,000 takes 1.3 ms, with it 0.055.

A group has several rows of a plane, some of which may be beyond it.  A vector is a part of one
row, so conditions on the ids of other dimensions than the last are decided for vectors:

    if i < m and j < n:             if i < m and first < n:
        inner              →            fence
                                        if i < m and j < n:
                                            inner

Two kernels over (300, 301) and (300, 300) in groups of 13 rows, which are 312: 2.9 ns a work-item
where groups decide, 0.35 where vectors do.

Beside barriers the masks cost, too: a sum of 16.7 million floats takes 7.3 ms, without the guard
2.2.  There a group that is inside runs without it:

    if i < n:                       if first + size <= n:
        inner                           inner
    barrier()              →        else:
                                        if first < n:
                                            fence
                                            if i < n:
                                                inner
                                        barrier()
                                    barrier()

The barrier in the rare branch keeps the compiler from making masks of that, too (2.5 ms); of many
such branches it makes nothing at all (``MOST_TWICE``).  Without
barriers the same text twice is no way: the compiler (runtime 2026.21.7) computes the ids of all but
the first vector of a group wrong then.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.codegen.group_conditions import FENCE, inside, last_dimension, skipped_outside
from fusionq.codegen.loop_bounds import only_condition, with_loop_bounds
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import Barrier, If, Stmt
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import expressions, has_barrier

MOST_NODES = 400
"""Expressions of the largest guarded part that is worth having twice."""

MOST_TWICE = 8
"""Guarded parts of a kernel that it has twice.  Of a kernel with 25 barriers in rare branches,
Intel's compiler for CPUs (runtime 2026.21.7) crashed with the process in three builds of five, in
its pass ``sycl-kernel-reduce-cross-barrier-values``, and took more than 12 s for one; of the same
with 8 to 20 of them it made all of 24 builds in 3 s."""

_BARRIER = Barrier(global_memory=False)


def decided_for_groups(body: Body) -> Body:
    """``body``, in which work-groups outside a guard skip what it holds; beside barriers those
    inside run it without the guard."""
    if has_barrier(body):
        return _without_guards(body)
    whole = range_guard(body)
    if whole is None:
        return _within_bounds(with_loop_bounds(body), last_dimension(body))
    then = _within_bounds(with_loop_bounds(whole.guard.then), last_dimension(body))
    return (*whole.before, replace(whole.guard, then=then))


def _within_bounds(body: Body, lanes: int) -> Body:
    """``body``, whose groups, and vectors along the dimension ``lanes``, skip what is outside
    conditions that are no bounds of the loop."""
    bound = only_condition(body)
    if bound is None:
        return skipped_outside(body, (FENCE,), lanes)
    inner = replace(bound, then=_within_bounds(bound.then, lanes))
    return tuple(inner if stmt is bound else stmt for stmt in body)


def _without_guards(body: Body) -> Body:
    """``body``, in which groups run without a guard what they are inside of, in ``MOST_TWICE``
    places."""
    out: list[Stmt] = []
    left = MOST_TWICE
    for stmt in body:
        decided = _without_guard(stmt) if left else stmt
        left -= decided is not stmt
        out.append(decided)
    return tuple(out)


def _without_guard(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, If) or stmt.orelse or has_barrier(stmt.then):
        return stmt
    whole = inside(stmt.cond)
    if whole is None or sum(1 for _ in expressions(stmt.then)) > MOST_NODES:
        return stmt
    return If(whole, stmt.then, (*skipped_outside((stmt,), (FENCE,)), _BARRIER), stmt.span)
