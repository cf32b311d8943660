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
from fusionq.codegen.names import Names
from fusionq.codegen.queue_protocol import STALLED, WAITED, wait_function
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.stage_tables import Bounds, value_name, wait_forms
from fusionq.codegen.tile_loop import TileItems
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
        """The functions: ``fq_wait_tiles`` for one producer, and ``fq_wait_all`` for what an
        instruction waits for; none where no stage waits."""
        if not self._waits:
            return []
        c, i64 = self._words, self._words.int64
        forms = wait_forms(self._body)
        boxed = all(wait.bounds is not None for wait in self._waits)
        box = [f"fq_low_{d} = 0, fq_high_{d} = 0" for d in range(self._boxed_dims)]
        tile = ", ".join(f"{i64} fq_first_{d}, {i64} fq_last_{d}" for d in range(self._dims))
        entry = f"fq_record[{q.WAITED}] + {q.VALUES + forms.values} * fq_turn"
        lines = [
            "// Waits for all that an instruction depends on.",
            f"{c.workers.outlined_function} int fq_wait_all(",
            f"    {c.tables} fq_stages, {c.control} fq_control, {c.uint32} epoch,",
            f"    {i64} spin_limit, {i64} instruction, {c.tables} fq_record, {tile}",
            "    , int lane) {" if c.workers.pollers > 1 else ") {",
            "    int state = 0;",
            *self._together(entry),
            f"    for (int fq_turn = 0; fq_turn < (int)fq_record[{q.WAITS}] && state < {STALLED};",
            "            fq_turn++) {",
            f"        {c.tables} const fq_awaited = fq_stages + {entry};",
            *(
                [f"        if (fq_reached && fq_awaited[{q.FORM}] < 0) continue;"]
                if self._looks_together
                else []
            ),
            f"        {i64} {', '.join(box)};",
            f"        bool fq_boxed = {'true' if forms.forms else 'false'};",
            *([f"        switch ((int)fq_awaited[{q.FORM}]) {{"] if forms.forms else []),
        ]
        for number, form in enumerate(forms.forms):
            lines.append(f"        case {number}: {{")
            lines += [f"            {line}" for line in (*self._bounds(form), "break;")]
            lines.append("        }")
        if forms.forms:
            lines += [] if boxed else ["        default: fq_boxed = false;"]
            lines.append("        }")
        ends = ", ".join(f"fq_low_{d}, fq_high_{d}" for d in range(self._boxed_dims))
        lane = ", lane" if c.workers.pollers > 1 else ""
        lines += [
            "        state |= fq_wait_tiles(",
            "            fq_stages, fq_control, epoch, spin_limit, instruction,",
            f"            fq_awaited[{q.PRODUCER}], fq_boxed, {ends}{lane});",
            "    }",
            "    return state;",
            "}",
            "",
        ]
        return [wait_function(c, self._target, self._boxed_dims), "\n".join(lines)]

    @property
    def _looks_together(self) -> bool:
        """Whether lanes look at as many stages at once."""
        return self._words.workers.pollers > 1 and any(w.bounds is None for w in self._waits)

    def _together(self, entry: str) -> list[str]:
        """Statements that set ``fq_reached``: whether all stages are done that are waited for as a
        whole.  Each lane looks at the counters of some until they are reached."""
        if not self._looks_together:
            return []
        c = self._words
        w, looked = c.workers, entry.replace("fq_turn", "fq_own")
        tiles = " * ".join(f"fq_source[{q.COUNT + d}]" for d in range(q.DIMS))
        return [
            "    // Most waits are over soon: lanes look at as many stages at once.",
            f"    int fq_own = lane, fq_waits = (int)fq_record[{q.WAITS}];",
            "    bool fq_reached = false;",
            f"    for (int polls = 0; polls < {self._target.polls_between_checks}; polls++) {{",
            f"        for (; fq_own < fq_waits; fq_own += {w.pollers}) {{",
            f"            {c.tables} const fq_looked = fq_stages + {looked};",
            f"            if (fq_looked[{q.FORM}] >= 0) continue;",
            f"            {c.tables} const fq_source = fq_stages + {q.HEADER}",
            f"                + {q.RECORD} * fq_looked[{q.PRODUCER}];",
            f"            if ((int)(fq_read(fq_word(fq_control, fq_source[{q.TOTAL}], 0))",
            f"                    - ({c.uint32})({tiles}) * epoch) < 0)",
            "                break;",
            "        }",
            f"        fq_reached = {w.all_pollers('fq_own >= fq_waits')};",
            "        if (fq_reached) break;",
            f"        state = {WAITED};",
            f"        {w.pause}",
            "    }",
        ]

    def call(self, epoch: str, spin_limit: str) -> list[str]:
        """The first lane's call, or that of all pollers, before an instruction's work."""
        if not self._waits:
            return []
        lane = ", fq_lane" if self._words.workers.pollers > 1 else ""
        tile = ", ".join(f"fq_first_{d}, fq_last_{d}" for d in range(self._dims))
        return [
            "fq_waited = fq_wait_all(",
            f"    fq_stages, fq_control, {epoch}, {spin_limit},",
            f"    fq_instruction, fq_record, {tile}{lane});",
        ]

    def _bounds(self, form: Bounds) -> Sequence[str]:
        """Statements that set the box of a wait."""
        used = {e.name for x in chain(*form) for e in subexpressions(x) if isinstance(e, Param)}
        values = [value_name(k) for k in range(len(used))]
        kernel = Kernel("wait", self._dims, tuple(ScalarParam(v, INT64) for v in values), (), ())
        names = Names(self._dialect.unit.is_reserved)
        memory = Memory(kernel, names)
        dialect = replace(self._dialect, items=TileItems(self._dialect.items, None, self._dims))
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
