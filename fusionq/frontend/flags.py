"""Names that are bound wherever a flag is true.

    found = False
    for k in range(n):
        if a[k] > x:
            found, where = True, k
            break
    if found:
        out[i] = where

A bool that is known to be false on each path that leaves a name unbound says, where it is true,
that the name is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusionq.base.frozen import dataclass
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.values import Binding, Constant, Environment, Runtime, Unusable, Value
from fusionq.ir.nodes import Var


@dataclass(frozen=True, slots=True)
class PathEnd:
    """What the names stand for where a path ends, and how often each variable had been assigned;
    none where that is not known any more."""

    names: Environment
    versions: Mapping[str, int]

    def says(self, flag: str, name: str, variable: Var) -> bool:
        """Whether ``name`` is bound here if the flag, which is in ``variable``, is true."""
        bound, value = self.names.get(name), _value(self.names.get(flag))
        if isinstance(bound, Binding) or _is_false(value):
            return True
        version = variable.name, self.versions.get(variable.name, -1)
        return (
            isinstance(bound, Unusable)
            and bound.where == (Fact(variable, (version,)),)
            and isinstance(value, Runtime)
            and value.expr == variable
        )

    def binding(self, name: str) -> Binding | None:
        """What the name stands for here if the flag is true; None where it then is false."""
        bound = self.names.get(name)
        return bound.binding if isinstance(bound, Unusable) else bound


def flag_of(name: str, ends: Sequence[PathEnd], merged: Environment) -> Var | None:
    """The variable of a bool that says, where it is true, that ``name`` is bound, on whichever path
    one has come to where they meet in ``merged``."""
    for flag, bound in merged.items():
        value = _value(bound)
        if not (isinstance(value, Runtime) and isinstance(value.expr, Var)):
            continue
        variable = value.expr
        if variable.type.is_bool and all(end.says(flag, name, variable) for end in ends):
            return variable
    return None


def known_after(
    after: Environment,
    entry: Environment,
    at_start: Mapping[str, int],
    at_end: Mapping[str, int],
) -> Environment:
    """The environment ``after`` a loop that has ended by itself, in which flags that iterations do
    not assign, but before a break, are what they were before it (``entry``).  ``at_start`` and
    ``at_end``: how often each variable had been assigned where its body starts, and ends."""
    known = dict(after)
    for name, before in entry.items():
        value = _value(after.get(name))
        if not (isinstance(value, Runtime) and isinstance(value.expr, Var)):
            continue
        variable = value.expr.name
        if _is_false(_value(before)) and at_start.get(variable) == at_end.get(variable):
            known[name] = before
    return known


def _value(bound: Binding | Unusable | None) -> Value | None:
    return bound.value if isinstance(bound, Binding) else None


def _is_false(value: Value | None) -> bool:
    return isinstance(value, Constant) and value.type.is_bool and not value.value
