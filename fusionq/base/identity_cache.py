"""Results that belong to an object, for objects whose equality takes long to find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Of = TypeVar("_Of")
_Result = TypeVar("_Result")


def cached_by_identity(
    function: Callable[[_Of], _Result], capacity: int = 256
) -> Callable[[_Of], _Result]:
    """``function``, which gives for one and the same object, which never changes, what it gave
    before; beyond ``capacity`` objects all are forgotten."""
    known: dict[int, tuple[_Of, _Result]] = {}

    def cached(of: _Of) -> _Result:
        found = known.get(id(of))
        if found is None:
            if len(known) >= capacity:
                known.clear()
            found = known[id(of)] = of, function(of)
        return found[1]

    return cached
