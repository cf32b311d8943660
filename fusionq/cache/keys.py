"""Names for what is kept on disk: the same in every process, different for different contents."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from fusionq.base import version
from fusionq.base.articles import with_article


def digest(*parts: object) -> str:
    """sha256 (hex) of ``parts`` and of the code that computes with them.

    ``parts``: None, bools, ints, floats, strings, and tuples and dataclasses of these (what they
    do not compare by does not count); a TypeError for anything else, whose text might differ
    between processes.
    """
    return hashlib.sha256(_text((code_version(), *parts), {}).encode()).hexdigest()


def _text(value: object, known: dict[int, str]) -> str:
    """``known``: the texts of dataclasses by identity, of which trees have many in common."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, tuple):
        return f"({','.join([_text(member, known) for member in value])})"
    if is_dataclass(value) and not isinstance(value, type):
        found = known.get(id(value))
        if found is None:
            kind = type(value)
            members = [_text(getattr(value, name), known) for name in _compared(kind)]
            found = known[id(value)] = f"{kind.__qualname__}({','.join(members)})"
        return found
    raise TypeError(f"{with_article(type(value).__name__)} in the key of a cache entry: {value!r}")


@lru_cache(maxsize=256)
def _compared(type: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(type) if field.compare)


@lru_cache(maxsize=1)
def code_version() -> str:
    """What entries depend on beside their key: fusionq's version and source files, Python, NumPy.

    The files count by size and time of change, as they do for Python's own bytecode cache: so
    nobody has to remember to raise a number when a pass is changed, an upgrade and a switch of
    branches count too, and it costs a millisecond.
    """
    found: list[str] = []
    _add_source_states(str(Path(__file__).parent.parent), found)
    state = hashlib.sha256("\n".join(found).encode())
    versions = f"{version.__version__} {sys.implementation.cache_tag} {np.__version__}"
    return f"{versions} {state.hexdigest()}"


def _add_source_states(folder: str, found: list[str]) -> None:
    """Name, size and time of change of each Python file below ``folder``, in order."""
    with os.scandir(folder) as entries:
        named = sorted([(entry.name, entry) for entry in entries], key=itemgetter(0))
    for name, entry in named:
        if name.endswith(".py"):
            about = entry.stat()
            found.append(f"{name} {about.st_size} {about.st_mtime_ns}")
        elif name != "__pycache__" and entry.is_dir():
            found.append(f"{name}/")
            _add_source_states(entry.path, found)
            found.append("..")
