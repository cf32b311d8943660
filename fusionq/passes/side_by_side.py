"""Put kernels that do not depend on each other side by side in one launch (horizontal fusion).

    q(a, x, out), 512 work-groups        q_k(a, x, out, a_1, out_1, range_0):
    k(a, x, out), 128 work-groups   →        first_1 = range_0 // 1
                                             if group_id(0) < first_1: …q…
                                             else: …k, with work-groups from first_1 on…

Legal where no element is written by one of them and touched by another one.  Work-groups are those
that each kernel would have by itself, of one size; the grids are one after the other in the first
dimension, and alike in the others.  Local arrays of different kernels share memory, since a
work-group runs one of them.

Source: Li and others, "Automatic Horizontal Fusion for GPU Kernels", 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Binary,
    Block,
    Const,
    Expr,
    Extent,
    For,
    GroupCall,
    ItemQuery,
    Kernel,
    KernelParam,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Var,
)
from fusionq.ir.side_by_side import put_side_by_side
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import local_memories, renamed_statement, rewrite_body, statements
from fusionq.passes.fuse import FusedKernel, fused_name
from fusionq.passes.labels import label, number_in
from fusionq.passes.sources import ParamSource, RangeSource


@dataclass(frozen=True, slots=True)
class SidePart:
    """A kernel ``fused`` of submissions of the kernels ``names``, whose range has the first extent
    of that of submission ``geometry``, which is ``extent`` long."""

    fused: FusedKernel
    names: tuple[str, ...]
    geometry: int
    extent: int


def put_kernels_side_by_side(
    parts: Sequence[SidePart],
    local: tuple[int, ...] | None,
    view: Callable[[ParamSource], Hashable],
) -> FusedKernel:
    """One kernel of all ``parts``, in work-groups of the size ``local``, or whatever size they are
    launched in; arrays of sources with an equal ``view`` are one parameter."""
    return _Joining(parts, local, view).run()


class _Joining:
    def __init__(
        self,
        parts: Sequence[SidePart],
        local: tuple[int, ...] | None,
        view: Callable[[ParamSource], Hashable],
    ) -> None:
        self._parts = parts
        self._view = view
        self._size: Expr = (
            ItemQuery("local_range", 0) if local is None else Const(INT64, local[0])
        )
        self._names = FreshNames()
        self._params: list[KernelParam] = []
        self._sources: dict[str, ParamSource] = {}
        self._views: dict[Hashable, str] = {}
        self._extents: dict[int, str] = {}
        """The parameter that an extent of a range is."""
        self._variables: list[tuple[str, ScalarType]] = []
        self._arrays: list[ArrayDecl] = []
        self._memories: dict[int, str] = {}
        """Of each part's local memories, the largest first, the first array."""

    def run(self) -> FusedKernel:
        bodies: list[tuple[Stmt, ...]] = []
        every: list[str] = []
        for part in self._parts:
            bodies.append(self._part(part, len(every)))
            every += part.names
        groups = [self._groups(part) for part in self._parts[:-1]]
        first = [Var(INT64, self._names.fresh(f"first_{k + 1}")) for k in range(len(groups))]
        self._variables += [(v.name, v.type) for v in first]
        kernels = [part.fused.kernel for part in self._parts]
        kernel = replace(
            kernels[0],
            sub_group_size=max(k.sub_group_size or 0 for k in kernels) or None,
            name=fused_name(every),
            params=tuple(self._params),
            variables=tuple(self._variables),
            body=put_side_by_side(bodies, [*groups, Const(INT64, 0)], self._size, first),
            arrays=tuple(self._arrays),
        )
        return FusedKernel(kernel, self._sources, {})

    def _groups(self, part: SidePart) -> Expr:
        """How many work-groups a part has in the first dimension."""
        extent = self._extent(part)
        if self._size == Const(INT64, 1):
            return extent
        more = Binary(INT64, "sub", self._size, Const(INT64, 1))
        return Binary(INT64, "floordiv", Binary(INT64, "add", extent, more), self._size)

    def _extent(self, part: SidePart) -> Expr:
        name = self._extents.get(part.extent)
        if name is None:
            param = ScalarParam(f"range_{len(self._extents)}", INT64)
            name = self._param(param, RangeSource(part.geometry, 0))
            self._extents[part.extent] = name
        return Param(INT64, name)

    def _param(self, param: KernelParam, source: ParamSource) -> str:
        name = self._names.fresh(param.name)
        self._params.append(replace(param, name=name))
        self._sources[name] = source
        return name

    def _array(self, param: ArrayParam, part: SidePart) -> str:
        """The parameter of a part's array; that of a view that several parts have is one."""
        source = part.fused.sources[param.name]
        view = self._view(source)
        if view not in self._views:
            self._views[view] = self._param(param, source)
            return self._views[view]
        name = self._views[view]
        place = next(k for k, p in enumerate(self._params) if p.name == name)
        there = self._params[place]
        assert isinstance(there, ArrayParam)
        self._params[place] = replace(
            there,
            restrict=there.restrict and param.restrict,
            unwritten=there.unwritten or param.unwritten,
        )
        return name

    def _part(self, part: SidePart, number: int) -> tuple[Stmt, ...]:
        """The body of a part, whose first submission is ``number`` of the launch, in its names."""
        kernel = part.fused.kernel
        names: dict[str, str] = {}
        for param in kernel.params:
            if isinstance(param, ArrayParam):
                names[param.name] = self._array(param, part)
            else:
                names[param.name] = self._param(param, part.fused.sources[param.name])
        for variable, kind in kernel.variables:
            names[variable] = self._names.fresh(variable)
            self._variables.append((names[variable], kind))
        for loop in (s.var for s in statements(kernel.body) if isinstance(s, For)):
            if loop not in names:
                names[loop] = self._names.fresh(loop)
        self._declare(kernel, names)

        def expr(e: Expr) -> Expr:
            match e:
                case Var() | Param():
                    return replace(e, name=names[e.name])
                case Extent() | Load():
                    return replace(e, array=names[e.array])
                case ItemQuery("global_range" | "group_range"):
                    raise AssertionError("a fused kernel asks for no range of the launch")
            return e

        body = rewrite_body(kernel.body, expr, _renaming(names, number))
        alone = not any(
            isinstance(s, Block) and number_in(s.label) is not None for s in statements(body)
        )
        return (Block(label(number, part.names[0]), body),) if alone else body

    def _declare(self, kernel: Kernel, names: dict[str, str]) -> None:
        """Add the arrays that a part declares."""
        memories = local_memories(kernel)
        largest = sorted(memories, key=lambda m: -max(a.nbytes for a in memories[m]))
        place = {a.name: n for n, m in enumerate(largest) for a in memories[m]}
        for array in kernel.arrays:
            name = names[array.name] = self._names.fresh(array.name)
            memory = None
            if array.name in place:
                memory = self._memories.setdefault(place[array.name], name)
            shared = None if memory == name else memory
            self._arrays.append(replace(array, name=name, memory=shared))


def _renaming(names: dict[str, str], number: int) -> Callable[[Stmt], tuple[Stmt, ...]]:
    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Block):
            own = number_in(s.label)
            if own is None:
                return s.body
            return (replace(s, label=label(number + own, s.label.partition(": ")[2])),)
        if isinstance(s, GroupCall) and s.values is not None:
            s = replace(s, values=names[s.values])
        return (renamed_statement(s, names, names),)

    return stmt
