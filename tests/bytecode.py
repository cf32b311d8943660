"""Bytecode of the tests and of what they import, where Python is told to leave none behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def keep_bytecode(folder: Path) -> None:
    """With ``PYTHONDONTWRITEBYTECODE`` bytecode is kept in ``folder`` from run to run, for this
    process and its children, in place of being compiled in each of them: with the assertions that
    pytest rewrites that is 10 seconds of a processor in each worker.  Nothing is written beside the
    sources."""
    if not sys.dont_write_bytecode:
        return
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(folder)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
