"""Kernels over a range as source text: each work-item runs the statements once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from fusionq.base.target import FloatMode
from fusionq.codegen.along_rows import along_rows
from fusionq.codegen.carried_values import with_carried_values
from fusionq.codegen.clamped_loops import with_clamped_loops
from fusionq.codegen.device_source import DeviceSource
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.early_loads import with_early_loads
from fusionq.codegen.falling_indices import with_falling_indices
from fusionq.codegen.group_parts import ItemsOfParts, branches, first_group
from fusionq.codegen.halved_loads import with_halved_loads
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.id_variables import with_id_variables
from fusionq.codegen.kept_rows import with_kept_rows
from fusionq.codegen.kernel_body import StatementLines, parameter_text, statement_lines
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.names import Names
from fusionq.codegen.neighbours import with_neighbours
from fusionq.codegen.packed_arguments import head_of, is_packed
from fusionq.codegen.padded_rows import with_padded_rows
from fusionq.codegen.peeled_loops import with_peeled_loops
from fusionq.codegen.row_vectors import alignment
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.codegen.stores_behind_loads import with_stores_behind_loads
from fusionq.codegen.triangular_loops import with_triangular_loops
from fusionq.codegen.unrolled_loops import most_unrolled
from fusionq.ir.nodes import ArrayParam, Expr, For, Kernel, Load, Var
from fusionq.ir.side_by_side import SideBySide, side_by_side
from fusionq.ir.types import INT64
from fusionq.ir.walk import loaded_arrays, renamed_statement, rewrite_body, statements


def generate_range_kernel(kernel: Kernel, fp: FloatMode, dialect: Dialect) -> DeviceSource:
    """The source of ``kernel``, which is not persistent."""
    parts = side_by_side(kernel.body)
    if parts is not None:
        return _side_by_side(kernel, parts, fp, dialect)
    helpers = Helpers(dialect)
    code = _code(kernel, kernel.body, dialect)
    most = code.most_unrolled
    lines = statement_lines(code.kernel, code.bodies, dialect, helpers, most_unrolled=most)
    entry_point = Names(dialect.unit.is_reserved).fresh(kernel.name)
    packed = is_packed(len(lines.slots), kernel, dialect)
    source = DeviceSource(
        "", entry_point, lines.slots, lines.types, keeps_loads=code.keeps_loads, is_packed=packed
    )
    inside = _in_turn(lines.bodies[0], lines.bodies[1:], dialect, helpers)
    functions = _function(
        code.kernel, entry_point, lines, inside, dialect, helpers, code.once,
        scalar=code.scalar, packed=packed,
    )  # fmt: skip
    vectors = dialect.vectors
    wide = None
    if vectors is not None and not code.keeps_loads:
        wide = with_neighbours(code.kernel, code.bodies[0], vectors.nbytes)
    if wide is not None and vectors is not None:
        of_vectors = replace(dialect, scalars=vectors.scalars)
        bodies = [wide.kernel.body]
        again = statement_lines(wide.kernel, bodies, of_vectors, helpers, most_unrolled=most)
        if (again.slots, again.typedefs) == (lines.slots, lines.typedefs):
            source = replace(source, neighbours=wide.items, types=lines.types | again.types)
            assumed = vectors.assumed(*alignment(kernel, wide.items, wide.arrays, again))
            name = source.wide_entry_point
            inside = _in_turn(again.bodies[0], [], of_vectors, helpers)
            functions += [
                "",
                *_function(
                    code.kernel, name, again, inside, of_vectors, helpers,
                    assumed=assumed, packed=packed,
                ),
            ]
    return _unit(source, lines, functions, fp, dialect, helpers)


@dataclass(frozen=True)
class _Code:
    """What a ``kernel`` does as the device does it: ``bodies``, its body and perhaps what comes
    before the launch before has ended; ``once``: arrays of which it loads elements once;
    ``most_unrolled``: iterations of each of its loops over memory, at most; ``scalar``: whether no
    vectors are made of work-items."""

    kernel: Kernel
    bodies: list[Body]
    keeps_loads: bool
    once: frozenset[str]
    most_unrolled: int
    scalar: bool = False


def _code(kernel: Kernel, body: Body, dialect: Dialect) -> _Code:
    if kernel.row_lanes is not None:
        kernel = along_rows(kernel)
        body = kernel.body
    if kernel.padded_row is not None:
        kernel = with_padded_rows(kernel)
        body = kernel.body
    body = flatten_blocks(body)
    scalar = bool(dialect.unit.scalar_items) and (
        kernel.one_by_one or is_for_scalars(kernel, body)
    )
    if dialect.vectors is None:
        kernel = with_clamped_loops(kernel, body)
        body = kernel.body
    body = dialect.unit.prepared(body)
    if dialect.vectors is None:
        if not scalar:
            kernel = with_stores_behind_loads(kernel, body)
            body = kernel.body
            kernel = with_triangular_loops(kernel, body)
            body = kernel.body
        kernel = with_peeled_loops(kernel, body)
        body = kernel.body
        kernel = with_falling_indices(kernel, body)
        body = kernel.body
        if not scalar:
            kernel = with_halved_loads(kernel, body)
            body = kernel.body
    if dialect.unit.asks_for_ids_once:
        kernel = with_id_variables(kernel, body)
        body = kernel.body
    most = most_unrolled(kernel, body)
    if dialect.unit.loads_together and kernel.few_items:
        carried = with_carried_values(kernel, body)
        if carried is not None:
            kernel, body = carried, carried.body
    if dialect.unit.loads_together:
        kept = with_kept_rows(kernel, body, bool(dialect.unit.loads_early))
        if kept is not None:
            together = with_loads_together(kept.kernel, kept.body, most)
            kernel, body = kept.kernel, kept.body
            if together is not None:
                body = together.body
                kernel = replace(together, body=(*kept.early, *body))
            bodies = [body, kept.early] if kept.early else [body]
            return _Code(kernel, bodies, True, kept.once, most)
    early = with_early_loads(kernel, body) if dialect.unit.loads_early else None
    if early is not None:
        return _Code(early.kernel, [early.body, early.early], True, early.once, most)
    if dialect.unit.loads_together:
        together = with_loads_together(kernel, body, most)
        if together is not None:
            return _Code(together, [together.body], True, frozenset(), most)
    return _Code(kernel, [body], False, frozenset(), most, scalar)


def _side_by_side(
    kernel: Kernel, parts: SideBySide, fp: FloatMode, dialect: Dialect
) -> DeviceSource:
    """The source of a ``kernel`` that is several, of which each work-group runs one."""
    helpers = Helpers(dialect)
    codes = [
        _renamed(_code(replace(kernel, body=body), body, dialect), kernel, f"_of_{number}")
        for number, body in enumerate(parts.bodies)
    ]
    bodies = [body for code in codes for body in code.bodies]
    whole = replace(
        kernel,
        variables=tuple(dict.fromkeys(v for code in codes for v in code.kernel.variables)),
        arrays=tuple(dict.fromkeys(a for code in codes for a in code.kernel.arrays)),
        body=(*parts.before, *(stmt for body in bodies for stmt in body)),
    )
    own = replace(dialect, items=ItemsOfParts(dialect.items))
    most = min(code.most_unrolled for code in codes)
    lines = statement_lines(whole, [parts.before, *bodies], own, helpers, most_unrolled=most)
    before, *texts = lines.bodies
    inside = []
    for code in codes:
        count = len(code.bodies)
        inside.append(_in_turn(texts[0], texts[1:count], dialect, helpers))
        texts = texts[count:]
    names = [lines.names.of(variable.name) for variable in parts.first]
    group = dialect.items.query("group_id", 0, kernel.ndim)
    first = first_group(names, group, dialect.scalars.storage_name(INT64))
    loaded = [loaded_arrays(chain.from_iterable(code.bodies)) for code in codes]
    again = (arrays - code.once for code, arrays in zip(codes, loaded, strict=True))
    once = frozenset().union(*(code.once for code in codes)).difference(*again)
    entry_point = Names(dialect.unit.is_reserved).fresh(kernel.name)
    keeps = any(code.keeps_loads for code in codes)
    packed = is_packed(len(lines.slots), kernel, dialect)
    source = DeviceSource(
        "", entry_point, lines.slots, lines.types, keeps_loads=keeps, is_packed=packed
    )
    chosen = [*before, first, *branches(names, group, inside)]
    scalar = all(code.scalar for code in codes)
    functions = _function(
        whole, entry_point, lines, chosen, dialect, helpers, once, scalar=scalar, packed=packed
    )
    return _unit(source, lines, functions, fp, dialect, helpers)


def _renamed(code: _Code, kernel: Kernel, suffix: str) -> _Code:
    """``code`` in which what ``kernel`` has not ends in ``suffix``."""
    variables, arrays = dict(kernel.variables), {a.name for a in kernel.arrays}
    loops = {s.var for s in statements(kernel.body) if isinstance(s, For)}
    found = chain.from_iterable(code.bodies)
    names = {s.var: s.var for s in statements(found) if isinstance(s, For)}
    names |= {name: name for name, _ in code.kernel.variables}
    of_arrays = {a.name: a.name for a in code.kernel.arrays}
    of_arrays |= {p.name: p.name for p in kernel.params}
    names |= {n: n + suffix for n in names if n not in variables and n not in loops}
    own = {a.name: a.name + suffix for a in code.kernel.arrays if a.name not in arrays}
    of_arrays |= own

    def expr(e: Expr) -> Expr:
        match e:
            case Var():
                return replace(e, name=names[e.name])
            case Load():
                return replace(e, array=of_arrays[e.array])
        return e

    renamed = replace(
        code.kernel,
        variables=tuple((names[name], type) for name, type in code.kernel.variables),
        arrays=tuple(replace(a, name=of_arrays[a.name]) for a in code.kernel.arrays),
    )
    bodies = [
        rewrite_body(body, expr, lambda s: (renamed_statement(s, names, of_arrays),))
        for body in code.bodies
    ]
    return replace(code, kernel=renamed, bodies=bodies)


def _in_turn(
    body: Sequence[str], early: Sequence[Sequence[str]], dialect: Dialect, helpers: Helpers
) -> list[str]:
    """``body``, behind the wait for the launch before; ahead of that what is ``early``."""
    first = dialect.unit.first_lines(helpers.add)
    if not early:
        return [*first, *body]
    ahead = (f"    {line}" for line in early[0])
    return [dialect.unit.loads_early, "{", *ahead, "}", *first, *body]


def _unit(
    source: DeviceSource,
    lines: StatementLines,
    functions: Sequence[str],
    fp: FloatMode,
    dialect: Dialect,
    helpers: Helpers,
) -> DeviceSource:
    """``source`` with its text."""
    text = [
        *dialect.unit.prologue(source.types, fp, lines.functions),
        "",
        *(f"{line}\n" for line in lines.typedefs),
        *(line for helper in helpers.texts for line in (*helper.splitlines(), "")),
        *functions,
    ]
    return replace(source, text="\n".join(text) + "\n")


def _function(
    kernel: Kernel,
    name: str,
    lines: StatementLines,
    body: Sequence[str],
    dialect: Dialect,
    helpers: Helpers,
    once: Collection[str] = (),
    assumed: Sequence[str] = (),
    scalar: bool = False,
    packed: bool = False,
) -> list[str]:
    """A kernel's definition, with the lines ``body``; ``once``: the arrays of which it loads
    elements once; ``scalar``: without vectors of work-items; ``packed``: its arguments are one
    structure."""
    arrays = dict(lines.array_parameters) if dialect.scalars.array_parameters else {}
    for slot in arrays:
        param = kernel.param(slot.param)
        if slot.param in once and isinstance(param, ArrayParam) and param.alignment is None:
            type = dialect.scalars.read_only(dialect.scalars.storage_name(param.dtype), once=True)
            if type is not None:
                helpers.add(type[0].partition("<")[0], type[1])
                arrays[slot] = f"const {type[0]} {lines.names.of(slot.param)}"
    given = head_of(
        [arrays.get(s) or parameter_text(kernel, s, lines.memory, dialect) for s in lines.slots],
        packed,
    )
    parameters = [f"    {text}" for text in given.parameters]
    size = kernel.sub_group_size
    sub_groups = "" if size is None else dialect.unit.sub_groups_of(size)
    if scalar:
        sub_groups = dialect.unit.scalar_items
    head = f"{sub_groups}{dialect.unit.kernel_qualifier} {name}("
    declared = [*given.first, *([] if arrays else lines.pointers), *assumed, *lines.arrays]
    inside = [*declared, *([""] if declared else []), *body]
    return [
        *given.definition,
        *([head, ",\n".join(parameters), ") {"] if parameters else [f"{head}) {{"]),
        *(f"    {line}" if line else line for line in inside),
        "}",
    ]
