"""Damage to the files of the disk cache, drawn at random."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fusionq.cache import user_key
from fusionq.cache.disk import disk_store

Damage = tuple[str, int, int, int]
"""Its kind, which file, where in it, and what stands there then."""

FOREIGN: tuple[object, ...] = (
    None, True, "x", "", "__import__('os').abort()", 10**30, -1, 0, 2.5, 1e999, [], {}, [[]],
    ["Store", 1], ["Kernel"], ["Plan"], {"a": 1}, "\ud800", "0" * 10_000,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is done to the entries, in turn."""

    damages: tuple[Damage, ...]


def cases(kinds: Sequence[str]) -> st.SearchStrategy[Case]:
    """One to four damages of these kinds."""
    number = st.integers(0, (1 << 31) - 1)
    damage = st.tuples(st.sampled_from(kinds), number, number, number)
    return st.builds(lambda d: Case((d,)), damage) | st.builds(
        Case, st.lists(damage, min_size=1, max_size=4).map(tuple)
    )


def apply(case: Case, directory: Path) -> bool:
    """Damage the entries in ``directory``; whether the run must be the same afterwards.  It need
    not where an entry was signed anew and is whole: then it is another entry that the user made."""
    same = True
    for kind, which, where, what in case.damages:
        paths = entries(directory)
        if not paths:
            break
        path = paths[which % len(paths)]
        same &= KINDS[kind](path, where, what, paths)
    return same


def entries(directory: Path) -> list[Path]:
    """The files there are."""
    return sorted(p for p in directory.glob("v2/*/*.*") if p.is_file() and not p.is_symlink())


# ------------------------------------------------------------------- without the user's key
def _flip(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    data = bytearray(path.read_bytes())
    if data:
        data[where % len(data)] ^= 1 + what % 255
        path.write_bytes(data)
    return True


def _cut(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    data = path.read_bytes()
    path.write_bytes(data[: where % (len(data) + 1)])
    return True


def _add(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    path.write_bytes(path.read_bytes() + bytes([what % 256]) * (1 + where % 999))
    return True


def _overwrite(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    data = path.read_bytes()
    at = where % (len(data) + 1)
    path.write_bytes(data[:at] + what.to_bytes(4, "little") * 8 + data[at + 32 :])
    return True


def _swap(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    other = paths[where % len(paths)]
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)
    return True


def _replace(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    path.unlink()
    if where % 3 == 0:
        path.mkdir()
    elif where % 3 == 1:
        os.mkfifo(path)
    else:
        path.symlink_to(("/dev/zero", "/dev/null", str(path), "/")[what % 4])
    return True


def _forbid(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    path.chmod(where % 0o1000)
    return True


def _resign_other_bytes(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """Bytes of no program and no JSON under a right signature."""
    contents = (b"", b"\n", b"\xff\xfe", b"[" * 9999, b"NaN", b"\x7fELF" + bytes(999), bytes(99))
    _sign(path, contents[what % len(contents)])
    return True


# ---------------------------------------------------------------------- with the user's key
def _resign_value(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """Another value at one place."""
    other = FOREIGN[what % len(FOREIGN)]
    return _resign(path, where, lambda old: other)


def _resign_part(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """A value from another place of the same entry."""
    data, _ = _parsed(path)
    values = [value for _, value in places(data)]
    return _resign(path, where, lambda old: values[what % len(values)])


def _resign_shorter(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """A list or an object without one of its items, or with one twice."""

    def changed(old: Any) -> Any:
        if isinstance(old, list) and old:
            at = what % len(old)
            return old[:at] + old[at + 1 :] if what % 2 else old[:at] + old[at:][:1] + old[at:]
        if isinstance(old, dict) and old:
            gone = sorted(old)[what % len(old)]
            return {key: value for key, value in old.items() if key != gone}
        return [old]

    return _resign(path, where, changed)


def _resign_cut(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """An entry without its end: of a program's, a part of the binary."""
    contents = _contents(path)
    _sign(path, contents[: where % (len(contents) + 1)])
    return True


def _key(path: Path, where: int, what: int, paths: Sequence[Path]) -> bool:
    """The user's key itself."""
    key = user_key._data_directory() / "cache.key"
    if key.is_file():
        if what % 3 == 0:
            key.unlink()
        elif what % 3 == 1:
            key.chmod(where % 0o1000)
        else:
            key.write_bytes(key.read_bytes()[: where % 33] + bytes(what % 3))
    user_key._key.cache_clear()
    return True


KINDS: dict[str, Callable[[Path, int, int, Sequence[Path]], bool]] = {
    "flip": _flip,
    "cut": _cut,
    "add": _add,
    "overwrite": _overwrite,
    "swap": _swap,
    "replace": _replace,
    "forbid": _forbid,
    "resign other bytes": _resign_other_bytes,
    "resign value": _resign_value,
    "resign part": _resign_part,
    "resign shorter": _resign_shorter,
    "resign cut": _resign_cut,
    "key": _key,
}
ON_DEVICES = tuple(kind for kind in KINDS if kind not in ("resign part", "resign shorter"))
"""Without those that make other plans of a right form: the user has signed what a device runs, and
a kernel without a guard may do anything there.  The reference backend checks what it runs."""


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every place in JSON data, with what stands there."""
    yield path, data
    if isinstance(data, list | dict):
        for key, item in enumerate(data) if isinstance(data, list) else data.items():
            yield from places(item, (*path, key))


def with_other(data: Any, path: Sequence[Any], value: Any) -> Any:
    """The data with ``value`` at one place."""
    if not path:
        return value
    copy = list(data) if isinstance(data, list) else dict(data)
    copy[path[0]] = with_other(copy[path[0]], path[1:], value)
    return copy


def _contents(path: Path) -> bytes:
    """What an entry's file holds behind its first line."""
    return path.read_bytes().partition(b"\n")[2]


def _parsed(path: Path) -> tuple[Any, bytes]:
    """An entry's JSON, and what stands behind it."""
    text, newline, rest = _contents(path).partition(b"\n")
    try:
        return json.loads(text), newline + rest
    except (ValueError, RecursionError):
        return [], newline + rest


def _resign(path: Path, where: int, change: Callable[[Any], Any]) -> bool:
    data, rest = _parsed(path)
    found = list(places(data))
    place, old = found[where % len(found)]
    new = change(old)
    if old is None or new is None:  # of many things, such as work-groups, there may be none
        return True
    _sign(path, json.dumps(with_other(data, place, new)).encode() + rest)
    kinds = {type(old), type(new)}
    return len(kinds) > 1 and not kinds <= {int, float, bool}


def _sign(path: Path, contents: bytes) -> None:
    """Write an entry as this user's fusionq does."""
    store = disk_store()
    assert store is not None
    store.put(path.stem, path.suffix[1:], contents)
