"""Whether a worker process can build for this one."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from fusionq.backends.base import Backend
from fusionq.cache.disk import disk_store


def unavailable(backend: Backend) -> str | None:
    """Why candidates cannot be built by a worker process; None where they can."""
    if not backend.abilities.keeps_programs:
        return f"programs of {backend.info.name} cannot be handed from process to process"
    store = disk_store()
    if store is None:
        return "the disk cache is off"
    if store.is_broken:
        return "the disk cache cannot be written"
    if os.name != "posix" or getattr(sys, "frozen", False):
        return "no worker process can be started here"
    if not _is_python(sys.executable or ""):
        return "the interpreter is part of another program"
    return None


@lru_cache(maxsize=4)
def _is_python(executable: str) -> bool:
    return Path(executable).name.startswith(("python", "pypy"))
