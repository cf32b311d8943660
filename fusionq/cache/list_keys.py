"""What entries about lists of one structure are named by: a digest of that, worked out once.

A list's first call looks for its plans by several strategies and for what was learned of it; all
that these differ in is the options.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from fusionq.analysis.submission import Submission
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.cache.keys import digest
from fusionq.planning.structure import structure_key, structure_text

CAPACITY = 16
"""Digests that are remembered; each keeps its lists' forms."""

_digests: OrderedDict[Hashable, tuple[Target, str]] = OrderedDict()
"""By structure, texts and target, which stays alive."""


def structure_digest(submissions: Sequence[Submission], target: Target) -> str | None:
    """Of the structure of a list, its kernels' texts and its target; None where nothing about a
    kernel is kept on disk.  TypeError and OSError as ``digest``."""
    texts = [s.text.digest for s in submissions if s.text is not None]
    if len(texts) < len(submissions):
        return None
    key = structure_key(submissions, FusionOptions()), tuple(texts), id(target)
    found = _digests.get(key)
    if found is None:
        numbers: dict[str, int] = {}
        which = tuple([numbers.setdefault(text, len(numbers)) for text in texts])
        made = digest(tuple(numbers), which, structure_text(submissions, target))
        found = _digests[key] = target, made
        while len(_digests) > CAPACITY:
            _digests.popitem(last=False)
    return found[1]
