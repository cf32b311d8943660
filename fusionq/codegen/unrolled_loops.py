"""Loop unrolling: the unroll factor of short innermost loops over memory, whose loads are in flight
together.

A loop by itself has the largest.  Of a kernel of several, such as one that many were fused into,
each has less: what the device's compiler takes grows with the unrolled text of all of them, faster
than in proportion to it.
"""

from __future__ import annotations

from collections.abc import Set

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import ArrayParam, Assign, Const, For, Kernel, Load, Store
from fusionq.ir.walk import expressions, statements


def most_unrolled(kernel: Kernel, body: Body) -> int:
    """How many iterations each of the loops over memory of ``body``, of ``kernel``, does at once,
    at most: a power of two, so that all together have no more expressions then than they may; but
    no fewer than are worth it."""
    arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam)}
    loops = (s for s in statements(body) if isinstance(s, For) and is_over_memory(s, arrays))
    once = sum(len(list(expressions(loop.body))) for loop in loops)
    most = CODE_LIMITS.iterations_together
    while most > CODE_LIMITS.fewest_ahead and most * once > CODE_LIMITS.unrolled_expressions:
        most //= 2
    return most


def is_over_memory(loop: For, arrays: Set[str]) -> bool:
    """Whether a loop is short, innermost, and loads from some of ``arrays``; and not one of
    constants, which compilers unroll whole where that is worth it."""
    if all(isinstance(e, Const) for e in (loop.start, loop.stop, loop.step)):
        return False
    inside = list(expressions(loop.body))
    return (
        all(isinstance(s, Assign | Store) for s in loop.body)
        and len(inside) <= CODE_LIMITS.streamed_expressions
        and any(isinstance(e, Load) and e.array in arrays for e in inside)
    )
