"""Kernels with the bodies of their producers inlined, each made once for a list.

The launches of a stencil over time are a few kernels, and those of one depth begin as those of the
next: what is inlined for one submission is what others need.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Kernel, Load
from fusionq.ir.walk import expressions
from fusionq.passes.inline_producer import (
    Indices,
    Inlined,
    NotInlined,
    Producer,
    inline_producer,
)


@dataclass
class InlinedKernels:
    """What has been inlined so far; kernels and producers are compared by what they are once, and
    by their identity from then on."""

    _same: dict[Kernel, Kernel] = field(default_factory=dict)
    _known: dict[int, tuple[Kernel, Kernel]] = field(default_factory=dict)
    """By identity; the first of both keeps that."""
    _producers: dict[Hashable, Producer] = field(default_factory=dict)
    _made: dict[Hashable, Inlined | str] = field(default_factory=dict)
    """Or why it is not inlined."""
    _loaded: dict[int, frozenset[str]] = field(default_factory=dict)

    def kernel(self, kernel: Kernel) -> Kernel:
        """The same object for equal kernels."""
        known = self._known.get(id(kernel))
        if known is None:
            known = self._known[id(kernel)] = kernel, self._same.setdefault(kernel, kernel)
        return known[1]

    def producer(self, kernel: Kernel, items: Mapping[str, Indices]) -> Producer:
        """The same object for equal producers."""
        one = Producer(self.kernel(kernel), items)
        return self._producers.setdefault((id(one.kernel), tuple(items.items())), one)

    def inlined(self, consumer: Kernel, names: Mapping[str, str], producer: Producer) -> Inlined:
        """What ``inline_producer`` makes of a kernel and a producer that come from here."""
        key = id(consumer), id(producer), tuple(names.items())
        found = self._made.get(key)
        if found is None:
            try:
                found = inline_producer(consumer, names, producer)
                found = Inlined(self.kernel(found.kernel), found.params)
            except NotInlined as reason:
                found = str(reason)
            self._made[key] = found
        if isinstance(found, str):
            raise NotInlined(found)
        return found

    def loaded(self, kernel: Kernel) -> frozenset[str]:
        """The arrays that a kernel that comes from here loads from."""
        found = self._loaded.get(id(kernel))
        if found is None:
            arrays = (e.array for e in expressions(kernel.body) if isinstance(e, Load))
            found = self._loaded[id(kernel)] = frozenset(arrays)
        return found
