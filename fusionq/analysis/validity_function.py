"""A Validity as one Python function of a list's operands.

Lists of temporaries whose sizes vary ask the same proofs for each list; to look up source after
source takes ten times as long as the comparisons themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

from fusionq.analysis.submission import Operands, Sized
from fusionq.analysis.symbol_sources import Source
from fusionq.language.ranges import NdRange

ASKED_BEFORE = 3
"""So often a Validity has been asked when it is compiled, which takes as long as a hundred
answers."""
MOST_TERMS = 400
"""Of a Validity that is compiled: those of long lists hold for few of them."""



class AskedCondition(Protocol):
    """A ``validity.Condition``."""

    @property
    def text(self) -> str:
        """A Python expression."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its names."""

    @property
    def uses(self) -> tuple[tuple[str, ...], ...]:
        """Symbols in their place."""


class AskedValidity(Protocol):
    """A ``validity.Validity``, as far as it is compiled."""

    @property
    def sources(self) -> tuple[tuple[str, tuple[Source, ...]], ...]:
        """The places of each symbol."""

    @property
    def pinned(self) -> tuple[tuple[str, int], ...]:
        """Values of symbols."""

    @property
    def limits(self) -> tuple[tuple[str, int], ...]:
        """Magnitudes of symbols."""

    @property
    def conditions(self) -> Sequence[AskedCondition]:
        """What has to be true of symbols."""

    @property
    def constants(self) -> tuple[tuple[Source, int], ...]:
        """Values of scalars."""


Holds = Callable[[Sequence[Any]], bool]


COMPILED: dict[int, tuple[AskedValidity, Holds]] = {}
"""The functions of Validities that are asked again and again, by identity; each is for lists of the
structure that its Validity is for."""
_asked: dict[int, tuple[AskedValidity, int]] = {}
"""How often others have been asked."""
CAPACITY = 1024
"""Beyond so many all are forgotten."""


def note_asked(validity: AskedValidity, submissions: Sequence[Sized]) -> None:
    """``validity`` is asked about Operands, and not compiled; perhaps it is now."""
    _, times = _asked.get(id(validity), (validity, 0))
    if times == ASKED_BEFORE:
        function = _compiled(validity, cast(Sequence[Operands], submissions))
        if function is not None:
            if len(COMPILED) >= CAPACITY:
                COMPILED.clear()
            COMPILED[id(validity)] = validity, function
    if times <= ASKED_BEFORE:
        if len(_asked) >= CAPACITY:
            _asked.clear()
        _asked[id(validity)] = validity, times + 1


def _compiled(validity: AskedValidity, operands: Sequence[Operands]) -> Holds | None:
    """``validity`` for lists whose operands have the forms and kinds of ranges of these."""
    terms = len(validity.constants) + len(validity.pinned) + len(validity.limits)
    terms += sum(len(sources) for _, sources in validity.sources)
    terms += sum(len(condition.uses) for condition in validity.conditions)
    if terms > MOST_TERMS:
        return None

    def number(source: Source) -> str:
        """``Operands.number`` as an expression."""
        of, k = operands[source.submission], source.argument
        name = f"of[{int(source.submission)}]"
        if k is None:
            whole = ".global_range" if isinstance(of.range, NdRange) else ""
            return f"{name}.range{whole}[{int(source.dim or 0)}]"
        position = of.form.positions[k]
        if source.dim is None:
            return f"int({name}.values[{position}])"
        return f"{name}.places[{position}][0][{int(source.dim)}]"

    names = {name: f"v{k}" for k, (name, _) in enumerate(validity.sources)}
    lines = ["def holds(of):"]

    def require(condition: str) -> None:
        lines.append(f"    if not ({condition}): return False")

    for source, value in validity.constants:
        require(f"{number(source)} == {int(value)}")
    for name, sources in validity.sources:
        lines.append(f"    {names[name]} = {number(sources[0])}")
        if len(sources) > 1:
            require(" == ".join([names[name], *map(number, sources[1:])]))
    for name, value in validity.pinned:
        require(f"{names[name]} == {int(value)}")
    for name, limit in validity.limits:
        require(f"{-int(limit)} <= {names[name]} <= {int(limit)}")
    values: dict[str, Any] = {"__builtins__": {}, "int": int}
    for k, condition in enumerate(validity.conditions):
        values[f"c{k}"] = condition_function(condition.text, condition.names)
        for use in condition.uses:
            require(f"c{k}({', '.join([names[symbol] for symbol in use])})")
    lines.append("    return True")
    exec(compile("\n".join(lines), "<validity function>", "exec"), values)
    function: Holds = values["holds"]
    return function


_NO_GLOBALS: dict[str, Any] = {"__builtins__": {}}


@lru_cache(maxsize=1024)
def condition_function(text: str, names: tuple[str, ...]) -> Callable[..., bool]:
    """The condition ``text`` as a function of its ``names``."""
    code = compile(f"lambda {', '.join(names)}: {text}", "<validity>", "eval")
    return cast(Callable[..., bool], eval(code, _NO_GLOBALS))
