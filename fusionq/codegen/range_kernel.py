"""Kernels over a range as source text: each work-item runs the statements once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from fusionq.base.target import FloatMode
from fusionq.codegen.device_source import DeviceSource
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.early_loads import with_early_loads
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.id_variables import with_id_variables
from fusionq.codegen.kernel_body import StatementLines, parameter_text, statement_lines
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.names import Names
from fusionq.codegen.neighbours import with_neighbours
from fusionq.codegen.row_vectors import alignment
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import ArrayParam, Kernel


def generate_range_kernel(kernel: Kernel, fp: FloatMode, dialect: Dialect) -> DeviceSource:
    """The source of ``kernel``, which is not persistent."""
    helpers = Helpers(dialect)
    body = dialect.unit.prepared(flatten_blocks(kernel.body))
    if dialect.unit.asks_for_ids_once:
        kernel = with_id_variables(kernel, body)
        body = kernel.body
    early = with_early_loads(kernel, body) if dialect.unit.loads_early else None
    keeps, bodies, once = early is not None, [body], frozenset[str]()
    if early is not None:
        kernel, bodies, once = early.kernel, [early.body, early.early], early.once
    elif dialect.unit.loads_together:
        together = with_loads_together(kernel, body)
        if together is not None:
            keeps, kernel, bodies = True, together, [together.body]
    lines = statement_lines(kernel, bodies, dialect, helpers)
    entry_point = Names(dialect.unit.is_reserved).fresh(kernel.name)
    source = DeviceSource("", entry_point, lines.slots, lines.types, keeps_loads=keeps)
    functions = _function(kernel, entry_point, lines, dialect, helpers, once=once)
    vectors = dialect.vectors
    wide = None if vectors is None or keeps else with_neighbours(kernel, body, vectors.nbytes)
    if wide is not None and vectors is not None:
        of_vectors = replace(dialect, scalars=vectors.scalars)
        again = statement_lines(wide.kernel, [wide.kernel.body], of_vectors, helpers)
        if (again.slots, again.typedefs) == (lines.slots, lines.typedefs):
            source = replace(source, neighbours=wide.items, types=lines.types | again.types)
            assumed = vectors.assumed(*alignment(kernel, wide.items, wide.arrays, again))
            name = source.wide_entry_point
            functions += ["", *_function(kernel, name, again, of_vectors, helpers, assumed)]
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
    dialect: Dialect,
    helpers: Helpers,
    assumed: Sequence[str] = (),
    once: Collection[str] = (),
) -> list[str]:
    """A kernel's definition; ``once``: the arrays of which it loads elements once."""
    arrays = dict(lines.array_parameters) if dialect.scalars.array_parameters else {}
    for slot in arrays:
        param = kernel.param(slot.param)
        if slot.param in once and isinstance(param, ArrayParam) and param.alignment is None:
            type = dialect.scalars.read_only(dialect.scalars.storage_name(param.dtype), once=True)
            if type is not None:
                helpers.add(type[0].partition("<")[0], type[1])
                arrays[slot] = f"const {type[0]} {lines.names.of(slot.param)}"
    parameters = [
        f"    {arrays.get(slot) or parameter_text(kernel, slot, lines.memory, dialect)}"
        for slot in lines.slots
    ]
    size = kernel.sub_group_size
    sub_groups = "" if size is None else dialect.unit.sub_groups_of(size)
    head = f"{sub_groups}{dialect.unit.kernel_qualifier} {name}("
    first = dialect.unit.first_lines(helpers.add)
    declared = [*([] if arrays else lines.pointers), *assumed, *lines.arrays]
    body, *early = lines.bodies
    if early:
        before = [dialect.unit.loads_early, "{", *(f"    {line}" for line in early[0]), "}"]
        first = [*before, *first]
    inside = [*declared, *([""] if declared else []), *first, *body]
    return [
        *([head, ",\n".join(parameters), ") {"] if parameters else [f"{head}) {{"]),
        *(f"    {line}" if line else line for line in inside),
        "}",
    ]
