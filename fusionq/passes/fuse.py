"""Fuse submissions into one kernel.

    mul(a, b, out): out[i] = a[i] * b[i]          fused(a, b, out, b_1, out_1, range_0):
    sub(a, b, out): out[i] = a[i] - b[i]    →         if i < range_0:
                                                          out[i] = a[i] * b[i]
                                                          out_1[i] = a[i] - b_1[i]

Arguments that are one and the same view become one parameter; variables are renamed; ids are
those of the common index space; each submission's statements are guarded by its own range,
and neighbours with the same range share a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fusionq.analysis.aliasing import has_unit_stride, is_contiguous, overlaps_itself
from fusionq.analysis.item_space import ItemSpace, global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.small_extents import small_extents
from fusionq.analysis.submission import ArrayArgument
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Barrier,
    Binary,
    Block,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    ItemQuery,
    Kernel,
    KernelParam,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Var,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import renamed_statement, rewrite_body, statements
from fusionq.passes.guard import guarded
from fusionq.passes.labels import label
from fusionq.passes.sources import ArgumentSource, ParamSource, RangeSource


class ArrayFacts(NamedTuple):
    """What a fused kernel has as constants of an array that it is given."""

    contiguous: bool
    unit_stride: bool
    overlaps_itself: bool
    alignment: int | None
    extents: tuple[int, ...]
    """The last ones (``small_extents``)."""


def array_facts(array: ArrayArgument) -> ArrayFacts:
    """Those of ``array``."""
    return ArrayFacts(
        is_contiguous(array),
        has_unit_stride(array),
        overlaps_itself(array),
        array.alignment,
        small_extents(array),
    )


@dataclass
class FusedKernel:
    """A fused kernel under construction: where each parameter's value comes from, and the
    parameter that stands for each (alias group, view)."""

    kernel: Kernel
    sources: dict[str, ParamSource]
    views: dict[tuple[int, int], str]


def fuse(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    barriers: Mapping[int, Barrier],
    constants: Mapping[tuple[int, int], int],
) -> FusedKernel:
    """One kernel that does what the submissions ``members`` do, in their order, with
    ``barriers`` before some of them and the values ``constants`` for some scalar arguments
    (submission and position)."""
    return _Fuser(analysis, tuple(members), space, barriers, constants).run()


@dataclass
class _Fuser:
    analysis: ListAnalysis
    members: tuple[int, ...]
    space: ItemSpace
    barriers: Mapping[int, Barrier]
    constants: Mapping[tuple[int, int], int]
    names: FreshNames = field(default_factory=FreshNames)
    params: list[KernelParam] = field(default_factory=list)
    sources: dict[str, ParamSource] = field(default_factory=dict)
    views: dict[tuple[int, int], str] = field(default_factory=dict)
    variables: list[tuple[str, ScalarType]] = field(default_factory=list)
    arrays: list[ArrayDecl] = field(default_factory=list)
    ranges: dict[int, Param] = field(default_factory=dict)
    extents: dict[tuple[str, int], int] = field(default_factory=dict)
    """Of array parameters, by dimension, those that are constants."""

    def __post_init__(self) -> None:
        submissions, place = self.analysis.submissions, self.analysis.place
        self.views_of: dict[int, set[int]] = {}
        """The views of each alias group."""
        self.owners: dict[tuple[int, ...], int] = {}
        """For each global range the first submission that has it."""
        self.divided: set[tuple[int, ...]] = set()
        """The global ranges that the user has divided into work-groups."""
        for s in self.members:
            for k, argument in enumerate(submissions[s].arguments):
                if isinstance(argument, ArrayArgument):
                    lies = place[s, k]
                    self.views_of.setdefault(lies.group, set()).add(lies.view)
            extents = tuple(global_range(submissions[s]))
            self.owners.setdefault(extents, s)
            if local_range(submissions[s]) is not None:
                self.divided.add(extents)

    def run(self) -> FusedKernel:
        submissions = self.analysis.submissions
        body: list[Stmt] = []
        together: list[Stmt] = []
        last: tuple[int, ...] | None = None

        def close() -> None:
            if last is not None:
                guard = self._guard(last)
                body.extend(together if guard is None else guarded(together, guard))
                together.clear()

        for s in self.members:
            extents = tuple(global_range(submissions[s]))
            if extents != last or s in self.barriers:
                close()
            if s in self.barriers:
                body.append(self.barriers[s])
            last = extents
            together.append(self._submission(s))
        close()
        names = [submissions[s].ir.name for s in self.members]
        kernel = Kernel(
            name=names[0] if len(names) == 1 else fused_name(names),
            ndim=self.space.ndim,
            params=tuple(self.params),
            variables=tuple(self.variables),
            body=tuple(body),
            arrays=tuple(self.arrays),
            sub_group_size=max(submissions[s].ir.sub_group_size or 0 for s in self.members) or None,
            span=submissions[self.members[0]].ir.span,
        )
        return FusedKernel(kernel, self.sources, self.views)

    # --------------------------------------------------------------------- parameters
    def _array(self, s: int, k: int, param: ArrayParam) -> str:
        place = self.analysis.place[s, k]
        key = (place.group, place.view)
        if key not in self.views:
            argument = self.analysis.submissions[s].arguments[k]
            assert isinstance(argument, ArrayArgument)
            name = self.views[key] = self.names.fresh(param.name)
            facts = array_facts(argument)
            alone = len(self.views_of[place.group]) == 1 and not facts.overlaps_itself
            self.params.append(
                replace(
                    param,
                    name=name,
                    contiguous=facts.contiguous,
                    unit_stride=facts.unit_stride,
                    restrict=alone,
                    alignment=facts.alignment,
                    extents=facts.extents,
                )
            )
            self.sources[name] = ArgumentSource(s, k)
            first = len(argument.shape) - len(facts.extents)
            self.extents |= {(name, first + n): value for n, value in enumerate(facts.extents)}
        return self.views[key]

    def _extent(self, value: int, s: int, dim: int) -> Param:
        """The parameter that holds an extent of a range; equal extents share one."""
        if value not in self.ranges:
            name = self.names.fresh(f"range_{len(self.ranges)}")
            self.params.append(ScalarParam(name, INT64))
            self.sources[name] = RangeSource(s, dim)
            self.ranges[value] = Param(INT64, name)
        return self.ranges[value]

    def _global_range(self, s: int, dim: int) -> Param:
        return self._extent(global_range(self.analysis.submissions[s])[dim], s, dim)

    # --------------------------------------------------------------------- submissions
    def _submission(self, s: int) -> Block:
        submission = self.analysis.submissions[s]
        kernel = submission.ir
        arrays: dict[str, str] = {}
        scalars: dict[str, Param | Const] = {}
        for param in kernel.params:
            k = self.analysis.argument_index(s, param.name)
            if isinstance(param, ArrayParam):
                arrays[param.name] = self._array(s, k, param)
            elif (s, k) in self.constants:
                scalars[param.name] = Const(param.type, self.constants[s, k])
            else:
                name = self.names.fresh(param.name)
                scalars[param.name] = Param(param.type, name)
                self.params.append(replace(param, name=name))
                self.sources[name] = ArgumentSource(s, k)
        locals_: dict[str, str] = {}
        for variable, kind in kernel.variables:
            locals_[variable] = name = self.names.fresh(variable)
            self.variables.append((name, kind))
        for declared in kernel.arrays:
            arrays[declared.name] = self._declared(declared)
        prologue, ids = self._ids(s)

        def expr(e: Expr) -> Expr:
            match e:
                case Var(type, name):
                    return Var(type, locals_.setdefault(name, name))
                case Param(_, name):
                    return scalars[name]
                case Extent(array, dim):
                    known = self.extents.get((arrays[array], dim))
                    return Extent(arrays[array], dim) if known is None else Const(INT64, known)
                case Load():
                    return replace(e, array=arrays[e.array])
                case ItemQuery():
                    return self._query(s, e, ids)
                case _:
                    return e

        for loop in _loop_variables(kernel.body):
            locals_[loop] = self.names.fresh(loop)
        body = rewrite_body(kernel.body, expr, lambda st: (renamed_statement(st, locals_, arrays),))
        # Without a number a lone submission is the same kernel, and program, wherever it stands.
        alone = len(self.members) == 1
        return Block(kernel.name if alone else label(s, kernel.name), (*prologue, *body))

    def _declared(self, array: ArrayDecl) -> str:
        """The name of an array that a submission declares; equal constant ones are one."""
        if array.space == "constant":
            for other in self.arrays:
                if replace(other, name=array.name) == array:
                    return other.name
        name = self.names.fresh(array.name)
        self.arrays.append(replace(array, name=name))
        return name

    def _ids(self, s: int) -> tuple[tuple[Stmt, ...], Callable[[int], Expr]]:
        """A submission's ids in the fused kernel, and the statements that compute them."""
        submission = self.analysis.submissions[s]
        ndim = len(global_range(submission))
        if self.space.mode != "linear" or ndim == 1:
            first = 1 if self._is_row(ndim) else 0
            return (), lambda d: ItemQuery("global_id", first + d)
        rest: Expr = ItemQuery("global_id", 0)
        statements: list[Stmt] = []
        ids: dict[int, Expr] = {}
        for d in reversed(range(ndim)):
            name = self.names.fresh(f"id_{d}")
            self.variables.append((name, INT64))
            extent = self._global_range(s, d)
            value = rest if d == 0 else Binary(INT64, "mod", rest, extent)
            statements.append(Assign(name, value))
            ids[d] = Var(INT64, name)
            rest = Binary(INT64, "floordiv", rest, extent)
        return tuple(statements), ids.__getitem__

    def _is_row(self, ndim: int) -> bool:
        """Whether a range of ``ndim`` dimensions is the first row of the fused kernel's."""
        return self.space.mode in ("last", "hull") and ndim == 1 < self.space.ndim

    def _query(self, s: int, query: ItemQuery, ids: Callable[[int], Expr]) -> Expr:
        submission = self.analysis.submissions[s]
        match query.query:
            case "global_id":
                return ids(query.dim)
            case "global_range":
                return self._global_range(s, query.dim)
            case "local_id" | "group_id":
                return query
        local = local_range(submission)
        assert local is not None, "work-group queries need an explicit NdRange"
        size = Const(INT64, local[query.dim])
        if query.query == "local_range":
            return size
        return Binary(INT64, "floordiv", self._global_range(s, query.dim), size)

    # -------------------------------------------------------------------------- guards
    def _guard(self, extents: tuple[int, ...]) -> Expr | None:
        """The condition under which a work-item of the launch belongs to a range."""
        owner = self.owners[extents]
        if self.space.mode == "linear":
            total: Expr = self._global_range(owner, 0)
            for d in range(1, len(extents)):
                total = Binary(INT64, "mul", total, self._global_range(owner, d))
            return Compare("lt", ItemQuery("global_id", 0), total)
        dims = range(len(extents))
        if self.divided:
            # The user's work-group size divides all extents but perhaps the first of another
            # submission, which is the only one that may differ.  The launch is the largest of
            # them, rounded up to whole groups where that is a plain Range.
            exact = extents in self.divided and extents == max(self.owners)
            dims = range(0 if len(self.owners) == 1 or exact else 1)
        first = 1 if self._is_row(len(extents)) else 0
        inside: list[Expr] = [
            Compare("lt", ItemQuery("global_id", first + d), self._global_range(owner, d))
            for d in dims
        ]
        if len(extents) < self.space.ndim:
            inside.append(Compare("eq", ItemQuery("global_id", 1 - first), Const(INT64, 0)))
        return conjunction(inside) if inside else None


def _loop_variables(body: Sequence[Stmt]) -> list[str]:
    return list(dict.fromkeys(s.var for s in statements(body) if isinstance(s, For)))


def fused_name(names: Sequence[str]) -> str:
    """A readable name: the kernels in order, repeated ones and long lists shortened."""
    joined = "_".join(dict.fromkeys(names))
    return f"fused{len(names)}_{joined[:48].rstrip('_')}"
