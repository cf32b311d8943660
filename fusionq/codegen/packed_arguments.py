"""A kernel's arguments as the members of one structure.

``void k(ulong a, int b) { …`` becomes ``typedef struct { ulong a; int b; } fq_arguments;
void k(const fq_arguments fq_passed) { const ulong a = fq_passed.a; const int b = fq_passed.b; …``:
a runtime that looks at each argument of a launch by itself takes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusionq.codegen.dialect import Dialect
from fusionq.codegen.helper_functions import PREFIX

STRUCTURE = f"{PREFIX}arguments"
PASSED = f"{PREFIX}passed"


class KernelHead(NamedTuple):
    """The parts of a kernel that declare its arguments."""

    definition: list[str]
    """The lines in front of the kernel."""
    parameters: list[str]
    first: list[str]
    """The lines with which its body begins."""


def is_packed(arguments: int, dialect: Dialect) -> bool:
    """Whether so many ``arguments`` become one structure."""
    return arguments > 1 and dialect.unit.packs_arguments


def head_of(parameters: Sequence[str], dialect: Dialect) -> KernelHead:
    """The head of a kernel that takes ``parameters``, each a type, a blank and a name: as one
    structure where they become one."""
    if not is_packed(len(parameters), dialect):
        return KernelHead([], list(parameters), [])
    return KernelHead(
        ["typedef struct {", *(f"    {text};" for text in parameters), f"}} {STRUCTURE};"],
        [f"const {STRUCTURE} {PASSED}"],
        [f"const {text} = {PASSED}.{text.rpartition(' ')[2]};" for text in parameters],
    )
