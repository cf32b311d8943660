"""isl's objects of texts: the same few texts come back in every list, and isl takes longer to read
one than for many an operation on what it says.

isl's objects never change, so that all may have the same ones.
"""

from __future__ import annotations

from functools import lru_cache

import islpy as isl

_MOST = 512
"""Objects that are kept, of each kind."""


@lru_cache(_MOST)
def map_of(text: str) -> isl.Map:
    """The map that ``text`` says."""
    return isl.Map(text)


@lru_cache(_MOST)
def set_of(text: str) -> isl.Set:
    """The set that ``text`` says."""
    return isl.Set(text)
