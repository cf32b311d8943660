"""A list whose work-groups that do nothing together are plain ranges.

    i = item.get_group().get_group_id(0) * 256 + item.get_local_id(0)      i = item.get_id(0)
    b[i] = a[i]                                                       →    b[i] = a[i]
    over NdRange(n, 256)                                                   over Range(n)

Kernels that come from CUDA and OpenCL have work-groups everywhere.  Where they ask for global ids
alone and do nothing in which a work-group shows, their size is that of blocks of threads, and says
nothing on a CPU: as ranges they join kernels over work-groups of other sizes and over ranges, and
rows are done as those of ranges are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.beyond_groups import staying_in_groups
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.ir.nodes import Atomic, Binary, Const, Expr, ItemQuery, Kernel
from fusionq.ir.types import INT64
from fusionq.ir.walk import OWN_STATEMENTS, expressions, rewrite_body, statements
from fusionq.passes.propagate_ids import propagate_ids


def ungrouped_list(submissions: Sequence[Submission], target: Target) -> tuple[Submission, ...]:
    """The list with plain ranges in place of work-groups that do nothing together on ``target``,
    neither by themselves nor by what they exchange with other submissions; of a size that is none
    of a submission whose work-groups do."""
    if not target.device.splits_rows:
        return tuple(submissions)
    known: dict[tuple[int, tuple[int, ...]], Kernel | None] = {}
    alone: dict[int, Submission] = {}
    for s, submission in enumerate(submissions):
        local = local_range(submission)
        if local is None:
            continue
        kernel = submission.ir
        key = id(kernel), local
        if key not in known:
            known[key] = without_groups(kernel, local)
        own = known[key]
        if own is not None:
            name = f"{submission.fingerprint} without work-groups"
            alone[s] = replace(submission, kernel=own, fingerprint=name, form=None)
    if not alone:
        return tuple(submissions)
    seen = [alone.get(s, submission) for s, submission in enumerate(submissions)]
    staying = staying_in_groups(seen) if len(seen) > 1 else frozenset()
    together = {
        local_range(submission)
        for s, submission in enumerate(submissions)
        if s not in alone or s in staying
    }
    made = list(submissions)
    for s, submission in alone.items():
        if local_range(submission) not in together:
            made[s] = replace(submission, range=global_range(submission))
    return tuple(made)


def without_groups(kernel: Kernel, local: Sequence[int]) -> Kernel | None:
    """``kernel``, of work-groups of ``local``, over a plain range; None where work-groups show."""
    if kernel.sub_group_size is not None or any(a.space == "local" for a in kernel.arrays):
        return None
    kernel = propagate_ids(kernel, local)
    for s in statements(kernel.body):
        is_own = isinstance(s, OWN_STATEMENTS)
        if not is_own and not (isinstance(s, Atomic) and s.scope in ("device", "system")):
            return None

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("local_range", dim):
                return Const(INT64, local[dim])
            case ItemQuery("group_range", dim):
                whole = ItemQuery("global_range", dim)
                return Binary(INT64, "floordiv", whole, Const(INT64, local[dim]))
        return e

    body = rewrite_body(kernel.body, expr)
    queries = {e.query for e in expressions(body) if isinstance(e, ItemQuery)}
    return replace(kernel, body=body) if queries <= {"global_id", "global_range"} else None
