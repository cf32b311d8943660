"""The vocabulary of a translation unit: what stands around a kernel's statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fusionq.base.target import FloatMode
from fusionq.codegen.dialect.groups import Define
from fusionq.codegen.scoping import Body
from fusionq.ir.types import ScalarType


class TranslationUnit(Protocol):
    """The parts of a source file that no statement of a kernel is.

    In CUDA C++ a kernel is ``extern "C" __global__ void``, a function of its own
    ``static __device__ inline``; the prologue has a class for float16 where that occurs and
    defines what ``scalars``, ``items`` and ``groups`` call and CUDA has not; the options are
    NVRTC's, with ``--fmad=false`` for ``strict``.
    """

    kernel_qualifier: str
    """Before a kernel's name, return type included."""

    def sub_groups_of(self, size: int) -> str:
        """Before ``kernel_qualifier``: what makes the kernel's sub-groups have ``size``
        work-items, neighbours in the fastest dimension; nothing where all have."""

    scalar_items: str
    """Before ``kernel_qualifier``: what keeps the compiler from making vectors of work-items; ""
    where it makes none."""

    function_qualifier: str
    """Before a function's return type."""

    def prologue(
        self, types: Iterable[ScalarType], fp: FloatMode, functions: Iterable[str] = ()
    ) -> list[str]:
        """The first lines of a unit that uses ``types``, and of ``ir.functions.DEVICE_FUNCTIONS``
        those named ``functions``."""

    def first_lines(self, define: Define) -> list[str]:
        """The lines with which a kernel over a range begins; ``define`` takes the functions that
        they call."""

    loads_early: str
    """The line before loads from arrays that nobody writes, ahead of ``first_lines``, where a
    kernel over a range may begin while the launch before it runs; "" where none may."""

    def build_options(self, fp: FloatMode) -> tuple[str, ...]:
        """The compiler options that go with the text."""

    def is_reserved(self, identifier: str) -> bool:
        """True for words a user's name must not take: keywords, types, macros, functions, and all
        that starts with ``fq_``, which the printer's own names do."""

    asks_for_ids_once: bool
    """Whether kernels over a range keep their global ids in variables: see ``id_variables``."""

    def prepared(self, body: Body) -> Body:
        """The body of a kernel over a range, without nested blocks, with what it takes to keep
        this language's compilers from compiling it wrong, or badly; the same values are stored."""

    def loop_in_order(self) -> list[str]:
        """The lines before a loop whose floating sums have to keep the order of its iterations."""

    packs_arguments: bool
    """Whether kernels take their arguments as one structure: see ``packed_arguments``."""

    eager_conditions: bool
    """Whether compilers make branches of ``&&`` and ``||``: see ``eager_conditions``."""

    loads_together: bool
    """Whether loops of work-groups load for several iterations at once: see ``loads_together``."""

    def row_load(self, kept: str, first: str, type: str, define: Define) -> str | None:
        """The statement by which an array of registers gets as many elements of ``type`` of a row
        as it has, from ``first`` on, 16 bytes at a time where that lies at a multiple of them; None
        where there is none."""

    def vector_step(
        self, target: str, other: str, symbol: str, type: str, lanes: int, define: Define
    ) -> str | None:
        """The statement that combines ``lanes`` elements of local memory from ``target`` on, of
        ``type``, with those from ``other`` on by the operator ``symbol``; None where that takes
        longer than one by one."""

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        """The lines before a short innermost loop that loads from global memory: how often to
        unroll it, so that the loads of several iterations are in flight at once, of ``most`` at
        most.  ``iterations``: of a loop that is unrolled whole, as many as it has."""
