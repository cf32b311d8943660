"""Array reductions of a tile in private memory (privatisation).

    atomic_add(counts[bin], 1)    →    for k in range(counts.size): kept[k] = 0
                                       for each work-item: kept[bin] += 1
                                       for k in range(counts.size):
                                           total = sum of kept[k] over the worker's lanes
                                           if total != 0: atomic_add(counts[k], total)

Atomic operations of a vector's lanes are done one by one, and workers that change the same elements
take the cache line from each other.  Those whose results nobody takes are the same in any order, so
each lane does its own on a copy of the array, where that is small beside the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.scoping import Body
from fusionq.ir.array_reductions import ReductionOp, array_reductions
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Atomic,
    Binary,
    BinaryOp,
    Call,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    GroupCall,
    If,
    Kernel,
    Load,
    Logical,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import rewrite_body
from fusionq.language.combine import identity

LANE = Var(INT64, "reduction lane")
"""The lane's number; no name of a kernel has a space."""

_MINMAX = {"min": "minimum", "max": "maximum"}
_OPS: dict[ReductionOp, BinaryOp] = {"add": "add", "and": "and", "or": "or", "xor": "xor"}


@dataclass(frozen=True)
class PrivateReductions:
    """``body`` serves a work-item, with ``arrays`` and ``variables`` more, between ``before`` and
    ``after``, which all lanes do.  ``after`` has ``stores`` in its loops, for the first ``LANE``.
    ``small``: whether the copies hold all elements, whose number is ``elements``."""

    arrays: tuple[ArrayDecl, ...]
    variables: tuple[tuple[str, ScalarType], ...]
    small: tuple[Expr, ...]
    elements: Expr
    before: Body
    body: Body
    after: Body
    stores: Body


def private_reductions(
    kernel: Kernel, body: Body, names: Sequence[str], lanes: int
) -> PrivateReductions | None:
    """What is done in place of ``body``, what ``kernel`` does for a work-item, for the arrays with
    these names, by ``lanes`` that run as one; None without such."""
    ops = {name: op for name, op in array_reductions(kernel).items() if name in names}
    if not ops:
        return None
    params = [p for p in kernel.params if isinstance(p, ArrayParam) and p.name in ops]
    most = CODE_LIMITS.private_copies_bytes // sum(p.dtype.nbytes for p in params)
    arrays: dict[str, ArrayDecl] = {}
    variables: list[tuple[str, ScalarType]] = []
    small: list[Expr] = []
    sizes: list[Expr] = []
    before: list[Stmt] = []
    after: list[Stmt] = []
    stores: list[Stmt] = []
    for number, param in enumerate(params):
        kept = arrays[param.name] = ArrayDecl(
            f"reduction copy {number}", param.dtype, (most,), "private"
        )
        extents: list[Expr] = [Extent(param.name, d) for d in range(param.ndim)]
        size = reduce(_product, extents[1:], extents[0])
        sizes.append(size)
        limit = Const(INT64, most)
        small += [Compare("le", e, limit) for e in dict.fromkeys([*extents, size])]
        op = ops[param.name]
        nothing = Const(param.dtype, identity(op, param.dtype.dtype).item())
        turn, total = Var(INT64, f"reduction element {number}"), f"reduction total {number}"
        variables.append((total, param.dtype))
        before.append(_loop(turn, size, (Store(kept.name, (turn,), nothing),)))
        value = Var(param.dtype, total)
        call = GroupCall(
            "reduce", op, Load(param.dtype, kept.name, (turn,)), None, total, sub_group=lanes
        )
        place = tuple(_place(turn, extents))
        change = Atomic(op, param.name, place, value, None, "relaxed", "device")
        leads = Compare("eq", LANE, Const(INT64, 0))
        store = If(Logical("and", leads, Compare("ne", value, nothing)), (change,), ())
        stores.append(store)
        after.append(_loop(turn, size, (call, store)))
    new = _own(kernel, body, ops, arrays, variables)
    elements = reduce(lambda a, b: Binary(INT64, "add", a, b), sizes)
    return PrivateReductions(
        tuple(arrays.values()),
        tuple(variables),
        tuple(small),
        elements,
        tuple(before),
        new,
        tuple(after),
        tuple(stores),
    )


def with_reductions(kernel: Kernel, found: PrivateReductions) -> Kernel:
    """``kernel`` that does what ``found`` has in place of its body."""
    variables = (*kernel.variables, *found.variables)
    arrays = (*kernel.arrays, *found.arrays)
    return replace(kernel, body=found.body, variables=variables, arrays=arrays)


def _own(
    kernel: Kernel,
    body: Body,
    ops: dict[str, ReductionOp],
    arrays: dict[str, ArrayDecl],
    variables: list[tuple[str, ScalarType]],
) -> Body:
    """``body`` on the lane's own copies; adds to ``variables``."""

    def own(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Atomic) or stmt.array not in ops:
            return (stmt,)
        assert stmt.value is not None
        kept = arrays[stmt.array]
        place = Var(INT64, f"reduction place {len(variables)}")
        variables.append((place.name, INT64))
        index = stmt.indices[0]
        for d, other in enumerate(stmt.indices[1:], 1):
            row = _product(index, Extent(stmt.array, d))
            index = Binary(INT64, "add", row, other)
        old: Expr = Load(kept.dtype, kept.name, (place,))
        op = ops[stmt.array]
        new: Expr
        if op in _MINMAX:
            new = Call(kept.dtype, _MINMAX[op], (old, stmt.value))
        else:
            combined = "sub" if stmt.op == "sub" else _OPS[op]
            new = Binary(kept.dtype, combined, old, stmt.value)
        return (
            Assign(place.name, index, stmt.span),
            Store(kept.name, (place,), new, stmt.span),
        )

    return rewrite_body(body, stmt=own)


def _place(linear: Var, extents: Sequence[Expr]) -> list[Expr]:
    """The indices of the element with the place ``linear`` among all."""
    places: list[Expr] = []
    rest: Expr = linear
    for extent in reversed(extents[1:]):
        places.insert(0, Binary(INT64, "mod", rest, extent))
        rest = Binary(INT64, "floordiv", rest, extent)
    return [rest, *places]


def _loop(turn: Var, size: Expr, body: Body) -> Stmt:
    return For(turn.name, Const(INT64, 0), size, Const(INT64, 1), body)


def _product(a: Expr, b: Expr) -> Expr:
    return Binary(INT64, "mul", a, b)
