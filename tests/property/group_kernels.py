"""Random kernels over work-groups as Python text: phases between barriers.

In one phase each array that the group changes is used in one way only: each work-item reads and
writes elements of its own, or everybody reads, or everybody changes by atomic operations that
commute.  In the next phase other elements may be a work-item's own.  So no two work-items race,
and the result does not depend on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from fusionq.ir.types import BOOL, INT64, ScalarType
from fusionq.language.ranges import NdRange
from tests.property.group_accesses import (
    ATOMIC_METHODS,
    ATOMIC_TYPES,
    GroupParameter,
    LocalTile,
    SharedArray,
    TileArray,
    any_place,
    own_place,
)
from tests.property.kernel_expressions import Draw, Features, Scope, typed
from tests.property.kernel_parameters import GatherArray, ScalarParameter
from tests.property.kernel_text import KernelWriter

OPS = ("add", "max", "min", "xor", "mul", "and", "or")
FLOAT_OPS = ("add", "max", "min", "mul")
COMBINING = ("reduce", "inclusive_scan", "exclusive_scan")
SHUFFLES = (
    "shift_group_left", "shift_group_right", "permute_group_by_xor", "select_from_group",
)  # fmt: skip
GROUP_FUNCTIONS = ("reduce", "any", "all", "broadcast", "inclusive_scan", "exclusive_scan")

Group = TileArray | LocalTile
"""What a work-group has a tile of."""


class GroupKernelWriter(KernelWriter):
    """Draws kernels for an NdRange with work-groups of ``local``."""

    def __init__(
        self,
        draw: Draw,
        features: Features,
        parameters: Sequence[GroupParameter],
        local: Sequence[int],
        uniform: int = 30,
    ) -> None:
        plain = [p for p in parameters if isinstance(p, (GatherArray, ScalarParameter))]
        super().__init__(draw, features, plain)
        self._all = parameters
        self._local = tuple(local)
        self._often_uniform = uniform
        self._arrays = [p for p in parameters if isinstance(p, TileArray)]
        self._tiles = [p for p in parameters if isinstance(p, LocalTile)]
        self._shared = [p for p in parameters if isinstance(p, SharedArray)]
        self._private: list[tuple[str, ScalarType, int]] = []
        self._atomics: list[tuple[Callable[[Scope], list[str]], ScalarType, tuple[str, ...]]] = []
        """What atomic operations may change now: checks and element, dtype, methods."""
        self.sub_group = next((n for n in (self.choose((4, 8)), 4) if local[-1] % n == 0), None)
        """Work-items of a sub-group, where the work-groups consist of whole ones."""
        self.uses_sub_groups = False
        self._uniform = ["group.get_group_linear_id() % 2 == 0", "g0 < 1", "g0 > 0"]
        """Conditions that are the same for the whole group."""
        self._uniform += [f"{p.name} > 1" for p in self._scalars if not p.type.is_bool]

    # ---------------------------------------------------------------------- kernels
    def text(self) -> str:
        """The text of the kernel and of the functions that it calls."""
        if self.chance(20):
            self.device_function()
        self.line(f"def kernel({', '.join(['item', *(p.name for p in self._all)])}):")
        with self._indented():
            self._prologue()
            scope = Scope()
            for p in self._all:
                if isinstance(p, (GatherArray, TileArray, LocalTile)):
                    scope.numbers += [f"{p.name}.shape[{d}]" for d in range(p.ndim)]
            for _ in range(2):
                if self.chance(25):
                    self._private_array(scope)
            for tile in self._tiles:
                self._fill(tile, scope)
            if self._tiles:
                self._barrier()
            self._phases(scope, self.choose((1, 0, 2, 3)))
            self._phase(scope, last=True)
        head = ["import math", "import numpy as np", "import fusionq as fq", ""]
        return "\n".join([*head, *self.tables, "", "", *self._lines]) + "\n"

    def _prologue(self) -> None:
        self.line("group = item.get_group()")
        for d, name in enumerate("ijk"[: len(self._local)]):
            self.line(f"{name} = item.get_global_id({d})")
            self.line(f"l{d} = item.get_local_id({d})")
            self.line(f"g{d} = group.get_group_id({d})")
            self.ids += [f"l{d}", name, f"g{d}"]
        self.line("own = item.get_local_linear_id()")
        self.ids += ["own", "group.get_group_range(0)", "item.get_local_range(0)"]
        self.ids += ["group.get_group_linear_id()", "item.get_global_linear_id()"]

    def _private_array(self, scope: Scope) -> None:
        name, dtype = self._fresh("p"), self.choose(self._features.dtypes)
        size = self.choose((3, 2, 1, 5))
        zeros = self.chance(50)
        more = ", fill_zeros=True" if zeros else ""
        self.line(f"{name} = fq.PrivateArray({size}, {typed(dtype)}{more})")
        if not zeros:
            loop = self._fresh("n")
            self.line(f"for {loop} in range({size}):")
            inner = scope.inner()
            inner.numbers.append(loop)
            with self._indented():
                self.line(f"{name}[{loop}] = {self.expression(dtype, inner, 2)}")
        self._private.append((name, dtype, size))

    def _fill(self, tile: LocalTile, scope: Scope) -> None:
        """Give each element of a local array a first value."""
        inner, turn = scope.inner(), self._turns(tile.elements)
        with self._looped(turn, tile.elements, inner):
            index = self._own_index(tile, turn)
            self.line(f"{tile.name}[{index}] = {self.expression(tile.dtype, inner, 2)}")

    def _barrier(self) -> None:
        scope = self.choose(("", "", "", ", fq.MemoryScope.DEVICE", ", fq.MemoryScope.WORK_GROUP"))
        self.line(f"fq.group_barrier(group{scope})")

    # ----------------------------------------------------------------------- phases
    def _phases(self, scope: Scope, most: int, depth: int = 2) -> None:
        """Phases one after the other, some of them inside what is uniform over the group."""
        for _ in range(most):
            if self.chance(20):
                self._declaration(scope)
            if depth == 0 or not self.chance(self._often_uniform):
                self._phase(scope)
                continue
            inner = replace(scope.inner(), in_loop=False)
            loop = self._fresh("n")
            head = self.choose(
                (
                    f"for {loop} in range(2):",
                    f"for {loop} in range(g0 % 3):",
                    f"for {loop} in range(3, 0, -1):",
                    f"if {self.choose(self._uniform)}:",
                    "while",
                )
            )
            if head == "while":
                self.line(f"{loop} = 0")
                head = f"while {loop} < 2:"
            elif head.startswith("for"):
                inner.numbers.append(loop)
            self.line(head)
            before = list(self._uniform)
            with self._indented():
                if head.startswith("while"):
                    self.line(f"{loop} += 1")
                self._phases(inner, 1, depth - 1)
            self._uniform = before

    def _phase(self, scope: Scope, last: bool = False) -> None:
        """What the work-items do until the next barrier, or with ``last`` the kernel's end."""
        turns = max([a.elements for a in (*self._arrays, *self._tiles)], default=1)
        turn = self._turns(turns)
        inner = scope.inner()
        inner.elements += self._private_elements(inner)
        self._atomics = [(self._anywhere(p), p.dtype, p.methods) for p in self._shared]
        stores: list[tuple[str, ScalarType]] = []
        checks: list[str] = []
        safe = scope.inner()
        with self._looped(turn, turns, inner):
            for array in (*self._tiles, *self._arrays):
                self._use(array, turn, turns, inner, checks, stores, last)
            safe.elements += [e for e in inner.elements if e[0].split("[")[0] in self._safe()]
            if turn is None and self.chance(50):
                self._group_function(safe)
                scope.elements.append(safe.elements[-1])
                inner.elements.append(safe.elements[-1])
            if checks:
                self.line(f"if {' and '.join(dict.fromkeys(checks))}:")
            with self._indented() if checks else _nothing():
                self.body(inner, 3)
                for element, dtype in stores:
                    self.line(f"{element} = {self._summary(dtype, inner)}")
                self.line("pass")
        self._atomics = []
        if not last:
            self._barrier()

    def _safe(self) -> list[str]:
        """Arrays whose elements need no check."""
        return [*(t.name for t in self._tiles), *(name for name, _, _ in self._private)]

    def _use(
        self,
        array: Group,
        turn: str | None,
        turns: int,
        scope: Scope,
        checks: list[str],
        stores: list[tuple[str, ScalarType]],
        last: bool,
    ) -> None:
        """Decide what the phase does with ``array``."""
        ways = ["read", "read", "nothing"]
        if isinstance(array, LocalTile) or array.written:
            ways = ["own", "own", "read", "read", "nothing"]
            if array.dtype.name in ATOMIC_TYPES:
                ways.append("atomic")
        way = self.choose(ways)
        made = isinstance(array, TileArray) and array.made
        if made or (last and isinstance(array, TileArray) and array.written):
            way = "own"
        if way == "nothing":
            return
        if way == "atomic":
            methods = self.choose(ATOMIC_METHODS)
            self._atomics.append((self._in_tile(array), array.dtype, methods))
            return
        own = f"{turn} % {array.elements}" if turn and array.elements < turns else turn
        if made and not last and self.chance(60):
            return
        if way == "own":
            index = self._own_index(array, f"({own})" if own != turn else turn, checks)
        else:
            index = self._any_index(array, own if own == turn else f"({own})", scope, checks)
        element = f"{array.name}[{index}]"
        if not made:
            scope.elements.append((element, array.dtype, way == "own"))
        if way == "own" and (last or made or self.chance(70)):
            stores.append((element, array.dtype))

    def _private_elements(self, scope: Scope) -> list[tuple[str, ScalarType, bool]]:
        found = []
        for name, dtype, size in self._private:
            index = self.choose(("0", str(size - 1), f"({self.index(scope)}) % {size}"))
            found.append((f"{name}[{index}]", dtype, True))
        return found

    # ---------------------------------------------------------------------- elements
    def _turns(self, elements: int) -> str | None:
        return self._fresh("e") if elements > 1 else None

    @contextmanager
    def _looped(self, turn: str | None, turns: int, scope: Scope) -> Iterator[None]:
        """A loop over a work-item's elements, if it has several."""
        if turn is None:
            yield
            return
        self.line(f"for {turn} in range({turns}):")
        scope.numbers.append(turn)
        scope.in_loop = True
        with self._indented():
            yield

    def _dims(self, array: Group) -> list[tuple[str, int, int]]:
        """For each dimension of a tile: the local id, the extent and the elements an item."""
        if isinstance(array, LocalTile) and array.linear:
            return [("own", array.tile[0], array.elements)]
        last = array.ndim - 1
        names = [f"l{d}" for d in range(array.ndim)]
        return [
            (name, extent, array.elements if d == last else 1)
            for d, (name, extent) in enumerate(zip(names, array.tile, strict=True))
        ]

    def _own_index(self, array: Group, turn: str | None, checks: list[str] | None = None) -> str:
        dims = self._dims(array)
        if array.elements == 1 and len(dims) > 1 and self.chance(20):
            extents = [extent for _, extent, _ in dims]
            if extents[0] == extents[-1]:  # transposed
                dims[0], dims[-1] = (dims[-1][0], *dims[0][1:]), (dims[0][0], *dims[-1][1:])
        places = [own_place(self._draw, *dim, turn or "0") for dim in dims]
        return self._index(array, places, checks)

    def _any_index(self, array: Group, turn: str | None, scope: Scope, checks: list[str]) -> str:
        places = [
            any_place(self._draw, *dim, turn or "0", self.index(scope)) for dim in self._dims(array)
        ]
        return self._index(array, places, checks)

    def _index(self, array: Group, places: Sequence[str], checks: list[str] | None) -> str:
        if isinstance(array, LocalTile):
            return ", ".join(places)
        indices = [array.index(d, place) for d, place in enumerate(places)]
        assert checks is not None
        checks += array.checks(indices)
        return ", ".join(indices)

    def _in_tile(self, array: Group) -> Callable[[Scope], list[str]]:
        """Draws an element of the group's tile: conditions, then its index."""

        def draw(scope: Scope) -> list[str]:
            checks: list[str] = []
            index = self._any_index(array, "0" if array.elements > 1 else None, scope, checks)
            return [*checks, f"{array.name}, ({index},)"]

        return draw

    def _anywhere(self, array: SharedArray) -> Callable[[Scope], list[str]]:
        def draw(scope: Scope) -> list[str]:
            indices = [
                f"({self.index(scope)}) % {array.name}.shape[{d}]" for d in range(array.ndim)
            ]
            return [f"{array.name}, ({', '.join(indices)},)"]

        return draw

    # -------------------------------------------------------------------- statements
    def _kinds(self, scope: Scope) -> list[Callable[[Scope], None]]:
        kinds = [kind for kind in super()._kinds(scope) if kind != self._return]
        kinds.append(self._own_atomic)
        return [*kinds, *[self._atomic] * (2 * bool(self._atomics))]

    def _atomic(self, scope: Scope) -> None:
        """An operation on an element that others change too; nobody sees the value before."""
        where, dtype, methods = self.choose(self._atomics)
        *checks, element = where(scope)
        if checks:
            self.line(f"if {' and '.join(checks)}:")
        with self._indented() if checks else _nothing():
            value = self.operand(dtype, scope, 2)
            self.line(f"fq.AtomicRef({element}).fetch_{self.choose(methods)}({value})")

    def _own_atomic(self, scope: Scope) -> None:
        """An operation on an element of one's own, whose value before is known."""
        own = [
            (text, dtype)
            for text, dtype, writable in scope.elements
            if writable and dtype.name in ATOMIC_TYPES and not text.startswith("p")
        ]
        if not own:
            return self._declaration(scope)
        text, dtype = self.choose(own)
        array, index = text[:-1].split("[", 1)
        methods = ("fetch_add", "exchange", "fetch_max", "fetch_xor", "load", "store")
        method = self.choose((*methods, "compare_exchange", "compare_exchange"))
        value = "" if method == "load" else self.operand(dtype, scope, 2)
        if method == "compare_exchange":
            return self._compare_exchange(f"{array}, ({index},)", dtype, value, scope)
        call = f"fq.AtomicRef({array}, ({index},)).{method}({value})"
        if method == "store":
            self.line(call)
            return
        name = self._fresh("v")
        self.line(f"{name} = {call}")
        scope.variables.append((name, dtype))

    def _compare_exchange(self, element: str, dtype: ScalarType, value: str, scope: Scope) -> None:
        """One try, with what is there or something else; whether it stored, and what was there."""
        seen, name, swapped = self._fresh("p"), self._fresh("v"), self._fresh("v")
        self.line(f"{seen} = fq.PrivateArray(1, {typed(dtype)})")
        there = f"fq.AtomicRef({element}).load()"
        self.line(f"{seen}[0] = {self.choose((there, self.expression(dtype, scope, 2)))}")
        self.line(f"{swapped} = fq.AtomicRef({element}).compare_exchange({seen}, {value})")
        self.line(f"{name} = {seen}[0]")
        scope.variables += [(name, dtype), (swapped, BOOL)]

    def _group_function(self, scope: Scope) -> None:
        """A value that the whole group makes together; a scan's is each item's own."""
        types = [t for t in self._features.dtypes if not t.is_bool] or [INT64]
        type_, name = self.choose(types), self._fresh("u")
        if self._features.sub_groups and self.sub_group and self.chance(45):
            return self._sub_group_function(scope, type_, name)
        only_read = [t for t in self._arrays if not t.written]
        gathers = [p for p in self._all if isinstance(p, GatherArray)]
        rows = [p for p in (*gathers, *only_read) if p.ndim == 1]
        if rows and self.chance(40):
            return self._joint_function(scope, self.choose(rows), name)
        kind = self.choose(GROUP_FUNCTIONS)
        if kind in ("any", "all"):
            self.line(f"{name} = fq.{kind}_of_group(group, {self.condition(scope, 2)})")
            self._uniform.append(name)
            scope.elements.append((name, BOOL, False))
            return
        value = self.expression(type_, scope, 2)
        if kind == "broadcast":
            size = prod(self._local)
            source = self.choose(("0", str(size - 1), f"g0 % {size}"))
            self.line(f"{name} = fq.group_broadcast(group, {value}, {source})")
        else:
            ops = FLOAT_OPS if type_.is_float else OPS
            op = self.choose(ops)
            self.line(f"{name} = fq.{kind}_over_group(group, {value}, '{op}')")
        if "scan" not in kind:
            self._uniform.append(f"{name} > 0")
        scope.elements.append((name, type_, False))

    def _sub_group_function(self, scope: Scope, type_: ScalarType, name: str) -> None:
        """A value that a sub-group makes together, in one order of operations."""
        self.uses_sub_groups = True
        value, group = self.expression(type_, scope, 2), "item.get_sub_group()"
        kind = self.choose((*COMBINING, *SHUFFLES))
        if kind in SHUFFLES:
            place = self.choose(("1", "2", "own % 3", f"({self.index(scope)})", "-1"))
            self.line(f"{name} = fq.{kind}({group}, {value}, {place})")
        else:
            op = self.choose(FLOAT_OPS if type_.is_float else OPS)
            self.line(f"{name} = fq.{kind}_over_group({group}, {value}, '{op}')")
        scope.elements.append((name, type_, False))

    def _joint_function(self, scope: Scope, array: GatherArray | TileArray, name: str) -> None:
        """What the whole group makes of an array."""
        if self.chance(30):
            kind = self.choose(("any", "all", "none"))
            self.line(f"{name} = fq.joint_{kind}_of(group, {array.name})")
            self._uniform.append(name)
            scope.elements.append((name, BOOL, False))
            return
        type_ = array.dtype
        op = self.choose(("or", "and", "xor") if type_.is_bool else FLOAT_OPS)
        init = "" if type_.is_bool or self.chance(50) else f", init={self.literal(type_)}"
        self.line(f"{name} = fq.joint_reduce(group, {array.name}, '{op}'{init})")
        scope.elements.append((name, type_, False))


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def random_tile_array(
    draw: Draw,
    name: str,
    dtype: ScalarType,
    shape: Sequence[int],
    range_: NdRange,
    written: bool,
) -> TileArray:
    """A parameter that fits an array of ``shape``."""
    about = max(round(shape[-1] / range_.global_range[-1]), 1)
    elements = about if draw(st.integers(0, 9)) < 9 else draw(st.sampled_from((1, 2, 3)))
    *local, last = range_.local_range
    tile = (*local, last * elements)
    odd = draw(st.integers(0, 99)) >= 80
    offset = tuple(draw(st.sampled_from((0, 0, 1, 2))) if odd else 0 for _ in tile)
    reverse = tuple(draw(st.booleans()) if odd else False for _ in tile)
    made = written and draw(st.booleans())
    return TileArray(name, dtype, tile, elements, offset, reverse, written, made)


def random_local_tile(draw: Draw, name: str, dtype: ScalarType, local: Sequence[int]) -> LocalTile:
    """A LocalAccessor with one to three elements a work-item."""
    elements = draw(st.sampled_from((1, 1, 1, 2, 3)))
    linear = len(local) == 1 or draw(st.booleans())
    tile = (prod(local) * elements,) if linear else (*local[:-1], local[-1] * elements)
    return LocalTile(name, dtype, tile, elements, linear)
