"""A kernel over a plain range with the dimensions of that in another order: loop interchange.

    out[item.get_id(1), item.get_id(0)] = …    →    out[item.get_id(0), item.get_id(1)] = …

Work-items of a plain range are in no order, and know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.ir.nodes import Expr, ItemQuery, Kernel
from fusionq.ir.walk import rewrite_body


def permute_dimensions(kernel: Kernel, order: Sequence[int]) -> Kernel:
    """``kernel`` with ``order[d]`` of its dimensions as dimension ``d``."""

    def expr(e: Expr) -> Expr:
        return replace(e, dim=order.index(e.dim)) if isinstance(e, ItemQuery) else e

    return replace(kernel, body=rewrite_body(kernel.body, expr))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes ``order``."""
    return tuple(order.index(d) for d in range(len(order)))
