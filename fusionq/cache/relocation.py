"""Source places in cache entries, relative to the functions that they lie in.

The same kernel may stand on another line, in another file (a notebook's cells get new names each
time) or below another directory the next time.  So in what is kept, a place is the number of
a function and a line in it; reading puts in where that function stands now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from fusionq.cache.serialise import MalformedData

Place = tuple[str, int, int]
"""A function: its file, its first line there, how many lines it has."""

_MARK = "\0"
_KEPT = re.compile(r"\0(\d+):(\d+)\0")


def relative(data: Any, functions: Sequence[Place]) -> Any:
    """Encoded data with every span, and every ``file:line`` in a text, relative to
    ``functions``."""
    files = "|".join(re.escape(file) for file in sorted({file for file, _, _ in functions}))
    mentioned = re.compile(rf"({files}):(\d+)")

    numbers: dict[Place, int] = {}
    for number, place in enumerate(functions):
        numbers.setdefault(place, number)

    def kept(file: str, line: int) -> tuple[int, int] | None:
        for (own, first, count), number in numbers.items():
            if own == file and first <= line < first + count:
                return number, line - first
        return None

    def text(value: str) -> str:
        def replaced(found: re.Match[str]) -> str:
            at = kept(found[1], int(found[2]))
            return found[0] if at is None else f"{_MARK}{at[0]}:{at[1]}{_MARK}"

        return mentioned.sub(replaced, value) if functions else value

    def span(file: str, line: int) -> tuple[str, int]:
        at = kept(file, line)
        return (file, line) if at is None else (f"{_MARK}{at[0]}", at[1])

    return _mapped(data, text, span, {})


def absolute(data: Any, functions: Sequence[Place]) -> Any:
    """Data from ``relative``, with the places where ``functions`` stand now; MalformedData if it
    names a function that there is not."""

    def now(number: int, offset: int) -> tuple[str, int]:
        if number >= len(functions):
            raise MalformedData(f"there is no function {number}")
        file, first, _ = functions[number]
        return file, first + offset

    def text(value: str) -> str:
        def replaced(found: re.Match[str]) -> str:
            file, line = now(int(found[1]), int(found[2]))
            return f"{file}:{line}"

        return _KEPT.sub(replaced, value) if _MARK in value else value

    def span(file: str, line: int) -> tuple[str, int]:
        if file[:1] != _MARK:
            return file, line
        if not file[1:].isdecimal():
            raise MalformedData(f"{file[1:]!r} is no function's number")
        return now(int(file[1:]), line)

    return _mapped(data, text, span, {})


def _mapped(
    data: Any,
    text: Callable[[str], str],
    span: Callable[[str, int], tuple[str, int]],
    known: dict[int | str, Any],
) -> Any:
    """``data`` with other texts and spans; a list that occurs several times stays one list."""
    if isinstance(data, str):
        if data not in known:
            known[data] = text(data)
        return known[data]
    if isinstance(data, list):
        if id(data) not in known:
            known[id(data)] = (
                ["Span", *span(data[1], data[2]), data[3]]
                if len(data) == 4
                and data[0] == "Span"
                and [type(item) for item in data[1:]] == [str, int, str]
                else [
                    item if type(item) is int else _mapped(item, text, span, known)
                    for item in data
                ]
            )
        return known[id(data)]
    if isinstance(data, dict):
        return {key: _mapped(item, text, span, known) for key, item in data.items()}
    return data
