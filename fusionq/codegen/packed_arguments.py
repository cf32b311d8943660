"""A kernel's arguments as the members of one structure.

``void k(ulong a, int b) { …`` becomes ``typedef struct { ulong a; int b; } fq_arguments;
void k(const fq_arguments fq_passed) { const ulong a = fq_passed.a; const int b = fq_passed.b; …``:
a runtime that looks at each argument of a launch by itself takes one.

Compilers for CPUs load such members again for each vector of work-items, as stores might have
changed them, and then find no branch the same for all.  Several non-temporal stores, each beside an
ordinary one for other addresses, became ordinary ones by that: four kernels over 50 million float32
with their temporaries took 1.6 times as long as with arguments of their own (AMD EPYC, Zen 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusionq.codegen.dialect import Dialect
from fusionq.codegen.helper_functions import PREFIX
from fusionq.ir.nodes import Kernel, Store
from fusionq.ir.walk import statements

STRUCTURE = f"{PREFIX}arguments"
PASSED = f"{PREFIX}passed"


class KernelHead(NamedTuple):
    """The parts of a kernel that declare its arguments."""

    definition: list[str]
    """The lines in front of the kernel."""
    parameters: list[str]
    first: list[str]
    """The lines with which its body begins."""


MOST_STREAMED = 1
"""Non-temporal stores of a kernel whose arguments are one structure."""


def is_packed(arguments: int, kernel: Kernel, dialect: Dialect) -> bool:
    """Whether so many ``arguments`` of ``kernel`` become one structure."""
    if arguments < 2 or not dialect.unit.packs_arguments:
        return False
    streamed = sum(isinstance(s, Store) and s.nontemporal for s in statements(kernel.body))
    return streamed <= MOST_STREAMED


def head_of(parameters: Sequence[str], packed: bool) -> KernelHead:
    """The head of a kernel that takes ``parameters``, each a type, a blank and a name; ``packed``:
    as one structure."""
    if not packed:
        return KernelHead([], list(parameters), [])
    return KernelHead(
        ["typedef struct {", *(f"    {text};" for text in parameters), f"}} {STRUCTURE};"],
        [f"const {STRUCTURE} {PASSED}"],
        [f"const {text} = {PASSED}.{text.rpartition(' ')[2]};" for text in parameters],
    )
