"""How much a kernel computes, about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import Submission
from fusionq.ir.nodes import Expr, Kernel, Stmt
from fusionq.ir.walk import nested_bodies, statement_expressions, subexpressions
from fusionq.planning.known_values import KnownValues, Sizes, sizes_of


def work_of(submission: Submission) -> float:
    """The scalar operations of all work-items of a submission."""
    return global_range(submission).size * operations(submission.ir, sizes_of(submission))


def operations(kernel: Kernel, sizes: Sizes) -> float:
    """Scalar operations of one work-item: every expression once, those in loops as often as the
    loops run; ``known_values.UNKNOWN_TRIPS`` times where ``sizes`` do not tell."""
    return _operations(kernel.body, KnownValues(kernel, sizes))


def _operations(body: Sequence[Stmt], values: KnownValues) -> float:
    return sum(
        [
            sum([1 for _ in evaluated(stmt)])
            + values.trips(stmt) * sum([_operations(b, values) for b in nested_bodies(stmt)])
            for stmt in body
        ]
    )


def evaluated(stmt: Stmt) -> Iterator[Expr]:
    """What a statement itself evaluates, without those inside it."""
    for expr in statement_expressions(stmt):
        yield from subexpressions(expr)
