"""Encoded data in which parts that occur several times are written once.

In memory such a part is one and the same list wherever it occurs, or an equal text; written, it
stands in a table, and a reference to it wherever it occurs.  So a plan of repeats has each kernel,
each source place and each reason once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fusionq.cache.serialise import MalformedData

_REFERENCE = "\0="
"""Begins a reference; no text of a plan holds a zero byte but the marks of ``relocation``."""

_LONG = 24
"""Characters of a text that is worth a reference."""

_WITH_PARTS = frozenset({list, dict})


def packed(data: Any) -> Any:
    """``data`` with its shared parts in a table."""
    counts: Counter[int | str] = Counter()
    _count(data, counts)
    table: list[Any] = []
    places: dict[int | str, int] = {}

    def written(part: Any) -> Any:
        key = _key(part)
        if key is None or counts[key] < 2:
            return inside(part)
        if key not in places:
            places[key] = len(table)
            table.append(None)
            table[places[key]] = inside(part)
        return [_REFERENCE, places[key]]

    def inside(part: Any) -> Any:
        if isinstance(part, list):
            return [written(item) if _may_be_shared(item) else item for item in part]
        if isinstance(part, dict):
            return {name: written(item) for name, item in part.items()}
        return part

    return {"data": written(data), "shared": table}


def unpacked(contents: Any) -> Any:
    """The data that ``packed`` was given; each shared part is one object.  MalformedData where it
    is none."""
    if type(contents) is not dict or contents.keys() != {"data", "shared"}:
        raise MalformedData("data with a table of shared parts is expected")
    table = contents["shared"]
    if type(table) is not list:
        raise MalformedData("the shared parts are no list")
    parts: dict[int, Any] = {}
    unread = object()

    def read(part: Any) -> Any:
        if type(part) is list:
            if len(part) == 2 and part[0] == _REFERENCE:
                return shared(part[1])
            return [read(item) if type(item) in _WITH_PARTS else item for item in part]
        if type(part) is dict:
            return {name: read(item) for name, item in part.items()}
        return part

    def shared(number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(table):
            raise MalformedData(f"there is no shared part {number!r:.80}")
        found = parts.setdefault(number, unread)
        if found is unread:
            parts[number] = None
            found = parts[number] = read(table[number])
        elif found is None:
            raise MalformedData("a shared part is part of itself")
        return found

    return read(contents["data"])


def _count(part: Any, counts: Counter[int | str]) -> None:
    key = _key(part)
    if key is not None:
        counts[key] += 1
        if counts[key] > 1:
            return
    if isinstance(part, list):
        for item in part:
            if _may_be_shared(item):
                _count(item, counts)
    elif isinstance(part, dict):
        for item in part.values():
            _count(item, counts)


def _may_be_shared(part: Any) -> bool:
    """Whether it, or what it consists of, may be written once: not numbers, which are most."""
    return type(part) in _WITH_PARTS or (type(part) is str and len(part) >= _LONG)


def _key(part: Any) -> int | str | None:
    """Equal for what is shared: lists by identity, long texts by value."""
    if isinstance(part, list):
        return id(part)
    return part if isinstance(part, str) and len(part) >= _LONG else None
