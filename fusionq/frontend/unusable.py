"""Names that cannot be read where paths have met, and where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from fusionq.frontend.operators import example_cast
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.typing_rules import arithmetic_type, fits, type_name
from fusionq.frontend.values import Binding, Constant, Runtime, Unusable, describe
from fusionq.ir.types import INT64


def perhaps_unassigned(name: str, bound: Binding) -> Unusable:
    """A name that some paths do not assign."""
    name = name.partition(".")[0]
    return Unusable(
        f"{name!r} may not be assigned here: only some paths assign it (line {bound.span.line})",
        f"Assign {name} on every path, or before the branch or loop; or read it where the same "
        "condition holds.",
    )


def where_bound(
    unusable: Unusable,
    bound: Sequence[Binding | Unusable | None],
    paths: Sequence[tuple[Fact, ...]],
) -> Unusable:
    """A name that one path only binds can be read where that path's conditions hold."""
    binding = [(b, path) for b, path in zip(bound, paths, strict=True) if isinstance(b, Binding)]
    if len(binding) != 1:
        same_one = all(b is bound[0] for b in bound)
        return unusable if same_one else replace(unusable, where=())
    return replace(unusable, binding=binding[0][0], where=binding[0][1])


def conflict(name: str, bindings: Sequence[Binding]) -> Unusable:
    """A name that has values of different types on different paths."""
    name = name.partition(".")[0]  # without what says that it is a comprehension's
    kinds: dict[str, int] = {}
    for bound in bindings:
        value = bound.value
        kind = describe(value)
        if isinstance(value, (Runtime, Constant)):
            kind = type_name(value.type)
        kinds.setdefault(kind, bound.span.line)
    found = " or ".join(f"{kind} (line {line})" for kind, line in kinds.items())
    types = [b.value.type for b in bindings if isinstance(b.value, (Runtime, Constant))]
    cast = ""
    if len(types) == len(bindings) and not all(t.weak for t in types):
        wider = reduce(arithmetic_type, types)
        if wider.is_integer and not all(
            fits(b.value.value, wider) for b in bindings if isinstance(b.value, Constant)
        ):
            wider = INT64
        cast = f", e.g. {example_cast(wider)}"
    return Unusable(
        f"{name!r} has no single type here: it is {found}",
        f"Convert the values to one type where they are assigned{cast}, or use another name.",
    )
