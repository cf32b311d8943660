"""Values that are compared often and take long to compare, as small objects."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from fusionq.base.identity_cache import cached_by_identity


class Interned:
    """Stands for ``value`` in keys of tables: equal values have one and the same."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Hashable) -> None:
        self.value = value


_known: WeakValueDictionary[Hashable, Interned] = WeakValueDictionary()


def interned(value: Hashable) -> Interned:
    """The object for ``value``."""
    found = _known.get(value)
    return _known.setdefault(value, Interned(value)) if found is None else found


interned_by_identity = cached_by_identity(interned)
"""The same for a value of which there are few, found by its identity."""
