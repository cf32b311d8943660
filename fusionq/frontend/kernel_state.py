"""What lowering a kernel keeps track of that the functions inlined into it share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy.typing as npt

from fusionq.frontend.captures import Captures
from fusionq.frontend.path_conditions import Definition
from fusionq.frontend.record_arrays import FieldNames, name_fields
from fusionq.frontend.signature import ArgumentType, Signature
from fusionq.frontend.source import FunctionSource
from fusionq.ir.nodes import ArrayDecl, Expr, Var
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import subexpressions
from fusionq.language.casts import integer_limits


class KernelState:
    """What the kernel and the functions inlined into it share."""

    def __init__(self, signature: Signature, captures: Captures, reserved: Sequence[str]) -> None:
        self.signature = signature
        self.captures = captures
        self.bounds: dict[str, tuple[int, int]] = {}
        self.arrays: dict[str, ArrayDecl] = {}
        """The arrays in local, private and constant memory."""
        self.versions: dict[str, int] = {}
        """How often each variable has been assigned so far."""
        self.definitions: dict[str, Definition] = {}
        """What the truth of bool variables says."""
        self.least: dict[Expr, int] = {}
        """What int64 variables are at least, as far as that is known."""
        self.greatest: dict[Expr, int] = {}
        """What they are at most."""
        self.tables: dict[str, npt.NDArray[Any]] = {}
        """The elements of those in constant memory."""
        self.slots: dict[tuple[ScalarType, int], str] = {}
        """The local arrays in which joint functions exchange, by dtype and size."""
        self.unrollable: dict[str, int] = {}
        """The variables of the loops around that can be unrolled, with their iterations."""
        self.copies = 1
        """How often the present statement is lowered, since loops around it are unrolled."""
        self.undecided: set[str] = set()
        """The variables that hold Python ints before a loop around, whose types in that loop are
        not found yet."""
        self.taken_to_fit: set[str] = set()
        """Those that were taken to fit into an integer type."""
        self.notes: dict[str, None] = {}
        """What the kernel's report should say of it."""
        self.apart: dict[tuple[str, str], bool] = {}
        """The parameters that one statement writes and reads as a whole: they share no memory, or,
        where this is set, are one and the same view."""
        self.uses_sub_groups = False
        self.item_is_certain = False
        """Whether the kernel says that its first parameter is a work-item: by its name, by an
        annotation, or by asking it for something.  Else an index may be meant for an argument."""
        self.regions = False
        """Whether the kernel's regions and marks become records, for profiling."""
        self.fields: FieldNames = {}
        """The arrays that stand for the fields of arrays of records."""
        self.field_extents: dict[str, tuple[int | None, ...]] = {}
        """Of the arrays that stand for fields of parameters: extents that are known."""
        self.nested: dict[ast.AST, FunctionSource] = {}
        """The functions that are defined in the kernel, by their definitions."""
        self.comprehensions: dict[ast.AST, tuple[ast.AST, set[str]]] = {}
        """Copies of its comprehensions with names of their own, and these."""
        self.numbers = count()
        """For names that the kernel's text has not."""
        self._used = set(reserved)

    @contextmanager
    def undecided_in(self, variables: Iterable[str]) -> Iterator[set[str]]:
        """In the block, take Python ints made of these variables to fit into any integer type;
        gives those of which that was of use."""
        outside, before = self.undecided, self.taken_to_fit
        self.undecided, self.taken_to_fit = outside.union(variables), set()
        try:
            yield self.taken_to_fit
        finally:
            before |= self.taken_to_fit & outside
            self.undecided, self.taken_to_fit = outside, before

    def take_to_fit(self, expr: Expr) -> bool:
        """Whether an integer may be taken to fit into any integer type, since it is made of
        variables whose types in a loop around are not found yet."""
        read = {e.name for e in subexpressions(expr) if isinstance(e, Var)} & self.undecided
        self.taken_to_fit |= read
        return bool(read)

    def fresh(self, name: str) -> str:
        """A variable name that is not used yet."""
        candidate, count = name, 0
        while candidate in self._used:
            count += 1
            candidate = f"{name}_{count}"
        self._used.add(candidate)
        variable = Var(INT64, candidate)  # which may have been another one's in what was taken back
        self.least.pop(variable, None)
        self.greatest.pop(variable, None)
        return candidate

    def reserve(self, names: Iterable[str]) -> None:
        """Use these names for nothing else."""
        self._used.update(names)

    def name_fields(self, arguments: Sequence[tuple[str, ArgumentType]]) -> None:
        """Name the arrays of the fields of those arguments, or new arrays, that are of records."""
        self.fields |= name_fields(arguments, self._used)

    def narrow(self, parameter: str, target: ScalarType) -> None:
        """Note that a Python int argument is converted to an integer type."""
        low, high = integer_limits(target.dtype)
        before = self.bounds.get(parameter, (-(2**63), 2**63 - 1))
        self.bounds[parameter] = (max(low, before[0]), min(high, before[1]))

    def snapshot(self) -> Callable[[], None]:
        """A function that takes back the names, bounds and arrays given since."""
        used, bounds, arrays = set(self._used), dict(self.bounds), dict(self.arrays)
        notes, tables = dict(self.notes), dict(self.tables)
        unrollable, slots, fields = dict(self.unrollable), dict(self.slots), dict(self.fields)

        def restore() -> None:
            self._used, self.bounds, self.arrays = set(used), dict(bounds), dict(arrays)
            self.notes, self.tables = dict(notes), dict(tables)
            self.unrollable, self.slots = dict(unrollable), dict(slots)
            self.fields = dict(fields)

        return restore
