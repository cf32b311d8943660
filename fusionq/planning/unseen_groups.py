"""Work-groups of the user that show in nothing that a kernel does.

    i = item.get_group().get_group_id(0) * 256 + item.get_local_id(0)      i = item.get_id(0)
    b[i] = a[i]                                                       →    b[i] = a[i]
    over NdRange(n, 256)                                                   over Range(n)

Kernels that come from CUDA and OpenCL have work-groups everywhere.  Their size decides what joins,
and which dependences are inside of them, as that of any other.  Where the kernel of a launch asks
for global ids alone, has no barriers and no local memory, it says nothing more on a CPU, so that
the launch is that of a range, whose rows are split and whose work-items do several neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.analysis.item_space import local_range
from fusionq.analysis.submission import Submission
from fusionq.base.target import Target
from fusionq.ir.nodes import Atomic, Binary, Const, Expr, ItemQuery, Kernel
from fusionq.ir.types import INT64
from fusionq.ir.walk import OWN_STATEMENTS, expressions, rewrite_body, statements
from fusionq.passes.propagate_ids import propagate_ids


def with_global_ids(submissions: Sequence[Submission], target: Target) -> tuple[Submission, ...]:
    """The list with kernels over work-groups that ask for global ids alone in place of those of
    which the same can be said, on a ``target`` whose launches of ranges gain by that."""
    if not target.device.splits_rows:
        return tuple(submissions)
    known: dict[tuple[int, tuple[int, ...]], Kernel | None] = {}
    made = list(submissions)
    for s, submission in enumerate(submissions):
        local = local_range(submission)
        if local is None:
            continue
        kernel = submission.ir
        key = id(kernel), local
        if key not in known:
            known[key] = _without_groups(kernel, local)
        other = known[key]
        if other is not None and other != kernel:
            name = f"{submission.fingerprint} by global ids"
            made[s] = replace(submission, kernel=other, fingerprint=name, form=None)
    return tuple(made)


def shows_no_groups(kernel: Kernel) -> bool:
    """Whether ``kernel`` does the same in work-groups of any size."""
    if kernel.sub_group_size is not None or any(a.space == "local" for a in kernel.arrays):
        return False
    own = all(
        isinstance(s, OWN_STATEMENTS) or (isinstance(s, Atomic) and s.scope in ("device", "system"))
        for s in statements(kernel.body)
    )
    queries = {e.query for e in expressions(kernel.body) if isinstance(e, ItemQuery)}
    return own and queries <= {"global_id", "global_range"}


def _without_groups(kernel: Kernel, local: Sequence[int]) -> Kernel | None:
    """``kernel``, of work-groups of ``local``, by global ids; None where work-groups show."""
    kernel = propagate_ids(kernel, local)

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("local_range", dim):
                return Const(INT64, local[dim])
            case ItemQuery("group_range", dim):
                whole = ItemQuery("global_range", dim)
                return Binary(INT64, "floordiv", whole, Const(INT64, local[dim]))
        return e

    kernel = replace(kernel, body=rewrite_body(kernel.body, expr))
    return kernel if shows_no_groups(kernel) else None
