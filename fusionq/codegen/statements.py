"""Statements as C text, one a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain

from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.group_statements import GroupStatementPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.loads_ahead import is_rest, is_rest_of_slot, iterations_at_once
from fusionq.codegen.loads_together import rows_loaded
from fusionq.codegen.names import Names
from fusionq.codegen.neighbouring_reductions import side_by_side
from fusionq.codegen.scoping import (
    Body,
    assignments,
    declarations,
    is_declaring_assignment,
)
from fusionq.codegen.streaming_text import StreamingText
from fusionq.codegen.unrolled_loops import is_over_memory
from fusionq.codegen.vector_steps import vector_step
from fusionq.ir.interval_arithmetic import arithmetic, of_type, within
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Const,
    Continue,
    Expr,
    Fence,
    For,
    GroupCall,
    If,
    ItemQuery,
    Load,
    Persistent,
    Prefetch,
    Record,
    Stmt,
    Store,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import INT64, UINT64, ScalarType
from fusionq.ir.walk import assigned_variable, statements, subexpressions

Around = Callable[[str, Names], tuple[list[str], list[str]]]
"""The lines that each iteration of a loop begins and ends with, by the loop's variable."""


class StatementPrinter:
    """Prints statement lists and places the variables' declarations."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        names: Names,
        helpers: Helpers,
        intervals: Intervals,
        groups: GroupStatementPrinter,
        streaming: StreamingText,
        variables: Mapping[str, ScalarType],
        arrays: Set[str],
        local: Set[str],
        most_unrolled: int,
        work_item_loop: Callable[[WorkItemLoop, Sequence[str]], list[str]] | None = None,
        around: Around | None = None,
    ) -> None:
        self._around: Around = around or (lambda variable, names: ([], []))
        self._arrays = arrays
        """In global memory."""
        self._local = local
        """In local memory."""
        self._most_unrolled = most_unrolled
        """Iterations of a loop over memory."""
        self._work_item_loop = work_item_loop
        """The lines of a loop over work-items, of those of its body."""
        self._expressions = expressions
        self._names = names
        self._helpers = helpers
        self._intervals = intervals
        self._groups = groups
        self._streaming = streaming
        self._variables = variables

    def body(self, body: Body, declared: frozenset[str], indent: int) -> list[str]:
        """The lines of a statement list; ``declared`` are the variables in scope."""
        places = declarations(body, [name for name in self._variables if name not in declared])
        declared |= {name for names in places.values() for name in names}
        lines: list[str] = []
        together = side_by_side(body, self._groups.most_together)
        done: set[int] = set()
        for index, stmt in enumerate(body):
            if index in together:
                calls = [body[place] for place in together[index]]
                done.update(together[index])
                for name in chain(*(places.get(place, ()) for place in together[index])):
                    type = self._expressions.type_name(self._variables[name])
                    lines.append(f"{type} {self._names.of(name)};")
                lines += self._groups.reductions([c for c in calls if isinstance(c, GroupCall)])
            if index in done:
                continue
            prefix = ""
            for name in places.get(index, ()):
                type = self._expressions.type_name(self._variables[name])
                if is_declaring_assignment(stmt, name):
                    constant = assignments(body[index:], name) == 1
                    prefix = f"const {type} " if constant else f"{type} "
                else:
                    lines.append(f"{type} {self._names.of(name)};")
            lines += self._statement(stmt, declared, prefix)
        return [f"{'    ' * indent}{line}" if line else line for line in lines]

    def _statement(self, stmt: Stmt, declared: frozenset[str], prefix: str) -> list[str]:
        value = self._expressions.value
        match stmt:
            case Assign():
                line = f"{prefix}{self._names.of(stmt.name)} = {value(stmt.value)};"
                self._intervals.assigned(stmt)
                return [line]
            case Store():
                return self._streaming.store(stmt)
            case If():
                return self._if(stmt, declared)
            case For():
                return self._for(stmt, declared)
            case While():
                return [
                    *self._in_order(stmt.body),
                    f"while ({value(stmt.cond)}) {{",
                    *self.body(stmt.body, declared, 1),
                    "}",
                ]
            case Break():
                return ["break;"]
            case Continue():
                return ["continue;"]
            case Block():
                return [f"// {line}" for line in stmt.label.splitlines()]
            case Barrier() | Fence() | Atomic() | GroupCall():
                return self._groups.print(stmt, prefix)
            case WorkItemLoop():
                assert self._work_item_loop is not None, "no work-group function"
                return self._work_item_loop(stmt, self.body(stmt.body, declared, 0))
            case Persistent():
                raise AssertionError("a persistent kernel has its own printer")
            case Prefetch():
                element = self._expressions.subscript(stmt.array, stmt.indices)
                hint = self._groups.read_ahead(element)
                return [] if hint is None else [f"{hint};"]
            case Record():
                return []

    def _if(self, stmt: If, declared: frozenset[str]) -> list[str]:
        lines = [
            f"if ({self._expressions.value(stmt.cond)}) {{",
            *self.body(stmt.then, declared, 1),
        ]
        match stmt.orelse:
            case ():
                return [*lines, "}"]
            case (If() as other,):
                head, *rest = self._if(other, declared)
                return [*lines, f"}} else {head}", *rest]
        return [*lines, "} else {", *self.body(stmt.orelse, declared, 1), "}"]

    # ---------------------------------------------------------------------- loops
    def _for(self, loop: For, declared: frozenset[str]) -> list[str]:
        loads = [self._expressions.row_load(kept, row) for kept, row in rows_loaded(loop)]
        if loads and None not in loads:
            return [line for line in loads if line is not None]
        var = self._names.of(loop.var)
        step = self._plain_step(loop)
        together = vector_step(loop, self._local)
        text = None if together is None else self._expressions.vector_step(together)
        if together is not None and text is not None:
            head = f"{var} = 0; {var} < {together.count}; {var} += {together.lanes}"
            type = self._expressions.type_name(loop.start.type)
            return [*self._in_order(loop.body), f"for ({type} {head}) {{", f"    {text}", "}"]
        if step is None:
            lines, body = self._counted_loop(loop, var)
        else:
            lines, stop = self._evaluated_once(loop.stop, loop, f"{var}_stop")
            start = self._expressions.value(loop.start)
            type = self._expressions.type_name(loop.start.type)
            order = "<" if step > 0 else ">"
            advance = {1: f"{var}++", -1: f"{var}--"}.get(
                step, f"{var} {'+' if step > 0 else '-'}= {abs(step)}"
            )
            lines += self._before_for(loop)
            lines.append(f"for ({type} {var} = {start}; {var} {order} {stop}; {advance}) {{")
            body = []
        self._intervals.entered(loop)
        around = self._around(loop.var, self._names)
        begin, end = ([f"    {line}" for line in part] for part in around)
        return [*lines, *body, *begin, *self.body(loop.body, declared, 1), *end, "}"]

    def _in_order(self, body: Body) -> list[str]:
        """What a loop needs before it to keep the order of floating sums, if it may have some."""
        return self._expressions.loop_in_order() if any(map(_sets_float, statements(body))) else []

    def _before_for(self, loop: For) -> list[str]:
        turns = 1 if is_rest_of_slot(loop) else iterations_at_once(loop)
        streams = turns is not None or self._streams(loop)
        streaming = self._expressions.streaming_loop(turns, self._most_unrolled) if streams else []
        return [*self._in_order(loop.body), *streaming]

    def _streams(self, loop: For) -> bool:
        """Whether a loop is over memory, and not one of few iterations: in steps of a work-group's
        size that is no constant, or what loads ahead have left."""
        few = isinstance(loop.step, ItemQuery | Var) or is_rest(loop)
        return not few and is_over_memory(loop, self._arrays)

    def _plain_step(self, loop: For) -> int | None:
        """The step, if it is a constant and the counter cannot run over int64's end."""
        if not isinstance(loop.step, Const) or loop.step.value == 0:
            return None
        step = int(loop.step.value)
        last = self._intervals.of(loop.stop)
        beyond = arithmetic("add", last, (step, step))
        unit = abs(step) == 1
        safe = unit or (beyond is not None and within(beyond, of_type(loop.stop.type)))
        return step if safe else None

    def _evaluated_once(self, expr: Expr, loop: For, name: str) -> tuple[list[str], str]:
        """``expr`` as text that has one value throughout the loop, and the lines it takes."""
        assigned = {assigned_variable(s) for s in statements(loop.body)}
        varies = any(
            isinstance(e, Load) or (isinstance(e, Var) and e.name in assigned)
            for e in subexpressions(expr)
        )
        if not varies:
            return [], self._expressions.compared(expr)
        identifier = self._names.fresh(name)
        type = self._expressions.type_name(expr.type)
        return [f"const {type} {identifier} = {self._expressions.value(expr)};"], identifier

    def _counted_loop(self, loop: For, var: str) -> tuple[list[str], list[str]]:
        """The loop over a count of iterations: any step, and no counter that overflows."""
        signed = self._expressions.type_name(INT64)
        unsigned = self._expressions.type_name(UINT64)
        start, step, count, turn = (
            self._names.fresh(f"{var}_{what}") for what in ("start", "step", "count", "turn")
        )
        value = self._expressions.value
        length = f"{self._helpers.range_length()}({start}, {value(loop.stop)}, {step})"
        before = [
            f"const {signed} {start} = {value(loop.start)};",
            f"const {signed} {step} = {value(loop.step)};",
            f"const {unsigned} {count} = {length};",
            *self._before_for(loop),
            f"for ({unsigned} {turn} = 0; {turn} < {count}; {turn}++) {{",
        ]
        inside = f"    const {signed} {var} = ({signed})({start} + {turn} * ({unsigned}){step});"
        return before, [inside]


def _sets_float(stmt: Stmt) -> bool:
    return isinstance(stmt, Assign | Store) and stmt.value.type.is_float
