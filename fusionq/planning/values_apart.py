"""Other values for integer scalars that vary from list to list and are equal by chance.

Equal scalars are one unknown in what is proved, and a plan that was made for them holds where they
are equal again.  Those that belong together, as a step that several kernels get, are equal in each
list.  Of others for all of whose values a plan is made, that they are equal today would have the
next list, in which others are, planned anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fusionq.analysis.submission import ScalarArgument, Submission
from fusionq.analysis.validity import ScalarPlace, Validity

MOST_TRIED = 4096
"""Values in each direction that are tried for one scalar."""


def with_values_apart(
    submissions: Sequence[Submission],
    varying: Collection[ScalarPlace],
    known: Sequence[Validity],
) -> tuple[Submission, ...]:
    """``submissions`` where scalars that are equal, but are not one unknown in all that is
    ``known`` of such lists, have different values: those that are ``varying`` the next that no
    other has, as far as their types have one."""
    if not varying:
        return tuple(submissions)
    unknowns = [_unknowns(validity) for validity in known]
    groups: dict[object, list[tuple[ScalarPlace, ScalarArgument]]] = {}
    for s, submission in enumerate(submissions):
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ScalarArgument) and argument.type.is_integer:
                together = tuple([of.get((s, k)) for of in unknowns])
                groups.setdefault((int(argument.value), together), []).append(((s, k), argument))
    stay = [group for group in groups.values() if any(place not in varying for place, _ in group)]
    seen = {int(argument.value) for group in stay for _, argument in group}
    changed: dict[ScalarPlace, int] = {}
    for group in groups.values():
        if all(place in varying for place, _ in group):
            value = int(group[0][1].value)
            found = next((v for v in _near(value, group) if v not in seen), value)
            seen.add(found)
            if found != value:
                changed.update(dict.fromkeys([place for place, _ in group], found))
    return tuple([_with_values(s, submission, changed) for s, submission in enumerate(submissions)])


def _unknowns(validity: Validity) -> dict[ScalarPlace, str]:
    """The symbol of each scalar that the proofs rest on."""
    return {
        (source.submission, source.argument): name
        for name, sources in validity.sources
        for source in sources
        if source.dim is None and source.argument is not None
    }


def _near(value: int, group: Sequence[tuple[ScalarPlace, ScalarArgument]]) -> Iterator[int]:
    """Values that all of the arguments can have, from ``value`` on upwards, then downwards."""
    limits = [np.iinfo(argument.type.name) for _, argument in group]
    greatest = min(int(limit.max) for limit in limits)
    least = max(int(limit.min) for limit in limits)
    yield from range(value, min(greatest, value + MOST_TRIED) + 1)
    yield from range(value - 1, max(least, value - MOST_TRIED) - 1, -1)


def _with_values(
    s: int, submission: Submission, values: dict[ScalarPlace, int]
) -> Submission:
    """The ``s``-th submission with other ``values`` where it has some among them."""
    if all((s, k) not in values for k in range(len(submission.arguments))):
        return submission
    arguments = [
        replace(a, value=values[s, k]) if isinstance(a, ScalarArgument) and (s, k) in values else a
        for k, a in enumerate(submission.arguments)
    ]
    return replace(submission, arguments=tuple(arguments))
