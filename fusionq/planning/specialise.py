"""Integer scalars whose values a plan depends on, and those that vary too often for that.

A loop whose bounds are known at compile time can be unrolled, so integers that make all bounds of
a loop known are put in as constants; one that is then seen with another value becomes a parameter,
so a scalar that changes all the time costs one more compilation, not one for each value.  Where a
loop has a bound that stays unknown, as where work-items stride from their id to a length that
grows, a constant would gain nothing, and the scalar is a parameter from the start.

What is proved may hold for today's value of a scalar only, as for the ``t`` of ``a[t * size + i]``.
After plans for ``MOST_VALUES`` of them one is made for all values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from fusionq.analysis.submission import ScalarArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import ScalarPlace, Validity
from fusionq.ir.nodes import Const, For, Kernel, Param
from fusionq.ir.walk import operands, statement_expressions, statements, subexpressions

MOST_VALUES = 4
"""Values of a scalar for which there is a plan each."""


def constants(
    submissions: Sequence[Submission], varying: Collection[ScalarPlace]
) -> dict[ScalarPlace, int]:
    """The scalar arguments to put in as constants, with their values; not those ``varying``."""
    found: dict[ScalarPlace, int] = {}
    bounds_of: dict[int, frozenset[str]] = {}
    for s, submission in enumerate(submissions):
        kernel = submission.ir
        bounds = bounds_of.get(id(kernel))
        if bounds is None:
            bounds = bounds_of[id(kernel)] = _loop_bounds(kernel)
        for k, argument in enumerate(submission.arguments):
            if (
                isinstance(argument, ScalarArgument)
                and argument.type.is_integer
                and argument.name in bounds
                and (s, k) not in varying
            ):
                found[s, k] = int(argument.value)
    return found


def _loop_bounds(kernel: Kernel) -> frozenset[str]:
    """The scalar parameters in bounds of the kernel's loops, of those whose bounds are made of
    scalar parameters and constants only."""
    found: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, For):
            parts = [e for bound in statement_expressions(stmt) for e in subexpressions(bound)]
            if all(operands(e) or isinstance(e, (Const, Param)) for e in parts):
                found |= {e.name for e in parts if isinstance(e, Param)}
    return frozenset(found)


def varying_scalars(
    known: Iterable[Validity], submissions: Sequence[Submission]
) -> frozenset[ScalarPlace]:
    """The scalars that plans of the same structure have as constants, of other values than now
    or of several."""
    seen: dict[ScalarPlace, set[int]] = {}
    for validity in known:
        for source, value in validity.constants:
            if source.argument is None or source.dim is not None:
                continue
            values = seen.setdefault((source.submission, source.argument), set())
            values |= {value, source.value(submissions)}
    return frozenset(place for place, values in seen.items() if len(values) > 1)


def varying_since(
    known: Iterable[Validity], submissions: Sequence[Submission], plans: int
) -> frozenset[ScalarPlace]:
    """The scalars whose values so many of the plans ``known`` of the same structure were not made
    for."""
    missed = Counter(
        place for validity in dict.fromkeys(known) for place in validity.missed_by(submissions)
    )
    return frozenset(place for place, count in missed.items() if count >= plans)


def values_of(
    places: Iterable[ScalarPlace], submissions: Sequence[Submission]
) -> frozenset[int]:
    """The values of some integer scalars."""
    return frozenset(Source(s, k, None).value(submissions) for s, k in places)


def sources_of(values: dict[ScalarPlace, int]) -> tuple[tuple[Source, int], ...]:
    """``values`` as a validity holds them."""
    return tuple((Source(s, k, None), value) for (s, k), value in values.items())
