"""A persistent kernel's waits as source text: which tiles an instruction's tile waits for.

A worker's first lane waits alone, in a function of its own, which the other lanes do not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from fusionq.base.target import Target
from fusionq.codegen import queue_layout as q
from fusionq.codegen.array_access import Memory
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.joint_waits import joint_wait_function
from fusionq.codegen.names import Names
from fusionq.codegen.queue_protocol import STALLED, wait_function
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.stage_tables import Bounds, value_name, wait_forms
from fusionq.codegen.tile_items import TileItems
from fusionq.ir.nodes import Kernel, Param, Persistent, ScalarParam
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import subexpressions


class WaitText:
    """The waits of the persistent kernel with ``body``, whose stages have at most ``dims``
    dimensions; what they need is added to ``helpers`` and ``types``."""

    def __init__(
        self,
        body: Persistent,
        dims: int,
        dialect: Dialect,
        target: Target,
        helpers: Helpers,
        types: set[ScalarType],
    ) -> None:
        self._body = body
        self._target = target
        self._dims = dims
        self._dialect = dialect
        self._words = QueueWords.of(dialect)
        self._helpers = helpers
        self._types = types
        self._waits = [wait for code in body.codes for wait in code.waits]
        self._boxed_dims = max((len(w.bounds) for w in self._waits if w.bounds), default=1)
        """The most dimensions of a box that is waited for."""

    def functions(self) -> list[str]:
        """The functions: ``fq_wait_all`` for what an instruction waits for, and what that calls;
        none where no stage waits."""
        if not self._waits:
            return []
        c, i64 = self._words, self._words.int64
        forms = wait_forms(self._body)
        tile = ", ".join(f"{i64} fq_first_{d}, {i64} fq_last_{d}" for d in range(self._dims))
        entry = f"(fq_record[{q.WAITS}] >> {q.WAITED_SHIFT}) + {q.VALUES + forms.values} * fq_turn"
        if c.workers.pollers > 1:
            boxes = bool(forms.forms)
            return [
                joint_wait_function(
                    c, self._target, self._dims, self._boxed_dims, entry, self._box(), boxes
                )
            ]
        ends = ", ".join(f"fq_low_{d}, fq_high_{d}" for d in range(self._boxed_dims))
        lines = [
            "// Waits for all that an instruction depends on.",
            f"{c.workers.outlined_function} int fq_wait_all(",
            f"    {c.tables} fq_stages, {c.control} fq_control, {c.uint32} epoch,",
            f"    {i64} spin_limit, {i64} instruction, {c.tables} fq_record, {tile}",
            ") {",
            "    int state = 0;",
            f"    for (int fq_turn = 0; fq_turn < (int)fq_record[{q.WAITS}] && state < {STALLED};",
            "            fq_turn++) {",
            f"        {c.tables} const fq_awaited = fq_stages + {entry};",
            *(f"        {line}" for line in self._box()),
            "        state |= fq_wait_tiles(",
            "            fq_stages, fq_control, epoch, spin_limit, instruction,",
            f"            (int)fq_awaited[{q.AWAITED}], fq_boxed, {ends});",
            "    }",
            "    return state;",
            "}",
            "",
        ]
        return [wait_function(c, self._target, self._boxed_dims), "\n".join(lines)]

    def _box(self) -> list[str]:
        """Statements that declare whether the wait ``fq_awaited`` is for a box, and its ends."""
        forms = wait_forms(self._body)
        boxed = all(wait.bounds is not None for wait in self._waits)
        box = [f"fq_low_{d} = 0, fq_high_{d} = 0" for d in range(self._boxed_dims)]
        lines = [
            f"{self._words.int64} {', '.join(box)};",
            f"bool fq_boxed = {'true' if forms.forms else 'false'};",
        ]
        if not forms.forms:
            return lines
        lines.append(f"switch ((int)(fq_awaited[{q.AWAITED}] >> {q.FORM_SHIFT})) {{")
        for number, form in enumerate(forms.forms):
            lines.append(f"case {number}: {{")
            lines += [f"    {line}" for line in (*self._bounds(form), "break;")]
            lines.append("}")
        lines += [] if boxed else ["default: fq_boxed = false;"]
        return [*lines, "}"]

    def call(self, epoch: str, spin_limit: str) -> list[str]:
        """The first lane's call, or that of all pollers, before an instruction's work."""
        if not self._waits:
            return []
        workers = self._words.workers
        lane = ", fq_lane" if workers.pollers > 1 else ""
        tables = "fq_stages" if workers.rings is None else "fq_schedule"
        tile = ", ".join(f"fq_first_{d}, fq_last_{d}" for d in range(self._dims))
        return [
            "fq_waited = fq_wait_all(",
            f"    {tables}, fq_control, {epoch}, {spin_limit},",
            f"    fq_instruction, fq_record, {tile}{lane});",
        ]

    def listed(self, epoch: str, spin_limit: str) -> list[str]:
        """The call of all pollers where the waits are listed: ``fq_count`` of them, that of a lane
        in the word ``fq_listed_wait``.  None where there is one poller."""
        c = self._words
        if not self._waits or c.workers.pollers != q.LISTED_WORDS:
            return []
        return [
            "fq_waited = fq_wait_lines(",
            f"    fq_control, fq_listed_wait >> {q.LINE_SHIFT},"
            f" ({c.uint32})fq_listed_wait * {epoch}, {spin_limit},",
            "    fq_instruction, fq_count, fq_lane);",
        ]

    def _bounds(self, form: Bounds) -> Sequence[str]:
        """Statements that set the box of a wait."""
        used = {e.name for x in chain(*form) for e in subexpressions(x) if isinstance(e, Param)}
        values = [value_name(k) for k in range(len(used))]
        kernel = Kernel("wait", self._dims, tuple(ScalarParam(v, INT64) for v in values), (), ())
        names = Names(self._dialect.unit.is_reserved)
        memory = Memory(kernel, names)
        dialect = replace(self._dialect, items=TileItems(self._dialect.items, self._dims))
        printer = ExpressionPrinter(dialect, names, memory, self._helpers, Intervals(kernel))
        ends = [(printer.value(a), printer.value(b)) for a, b in form]
        self._types |= printer.types
        return [
            *(
                f"const {self._words.int64} {memory.scalar(name)} = fq_awaited[{q.VALUES + k}];"
                for k, name in enumerate(values)
            ),
            *(f"fq_low_{d} = {a}; fq_high_{d} = {b};" for d, (a, b) in enumerate(ends)),
        ]
