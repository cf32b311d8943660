"""Rows of a matrix that work-groups read in steps of their size, by way of slots of local memory
that others fill:

    for k in range(lane, n, 128):         if ready:
        own += a[row, k] * x[k]              for chunk in range(0, n // 2048 * 2048, 2048):
                                      →          16 loads of x
                                                 slots = the next two, once they are full
                                                 16 times own += slot[lane + 128 * t] * x[…]
                                                 the slots are free
                                             for chunk in range(n // 2048 * 2048, n, 1024):
                                                 the same with one, whole or not
                                          else: as before

What fills the slots (``codegen.stream_text``) runs ahead of all waits.  Legal for arrays that no
stage of the kernel writes, of which each iteration reads an element: what is fetched are just the
elements that the loop reads, at whatever time.  Iterations are done in their order, so sums have
the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from math import prod

from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.loads_ahead import IN_SLOT, REST, TURN, loads_in_each_iteration
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.codegen.stage_tables import code_bodies, unwritten_parameters
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Persistent,
    Select,
    StageCode,
    Store,
    Var,
)
from fusionq.ir.types import BOOL, INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    is_work_group_function,
    rewrite,
    rewrite_body,
    statements,
    stored_arrays,
    subexpressions,
    takes_work_groups,
)

READY = "stream_ready"
"""The variable that says whether a stage's slots are filled."""
_CHUNK = "stream_chunk_"
_SLOTS = "stream_slots_"
READ = "stream_read"
"""The variable of a loop of one turn behind the last one over slots: the group has read its own."""
_KEPT = "streamed_"
_AHEAD = "stream_ahead_"
"""How the arrays begin of what is loaded before slots are waited for."""
TOGETHER = 2
"""Slots that are read at once, where there are so many: each wait for a slot, and each load of what
is no row, takes as long as the sums of a slot."""
_MOST_AHEAD = 16
"""Values that a work-item keeps for them, of which it loads no more before that."""
_OPERATIONS = frozenset({"add", "sub", "mul", "floordiv", "mod"})


@dataclass(frozen=True)
class Row:
    """Neighbours in the last dimension of ``array``, at ``indices`` of the others, which are over
    parameters and the ids of a work-group."""

    array: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class StreamedLoop:
    """A loop of a work-group over the first ``stop`` elements of ``rows``, which stands at
    ``place`` of its kernel's body without nested blocks.  ``loads``: those of each iteration;
    ``element_bytes``: what they take together.  ``holds``: whether nothing is asked for behind the
    last slot of a tile until that is counted."""

    place: int
    rows: tuple[Row, ...]
    loads: tuple[Load, ...]
    stop: Expr
    element_bytes: int
    holds: bool = False

    def columns(self, slot_bytes: int, size: int) -> int:
        """How many elements of each row a slot holds, for work-groups of ``size``."""
        return slot_bytes // self.element_bytes // size * size

    def chunk(self) -> str:
        """The variable of the loop over slots."""
        return f"{_CHUNK}{self.place}"

    def together(self) -> str:
        """The variable of the loop over as many slots as are read at once, which is one
        iteration."""
        return f"{_SLOTS}{self.place}"

    def kept(self, row: int, slot: int | None = None) -> str:
        """The array that stands for a row in a slot, or in one of those that are read at once."""
        return f"{_KEPT}{self.place}_{row}" + ("" if slot is None else f"_{slot}")


@dataclass(frozen=True)
class Streams:
    """What of a persistent kernel can be streamed to work-groups of ``size``: ``loops`` by the
    number of a body, and for the others that read rows ``reasons`` why not, by array."""

    size: int
    loops: Mapping[int, tuple[StreamedLoop, ...]]
    reasons: Mapping[int, Mapping[str, str]]


def streams_of(body: Persistent, lanes: int, slot_bytes: int) -> Streams | None:
    """What may be streamed to workers of so many lanes, by slots of so many bytes; None where
    nothing can be."""
    known = _found(body)
    if (lanes, slot_bytes) not in known:
        known[lanes, slot_bytes] = _streams(body, lanes, slot_bytes)
    return known[lanes, slot_bytes]


@cached_by_identity
def _found(body: Persistent) -> dict[tuple[int, int], Streams | None]:
    """What has been found out of ``body``."""
    return {}


