"""Measurements that need a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_child(script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a script of this folder in a fresh interpreter; the JSON in its last line of output.

    ``environment``: variables that the process has beside those of this one.  Raises RuntimeError
    with what it wrote to standard error if it fails.
    """
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    # close_fds=False spawns without a fork, which thread pools in this process complain of.
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        close_fds=False,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise RuntimeError(f"the measuring process failed: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
