"""Kernels that do the same to each of several types: one program in place of one a type."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np

import fusionq as fq

_numbers = count()


def defined(text: str, **names: Any) -> Any:
    """The kernel that the text of one function defines, with its source where ``inspect`` finds
    it."""
    file = f"<generated kernel {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    found = {"fq": fq, "np": np, **names}
    exec(compile(text, file, "exec"), found)
    return fq.kernel(found["k"])


@cache
def for_each(kernel: Any, parameters: Sequence[str], names: Sequence[str]) -> Any:
    """A kernel that runs ``kernel`` once for each of ``names``.

    It has the ``parameters`` of ``kernel`` for the first of the names, then those for the second,
    and so on: ``x_int8, out_int8, x_int16, out_int16, …``.
    """
    own = {name: ", ".join(f"{p}_{name}" for p in parameters) for name in names}
    calls = "\n".join(f"    one(item, {arguments})" for arguments in own.values())
    return defined(f"def k(item, {', '.join(own.values())}):\n{calls}\n", one=kernel.function)