def _streams(body: Persistent, lanes: int, slot_bytes: int) -> Streams | None:
    bodies = code_bodies(body)
    loops: dict[int, tuple[StreamedLoop, ...]] = {}
    reasons: dict[int, dict[str, str]] = {}
    sizes: dict[int, int] = {}
    for number in range(len(set(bodies))):
        code = body.codes[bodies.index(number)]
        found, others = _of_stage(code, unwritten_parameters(body, number), lanes, slot_bytes)
        if found:
            loops[number], sizes[number] = found, prod(code.local_range or ())
        if others:
            reasons[number] = others
    if not loops:
        return None
    uses = Counter(sizes[b] for s in body.stages if (b := bodies[s.code]) in sizes)
    size = max(uses, key=lambda size: (uses[size], size))
    for number in [n for n, own in sizes.items() if own != size]:
        arrays = {row.array for loop in loops.pop(number) for row in loop.rows}
        reason = f"it is read by work-groups of {sizes[number]}, others by such of {size}"
        reasons.setdefault(number, {}).update(dict.fromkeys(sorted(arrays), reason))
    for number in loops.keys() - _awaited_by_streams(body, frozenset(loops)):
        *before, last = loops[number]
        loops[number] = *before, replace(last, holds=True)
    return Streams(size, loops, reasons)


def _awaited_by_streams(body: Persistent, streaming: Set[int]) -> set[int]:
    """The numbers of those bodies, of which all are ``streaming``, for one of whose stages a
    streaming stage waits first.

    What a tile has stored is seen by others once all has come that its block asks for: as much as
    is on its way at once, 1.5 µs on an H100.  Where stages wait that read no slots, such as a norm
    in one work-group, rings are full before slots are read again, so nothing is lost where they
    ask for nothing meanwhile (a decode step 1.134 → 1.107 ms); where a product waits itself they
    are not (1.112)."""
    bodies = code_bodies(body)
    first: dict[int, int] = {}
    for k, stage in enumerate(body.stages):
        for producer in stage.producers:
            first.setdefault(producer, k)
    return {
        bodies[body.stages[producer].code]
        for producer, k in first.items()
        if bodies[body.stages[k].code] in streaming
    }


def _of_stage(
    code: StageCode, unwritten: Set[str], lanes: int, slot_bytes: int
) -> tuple[tuple[StreamedLoop, ...], dict[str, str]]:
    """The loops of a stage that may be streamed, and why others are not, by array."""
    kernel, local = code.kernel, code.local_range
    if local is None or not takes_work_groups(kernel) or is_work_group_function(kernel):
        return (), {}
    size = prod(local)
    names = [*(p.name for p in kernel.params), *(n for n, _ in kernel.variables)]
    if size % 32 or lanes % size or any(n.startswith(("stream_", _KEPT)) for n in names):
        return (), {}
    found: list[StreamedLoop] = []
    reasons: dict[str, str] = {}
    for place, loop, known in _row_loops(flatten_blocks(kernel.body), local):
        rows: dict[Row, Load] = {}
        for load in _loads(kernel, loop):
            row, reason = _row(kernel, load, loop, known, unwritten, local)
            if row is not None:
                rows[row] = load
            elif reason:
                reasons[load.array] = reason
        if not rows:
            continue
        stop = _known(loop.stop, known, local)
        assert stop is not None
        nbytes = sum(_array(kernel, row.array).dtype.nbytes for row in rows)
        made = StreamedLoop(place, tuple(rows), tuple(rows.values()), stop, nbytes)
        if made.columns(slot_bytes, size):
            found.append(made)
        else:
            reason = f"a step of the loop takes {nbytes * size:,} bytes, a slot {slot_bytes:,}"
            reasons.update({row.array: reason for row in rows})
    return tuple(found), reasons


def _row_loops(
    body: Body, local: tuple[int, ...]
) -> Iterator[tuple[int, For, Mapping[str, Expr]]]:
    """The loops of a whole work-group, one of whose work-items does one iteration in a round, over
    bounds that are known before any memory is; with what is known there of variables."""
    count = Counter(assigned_variable(stmt) for stmt in statements(body))
    known: dict[str, Expr] = {}
    for place, stmt in enumerate(body):
        match stmt:
            case Assign(name, value) if count[name] == 1:
                found = _known(value, known, local)
                if found is not None:
                    known[name] = found
            case For(start=ItemQuery("local_id", dim), step=Const(_, step)):
                whole = int(step) == local[dim] == prod(local)
                plain = all(isinstance(s, Assign | Store) for s in stmt.body)
                if whole and plain and _known(stmt.stop, known, local) is not None:
                    yield place, stmt, dict(known)


