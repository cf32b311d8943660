"""How long the device's compiler takes for a kernel: a model of what it works on.

The seconds are a sum over what the kernel's text has, each with what one of them costs
(``base.costs.BuildCosts``).  A persistent kernel has its protocol once, and of its stages the text
of each body, twice where the inside of a tile has code of its own, and once more where ids are
divided; each closed form of a wait; and
the arguments that stages with one body find in a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import comb

from fusionq.base.costs import BuildCosts
from fusionq.base.frozen import dataclass
from fusionq.codegen.interchange import interchanged, order_of
from fusionq.codegen.interior import parted, whole_rows
from fusionq.codegen.private_reductions import private_reductions, with_reductions
from fusionq.codegen.row_segments import row_segments
from fusionq.codegen.scoping import Body
from fusionq.codegen.stage_tables import code_bodies, operands_of, wait_forms
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Expr,
    For,
    If,
    Kernel,
    StageCode,
    Stmt,
    While,
    WorkItemLoop,
)
from fusionq.ir.walk import (
    persistent_of,
    statement_expressions,
    statements,
    subexpressions,
    takes_work_groups,
)
from fusionq.planning.unrolled_work import UnrolledWork, unrolled_work


@dataclass(frozen=True, slots=True)
class BuildWork:
    """How much a kernel's text has of what its build takes time for; see ``BuildCosts``."""

    operations: int
    divisions: int
    loops: int
    conditions: int
    array_pairs: int
    regions: int
    workers: int = 0
    bodies: int = 0
    waits: int = 0
    operands: int = 0
    unrolled: int = 0
    functions: int = 0
    quotients: int = 0

    def seconds(self, costs: BuildCosts) -> float:
        """The processor seconds that the compiler is predicted to take."""
        return (
            costs.build_program
            + self.operations * costs.build_operation
            + self.divisions * costs.build_division
            + self.loops * costs.build_loop
            + self.conditions * costs.build_condition
            + self.array_pairs * costs.build_array_pair
            + self.regions * costs.build_region
            + self.workers * costs.build_workers
            + self.bodies * costs.build_body
            + self.waits * costs.build_wait
            + self.operands * costs.build_operand
            + self.unrolled * costs.build_unrolled
            + self.functions * costs.build_function
            + self.quotients * costs.build_quotient
        )


def build_work(kernel: Kernel) -> BuildWork:
    """What the compiler has to do for ``kernel``."""
    body = persistent_of(kernel)
    pairs = comb(sum(isinstance(p, ArrayParam) for p in kernel.params), 2)
    if body is None:
        return _counted(kernel.body, (), unrolled_work([kernel], False), array_pairs=pairs)
    numbers = code_bodies(body)
    codes = [body.codes[numbers.index(number)] for number in range(len(set(numbers)))]
    printed: list[Stmt] = []
    for code in codes:
        if code.lanes is not None:
            printed += _printed(interchanged(code, order_of(code.kernel.ndim, code.lanes)))
        printed += _printed(code)
    waits = wait_forms(body).forms
    operands = operands_of(body)
    return _counted(
        printed,
        (e for wait in waits for pair in wait for e in pair),
        unrolled_work((code.kernel for code in codes), True),
        array_pairs=pairs,
        workers=1,
        bodies=len(codes),
        waits=len(waits),
        operands=len(operands.cells) + sum(map(len, operands.varying)),
    )


def _printed(code: StageCode) -> Body:
    """What a stage's code does, as often as the text has it."""
    code, beside = _with_reductions(code)
    whole, inner = parted(code)
    segments = None if takes_work_groups(code.kernel) else row_segments(code.kernel, whole)
    if segments is not None:
        inner = whole_rows(segments.body, segments.interior)
        whole = (*segments.body, *(whole if segments.divisors else ()))
    elif not takes_work_groups(code.kernel):
        inner = whole_rows(whole, inner)
    return (*whole, *(() if inner is None else inner.body), *beside)


def _with_reductions(code: StageCode) -> tuple[StageCode, Body]:
    """``code`` with its array reductions in private memory, and what stands beside that."""
    if takes_work_groups(code.kernel):
        return code, ()
    whole, _ = parted(code)
    found = private_reductions(code.kernel, whole, code.reduced, 1)
    if found is None:
        return code, ()
    own = replace(code, kernel=with_reductions(code.kernel, found))
    return own, (*found.before, *found.after, *whole)


def _counted(
    body: Iterable[Stmt], more: Iterable[Expr], unrolled: UnrolledWork, **others: int
) -> BuildWork:
    every = list(statements(body))
    roots = [*(e for s in every for e in statement_expressions(s)), *more]
    found = [e for root in roots for e in subexpressions(root)]
    return BuildWork(
        operations=len(every) + len(found),
        divisions=sum(
            isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.type.is_integer
            for e in found
        ),
        loops=sum(isinstance(s, (For, While)) for s in every),
        conditions=sum(isinstance(s, If) for s in every),
        regions=sum(isinstance(s, WorkItemLoop) for s in every),
        unrolled=unrolled.expressions,
        functions=unrolled.functions,
        quotients=unrolled.quotients,
        **others,
    )
