"""Whether what a work-item does is idempotent: done twice, or by several at once, it is the same.

``out[i] = a[i - 1] + a[i + 1]`` is; ``out[i] = out[i] + a[i]`` is not: it reads what it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fusionq.ir.nodes import Load, Stmt, Store
from fusionq.ir.walk import OWN_STATEMENTS, expressions, statements


def is_repeatable(body: Sequence[Stmt], alone: Collection[str]) -> bool:
    """Whether ``body`` does nothing but store to arrays from which it loads nothing, each of them
    one of those ``alone``, which share no memory with others."""
    every = list(statements(body))
    if not all(isinstance(s, OWN_STATEMENTS) for s in every):
        return False
    stored = {s.array for s in every if isinstance(s, Store)}
    loaded = {e.array for e in expressions(body) if isinstance(e, Load)}
    return stored <= set(alone) and stored.isdisjoint(loaded)