def _known(value: Expr, known: Mapping[str, Expr], local: tuple[int, ...]) -> Expr | None:
    """``value`` over parameters and the ids of a work-group, which all of its work-items have;
    None where it is something else."""
    match value:
        case Const() | Param() | Extent() if value.type.is_integer:
            return value
        case Var():
            return known.get(value.name)
        case ItemQuery("group_id"):
            return value
        case ItemQuery("global_id", dim) if local[dim] == 1:
            return value
        case Cast() if value.type.is_integer and value.operand.type.is_integer:
            inner = _known(value.operand, known, local)
            return None if inner is None else replace(value, operand=inner)
        case Binary() if value.op in _OPERATIONS and value.type.is_integer:
            lhs, rhs = (_known(e, known, local) for e in (value.lhs, value.rhs))
            return None if lhs is None or rhs is None else replace(value, lhs=lhs, rhs=rhs)
    return None


def _loads(kernel: Kernel, loop: For) -> list[Load]:
    units = loads_in_each_iteration(kernel, loop)
    return [e for unit in units for e in subexpressions(unit) if isinstance(e, Load)]


def _row(
    kernel: Kernel,
    load: Load,
    loop: For,
    known: Mapping[str, Expr],
    unwritten: Set[str],
    local: tuple[int, ...],
) -> tuple[Row | None, str]:
    """The row that a loop's load is of, or why it is not streamed: nothing where all work-groups
    read the same."""
    param = _array(kernel, load.array)
    *outer, last = load.indices
    indices = [_known(index, known, local) for index in outer]
    own = any(
        isinstance(e, ItemQuery) for index in indices if index is not None
        for e in subexpressions(index)
    )
    if None not in indices and not own:
        return None, ""
    if load.array not in unwritten or load.array in stored_arrays(kernel.body):
        return None, "a stage writes it"
    if last != Var(INT64, loop.var) or None in indices:
        return None, "which rows of it are read is not known"
    if param.alignment is not None or not (param.contiguous or param.unit_stride):
        return None, "its elements are no neighbours in memory"
    return Row(load.array, tuple(i for i in indices if i is not None)), ""


def _array(kernel: Kernel, name: str) -> ArrayParam:
    param = kernel.param(name)
    assert isinstance(param, ArrayParam)
    return param


def streamed(
    kernel: Kernel, loops: tuple[StreamedLoop, ...], slot_bytes: int, size: int, together: int
) -> tuple[Kernel, tuple[ArrayDecl, ...]]:
    """The kernel with ``loops`` over slots, of which so many are read ``together``, and the arrays
    that stand for the rows in a slot."""
    body = list(flatten_blocks(kernel.body))
    arrays: list[ArrayDecl] = []
    ahead: list[ArrayDecl] = []
    variables: list[tuple[str, ScalarType]] = []
    for one in loops:
        loop = body[one.place]
        assert isinstance(loop, For)
        columns = one.columns(slot_bytes, size)
        arrays += [
            ArrayDecl(one.kept(k, slot), _array(kernel, row.array).dtype, (columns,), "private")
            for k, row in enumerate(one.rows)
            for slot in (None, *(range(together) if together > 1 else ()))
        ]
        slots, kept = _by_slots(kernel, one, loop, columns, size, together)
        ahead += kept
        every = f"{REST}{one.place}"
        if one.holds:
            slots = (*slots, For(READ, _number(0), _number(1), _number(1), ()))
        body[one.place] = If(Var(BOOL, READY), slots, _rest(every, loop, loop.start))
        variables += [(every, INT64), (every + IN_SLOT, INT64)]
    made = replace(
        kernel,
        arrays=(*kernel.arrays, *arrays, *ahead),
        variables=(*kernel.variables, *variables),
        body=tuple(body),
    )
    return made, tuple(arrays)


def _rest(name: str, loop: For, start: Expr) -> Body:
    """``loop`` from ``start`` on, which the variable ``name`` holds, of which few iterations are
    done at once: registers are for slots."""
    return Assign(name, start), replace(loop, start=Var(INT64, name))


