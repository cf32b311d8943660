"""What a kernel does as text, and what that needs around it: pointers, arrays, types, helpers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from fusionq.base.frozen import dataclass
from fusionq.codegen import unrolled_loops
from fusionq.codegen.array_access import Memory, slot_type
from fusionq.codegen.device_source import Pointer, Slot
from fusionq.codegen.dialect import Dialect, Scalars
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.group_statements import GroupLanes, GroupStatementPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.index_text import given_variables
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.loads_ahead import keeps_loads
from fusionq.codegen.local_places import local_places
from fusionq.codegen.names import Names
from fusionq.codegen.narrow_indices import narrowed
from fusionq.codegen.narrow_values import narrowed_values
from fusionq.codegen.scoping import Body, read_unassigned
from fusionq.codegen.statements import Around, StatementPrinter
from fusionq.codegen.stored_arrays import surely_stored
from fusionq.codegen.streaming_text import StreamingText
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Atomic,
    Const,
    Expr,
    Kernel,
    Load,
    Select,
    Store,
    WorkItemLoop,
)
from fusionq.ir.sums import places_of_sums
from fusionq.ir.types import ELEMENT_TYPES, UINT64, ScalarType
from fusionq.ir.uniformity import uniform_variables
from fusionq.ir.walk import expressions, has_barrier, local_memories, statements


@dataclass(frozen=True)
class GroupLoop:
    """What the text of a stage of work-groups is made of: the pointer to the bytes that its local
    arrays lie in; and, of a work-group function, the lines of a loop over work-items, of those of
    its body, and its lanes.  ``around``: what the iterations of some loops begin and end with."""

    work_items: Callable[[WorkItemLoop, Sequence[str]], list[str]] | None
    local_memory: str
    lanes: GroupLanes | None
    around: Around | None = None


@dataclass(frozen=True)
class StatementLines:
    """A kernel's statements as text: its array parameters as pointers and their types, those that
    it makes of addresses, the arrays it declares for a work-item and around the loop over them,
    what it does, values; and what these lines need around them."""

    array_parameters: dict[Slot, str]
    pointer_types: dict[Slot, str]
    pointers: list[str]
    arrays: list[str]
    kept: list[str]
    bodies: list[list[str]]
    values: list[str]
    slots: tuple[Slot, ...]
    types: frozenset[ScalarType]
    typedefs: tuple[str, ...]
    functions: frozenset[str]
    names: Names
    memory: Memory


def statement_lines(
    kernel: Kernel,
    bodies: Sequence[Body],
    dialect: Dialect,
    helpers: Helpers,
    values: Sequence[Expr] = (),
    group_loop: GroupLoop | None = None,
    kept: Sequence[ArrayDecl] = (),
    most_unrolled: int | None = None,
) -> StatementLines:
    """``bodies``, each the statements of ``kernel`` or a variant, and ``values`` as text; device
    functions go to ``helpers``.  ``group_loop``: of a stage of work-groups.  ``kept``: those of the
    kernel's arrays that are declared around the loop over work-items.
    ``most_unrolled``: iterations of each loop over memory; else as many as the kernel's body
    asks for."""
    if most_unrolled is None:
        most_unrolled = unrolled_loops.most_unrolled(kernel, kernel.body)
    if kernel.small_sizes:
        kernel, bodies, values = narrowed(kernel, bodies, values)
    elif dialect.vectors is None:
        kernel, bodies = narrowed_values(kernel, bodies)
    names = Names(dialect.unit.is_reserved)
    for param in kernel.params:
        names.of(param.name)
    memory = Memory(kernel, names)
    intervals = Intervals(kernel)
    given = given_variables(bodies) if kernel.small_sizes else None
    expressions = ExpressionPrinter(
        dialect, names, memory, helpers, intervals, given, has_barrier(kernel.body),
        uniform_variables(s for body in bodies for s in body),
        places_of_sums(s for body in bodies for s in body),
        read_unassigned(bodies) if dialect.unit.eager_conditions else frozenset(),
    )  # fmt: skip
    groups = GroupStatementPrinter(
        dialect, expressions, names, helpers, memory, kernel,
        None if group_loop is None else group_loop.lanes,
    )  # fmt: skip
    streaming = StreamingText(kernel, dialect, expressions, memory)
    printer = StatementPrinter(
        expressions,
        names,
        helpers,
        intervals,
        groups,
        streaming,
        dict(kernel.variables),
        frozenset(p.name for p in kernel.params if isinstance(p, ArrayParam)),
        frozenset(a.name for a in kernel.arrays if a.space == "local"),
        most_unrolled,
        None if group_loop is None else group_loop.work_items,
        None if group_loop is None else group_loop.around,
    )
    lines = [printer.body(body, frozenset(), indent=0) for body in bodies]
    texts = [expressions.value(value) for value in values]
    streams = streaming.condition()
    slots = memory.slots()
    types = expressions.types | {
        slot_type(kernel, slot) for slot in slots if not isinstance(slot, Pointer)
    }
    aliased = _aliased_types(kernel, dialect.scalars)
    pool = None if group_loop is None else group_loop.local_memory
    inside = replace(kernel, arrays=tuple(a for a in kernel.arrays if a not in kept))
    around = replace(kernel, arrays=tuple(kept))
    typedefs = dict.fromkeys(
        (
            *aliased,
            *_shared_types(kernel, dialect.scalars, pool),
            *_unaligned_types(kernel, dialect.scalars),
            *streaming.typedefs(),
        )
    )
    pointers = _pointers(kernel, slots, names, dialect.scalars, bool(aliased))
    zero = dialect.scalars.unknown_zero if expressions.hides else None
    return StatementLines(
        {slot: declaration for slot, (_, declaration) in pointers.items()},
        {slot: type for slot, (type, _) in pointers.items()},
        [
            *([] if zero is None else [zero]),
            *streams,
            *(
                f"{declaration} = ({type}){memory.identifier(slot)};"
                for slot, (type, declaration) in pointers.items()
            ),
        ],
        _array_declarations(inside, names, dialect.scalars, helpers, pool),
        _array_declarations(around, names, dialect.scalars, helpers, None),
        lines,
        texts,
        slots,
        frozenset(types),
        tuple(typedefs),
        frozenset(expressions.device_functions),
        names,
        memory,
    )


def parameter_text(kernel: Kernel, slot: Slot, memory: Memory, dialect: Dialect) -> str:
    """The declaration of an argument."""
    type = dialect.scalars.storage_name(slot_type(kernel, slot))
    return f"{type} {memory.identifier(slot)}"


def _aliased_types(kernel: Kernel, scalars: Scalars) -> tuple[str, ...]:
    """Definitions of types for arrays of different types that may share memory."""
    arrays = [p for p in kernel.params if isinstance(p, ArrayParam) and not p.restrict]
    types = dict(scalars.aliased_type(p.dtype) for p in arrays if p.alignment is None)
    return tuple(types.values()) if len(types) > 1 else ()


def _unaligned_types(kernel: Kernel, scalars: Scalars) -> list[str]:
    """Definitions of types for elements that do not lie at multiples of their size."""
    return [
        scalars.unaligned_type(p.dtype, p.alignment)[1]
        for p in kernel.params
        if isinstance(p, ArrayParam) and p.alignment is not None
    ]


def _shared_types(kernel: Kernel, scalars: Scalars, pool: str | None) -> list[str]:
    """Definitions of types for local arrays of different types that lie in one memory, as all do
    that lie in a ``pool``."""
    return [
        scalars.aliased_type(array.dtype)[1]
        for arrays in local_memories(kernel).values()
        for array in arrays
        if pool is not None or any(other.dtype != array.dtype for other in arrays)
    ]


def _pointers(
    kernel: Kernel, slots: tuple[Slot, ...], names: Names, scalars: Scalars, aliased: bool
) -> dict[Slot, tuple[str, str]]:
    """The type and the declaration of the pointer to each array that is passed."""
    stored = {s.array for s in statements(kernel.body) if isinstance(s, (Store, Atomic))}
    loaded = {e.array for e in expressions(kernel.body) if isinstance(e, Load)}
    arrays: list[ArrayParam | ArrayDecl] = [
        *(p for p in kernel.params if isinstance(p, ArrayParam)),
        *kernel.arrays,
    ]
    selects = any(isinstance(e, Select) for e in expressions(kernel.body))
    mixed = {
        a.name: a.dtype.nbytes
        for a in arrays
        if a.name in stored & loaded and (selects or not keeps_loads(a))
    }
    surely = surely_stored(kernel) if len(mixed) > 1 else stored
    found: dict[Slot, tuple[str, str]] = {}
    for slot in slots:
        if not isinstance(slot, Pointer):
            continue
        param = kernel.param(slot.param)
        assert isinstance(param, ArrayParam)
        element = scalars.storage_name(param.dtype)
        if param.alignment is not None:  # a cast makes it one to elements where they are accessed
            element = scalars.storage_name(ELEMENT_TYPES[f"uint{8 * param.alignment}"])
        elif not param.restrict and aliased:
            element = scalars.aliased_type(param.dtype)[0]
        constant = param.name not in stored
        type = scalars.pointer(element, "global", constant)
        others = {nbytes for name, nbytes in mixed.items() if name != param.name}
        beside = param.name not in surely and param.dtype.nbytes in others
        keyword = scalars.restrict_constant if beside else scalars.restrict
        restrict = f" {keyword}" if param.restrict and keyword else ""
        found[slot] = type, f"{type}{restrict} {names.of(param.name)}"
    return found


def _table(array: ArrayDecl, names: Names, scalars: Scalars, helpers: Helpers) -> str:
    """The declaration of the pointer to a constant array, which is defined among the helpers."""
    elements = [Const(array.dtype, element.item()) for element in array.elements.ravel()]
    table = helpers.table(array, lambda name: scalars.table(name, array.dtype, elements))
    pointer = scalars.pointer(scalars.storage_name(array.dtype), "constant", constant=True)
    return f"{pointer} const {names.of(array.name)} = {table};"


def _array_declarations(
    kernel: Kernel, names: Names, scalars: Scalars, helpers: Helpers, pool: str | None
) -> list[str]:
    """``pool``: the memory of bytes that all local arrays lie in, where there is one."""
    lines = []
    memories = local_memories(kernel)
    if pool is not None:
        places = {name: f"({pool} + {at})" for name, at in local_places(kernel)[0].items()}
    else:
        declaration, places = scalars.local_pool(kernel) or ("", {})
        lines += [declaration] if places else []
    for array in kernel.arrays:
        memory = array.memory or array.name
        if array.space == "constant":
            lines.append(_table(array, names, scalars, helpers))
        elif array.space != "local" or (memory not in places and len(memories[memory]) == 1):
            qualifier = scalars.array_qualifier(array.space)
            element = scalars.storage_name(array.dtype)
            lines.append(f"{qualifier}{element} {names.of(array.name)}[{prod(array.shape)}];")
    for name, arrays in memories.items():
        if name not in places and len(arrays) == 1:
            continue
        one_type = len({a.dtype for a in arrays}) == 1 and pool is None
        if name in places:
            base = places[name]
        else:
            base = names.fresh(f"{name}_memory")
            dtype = arrays[0].dtype if one_type else UINT64  # which aligns for all
            size = max(-(-array.nbytes // dtype.nbytes) for array in arrays)
            qualifier = scalars.array_qualifier("local")
            lines.append(f"{qualifier}{scalars.storage_name(dtype)} {base}[{size}];")
        for array in arrays:
            element = scalars.storage_name(array.dtype)
            if not one_type:
                element = scalars.aliased_type(array.dtype)[0]
            pointer = scalars.pointer(element, "local")
            lines.append(f"{pointer} {names.of(array.name)} = ({pointer}){base};")
    return lines
