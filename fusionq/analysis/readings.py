"""What is found out about kernels and relations once for all the analyses of a plan.

A list's questions are about a few submissions each.  Whichever these are, a kernel over symbols of
the same names is read alike, and equal relations have equal answers: for today's values of the
symbols and for others.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import TypeVar

import islpy as isl

from fusionq.analysis.kernel_accesses import Access, KernelAccesses
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Kernel

Relation = TypeVar("Relation", isl.Set, isl.Map)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What has been found out, the conditions (``Proofs``) under which that is so, the symbols that
    it rests on with the values that are part of the question, and those ``today`` with the values
    that it holds for."""

    value: object
    conditions: tuple[tuple[isl.Set, bool], ...]
    pinned: frozenset[str]
    today: tuple[tuple[str, int], ...]


@dataclass
class Readings:
    """All of it; nothing of it depends on where arrays lie."""

    kernels: dict[Hashable, tuple[Kernel, dict[tuple[tuple[str, int], ...], KernelAccesses]]] = (
        field(default_factory=dict)
    )
    """By shape, and by the values that the accesses rest on."""
    versions: dict[int, set[tuple[int, ...]]] = field(default_factory=dict)
    """For each kernel, by identity, the values of symbols for which it has been read, of those that
    were pinned."""
    elements: dict[Hashable, isl.Map | None] = field(default_factory=dict)
    """Of instances, by access and how its array lies."""
    item_elements: dict[Hashable, isl.Map | None] = field(default_factory=dict)
    """Of work-items."""
    items: dict[int, tuple[Access, isl.Set]] = field(default_factory=dict)
    """The work-items that may do an access, by its identity."""
    touched: dict[Hashable, isl.Set] = field(default_factory=dict)
    """The elements of several accesses together."""
    symbols: dict[tuple[int, tuple[str, ...]], frozenset[str]] = field(default_factory=dict)
    answers: dict[Hashable, list[Answer]] = field(default_factory=dict)
    groups_left: dict[Hashable, list[tuple[int, ...]]] = field(default_factory=dict)
    """Work-group sizes that a relation between work-items leaves for some values of the symbols, by
    relation and what the symbols are."""
    hard: set[Hashable] = field(default_factory=set)
    """Relations and what the symbols are, about which it is too hard to say for which scalars what
    is answered holds."""
    too_hard: dict[Hashable, str] = field(default_factory=dict)
    """Why questions that have taken too long have no answer, by what they and the values of the
    symbols are."""
    meetings: dict[Hashable, object] = field(default_factory=dict)
    """Which work-items of two submissions are the same, by their ranges and the symbols."""
    texts: dict[int, tuple[isl.Set, str | None, frozenset[str]]] = field(default_factory=dict)
    """Of conditions, by identity, with their symbols; None where they are too hard to write."""
    _same: dict[int, list[isl.Set | isl.Map]] = field(default_factory=dict)

    def canonical(self, relation: Relation) -> Relation:
        """One object, which stays, for all relations that isl has in the same form."""
        known = self._same.setdefault(hash(relation), [])
        for one in known:
            if type(one) is type(relation) and one.plain_is_equal(relation):
                return one
        known.append(relation)
        return relation