def _by_slots(
    kernel: Kernel, one: StreamedLoop, loop: For, columns: int, size: int, together: int
) -> tuple[Body, list[ArrayDecl]]:
    """``loop`` over slots, and the arrays of what it loads before it waits for several."""
    chunk, k = Var(INT64, one.chunk()), Var(INT64, loop.var)
    turns = columns // size

    def iteration(at: Expr, k: Expr, slot: int | None, of_kept: Mapping[Expr, Expr]) -> Body:
        """An iteration, of elements at ``at`` in the slot, ``k`` of the row."""

        def of_slot(e: Expr) -> Expr:
            if isinstance(e, Load) and e in one.loads:
                return Load(e.type, one.kept(one.loads.index(e), slot), (at,))
            return of_kept.get(e, e)

        def moved(e: Expr) -> Expr:
            return k if e == Var(INT64, loop.var) else e

        return rewrite_body(rewrite_body(loop.body, of_slot), moved)

    def over(turn: Var, count: int, body: Body) -> For:
        return For(turn.name, _number(0), _number(count), _number(1), body)

    def element(turn: Var) -> Binary:
        """The element of a slot that the iteration ``turn`` of a work-item reads."""
        return _add(loop.start, Binary(INT64, "mul", turn, _number(size)))

    def whole(turn: Var, chunk: Expr, slot: int | None, of_kept: Mapping[Expr, Expr]) -> For:
        """The iterations over a slot that is full, of elements from ``chunk`` on."""
        at = element(turn)
        return over(turn, turns, iteration(at, _add(chunk, at), slot, of_kept))

    rest = _rest(
        f"{REST}{one.place}{IN_SLOT}",
        replace(loop, body=iteration(Binary(INT64, "sub", k, chunk), k, None, {})),
        _add(chunk, loop.start),
    )
    fits = Compare("le", _add(chunk, _number(columns)), loop.stop)
    alone = whole(Var(INT64, f"{TURN}stream_{one.place}"), chunk, None, {})
    parts = (If(fits, (alone,), rest),)
    if together < 2:
        return (For(chunk.name, _number(0), loop.stop, _number(columns), parts),), []
    many = together * columns
    loads = _loads_ahead(kernel, one, loop)
    if together * turns * len(loads) > _MOST_AHEAD:
        loads = []
    kept = [
        ArrayDecl(f"{_AHEAD}{one.place}_{n}", load.type, (together * turns,), "private")
        for n, load in enumerate(loads)
    ]
    before = Var(INT64, f"{TURN}{_AHEAD}{one.place}")
    first = Var(INT64, f"{one.chunk()}_{together}")

    def in_turn(e: Expr) -> Expr:
        return _add(first, element(before)) if e == Var(INT64, loop.var) else e

    get = tuple(
        Store(array.name, (before,), rewrite(load, in_turn))
        for array, load in zip(kept, loads, strict=True)
    )

    def sums(slot: int) -> For:
        turn = Var(INT64, f"{TURN}stream_{one.place}_{together}_{slot}")
        of_kept: dict[Expr, Expr] = {
            load: Load(array.dtype, array.name, (_add(turn, _number(slot * turns)),))
            for array, load in zip(kept, loads, strict=True)
        }
        return whole(turn, _add(first, _number(slot * columns)), slot, of_kept)

    end: Expr = Binary(INT64, "floordiv", loop.stop, _number(many))
    end = Binary(INT64, "mul", end, _number(many))
    if not isinstance(loop.stop, Extent):  # which may be negative
        end = Select(INT64, Compare("gt", loop.stop, _number(0)), end, _number(0))
    slots = For(
        one.together(), first, _add(first, _number(1)), _number(1),
        tuple(sums(slot) for slot in range(together)),
    )  # fmt: skip
    ahead = (over(before, together * turns, get),) if get else ()
    return (
        For(first.name, _number(0), end, _number(many), (*ahead, slots)),
        For(chunk.name, end, loop.stop, _number(columns), parts),
    ), kept


def _loads_ahead(kernel: Kernel, one: StreamedLoop, loop: For) -> list[Expr]:
    """The loads of each iteration that are of no row and may be done before all that it does."""
    stored = stored_arrays(loop.body)
    if any(isinstance(p, ArrayParam) and p.name in stored for p in kernel.params):
        return []
    return [
        unit
        for unit in loads_in_each_iteration(kernel, loop)
        if not any(e in one.loads for e in subexpressions(unit))
    ]


def _number(value: int) -> Const:
    return Const(INT64, value)


def _add(lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT64, "add", lhs, rhs)
