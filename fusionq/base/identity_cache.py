"""Results that belong to an object, for objects whose equality takes long to find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

_Of = TypeVar("_Of")
_Others = ParamSpec("_Others")
_Result = TypeVar("_Result")


def cached_by_identity(
    function: Callable[Concatenate[_Of, _Others], _Result], capacity: int = 256
) -> Callable[Concatenate[_Of, _Others], _Result]:
    """``function``, which gives for one and the same object, which never changes, what it gave
    before; beyond ``capacity`` objects all are forgotten.  Other arguments are those with which the
    result can be found, and do not change it."""
    known: dict[int, tuple[_Of, _Result]] = {}

    def cached(of: _Of, /, *others: _Others.args, **named: _Others.kwargs) -> _Result:
        found = known.get(id(of))
        if found is None:
            if len(known) >= capacity:
                known.clear()
            found = known[id(of)] = of, function(of, *others, **named)
        return found[1]

    return cached
