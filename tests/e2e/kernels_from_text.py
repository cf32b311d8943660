"""Kernels of random bodies."""

from __future__ import annotations

import linecache
from itertools import count
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.kernels.library import Array

_NUMBERS = count()


def from_text(text: str) -> Any:
    """The kernel ``random_body`` that ``text`` defines."""
    name = f"<random body {next(_NUMBERS)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names: dict[str, Any] = {"fq": fq, "np": np, "Array": Array}
    exec(compile(text, name, "exec"), names)
    return fq.kernel(names["random_body"])
