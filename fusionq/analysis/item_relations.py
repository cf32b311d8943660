"""Which ids of a submission are which work-item of a fused kernel, as integer maps."""

from __future__ import annotations

from math import prod

import islpy as isl

from fusionq.analysis.isl_texts import map_of
from fusionq.analysis.item_space import Mode, global_range
from fusionq.analysis.kernel_accesses import item_dims
from fusionq.analysis.submission import Submission
from fusionq.analysis.symbols import Symbols


def to_space(
    submission: Submission, symbols: Symbols, mode: Mode
) -> tuple[isl.Map, frozenset[str]]:
    """The map from a submission's ids to the fused work-item, and the symbols it pins."""
    extents = global_range(submission)
    names = item_dims(len(extents))
    parameters = ", ".join(symbols.names)
    source = ", ".join(names)
    if mode != "linear":
        target = source
        if len(names) == 1 and mode != "ids":
            target = f"{source}, 0" if mode == "first" else f"0, {source}"
        return map_of(f"[{parameters}] -> {{ [{source}] -> [{target}] }}"), frozenset()
    weights = [prod(extents[d + 1 :]) for d in range(len(extents))]
    linear = " + ".join(f"{w}{name}" for w, name in zip(weights, names, strict=True))
    pinned = frozenset(symbols.size(extent) for extent in extents[1:])
    return map_of(f"[{parameters}] -> {{ [{source}] -> [{linear}] }}"), pinned


def between_different(items: isl.Map) -> isl.Map:
    """The pairs of ``items``, a relation of work-items of one space, that are no identical ones.

    As those without the identity; where ``items`` has quotients, isl takes that away at length.
    """
    space = items.get_space().domain()
    return items.intersect(isl.Map.lex_lt(space).union(isl.Map.lex_gt(space)))


def same_group(symbols: Symbols, local: tuple[int, ...]) -> isl.Map:
    """The relation between work-items of one work-group of extents ``local``."""
    names = item_dims(len(local))
    others = [f"j{d}" for d in range(len(local))]
    same = " and ".join(
        f"floor({a}/{size}) = floor({b}/{size})"
        for a, b, size in zip(names, others, local, strict=True)
    )
    parameters = ", ".join(symbols.names)
    return map_of(
        f"[{parameters}] -> {{ [{', '.join(names)}] -> [{', '.join(others)}] : {same} }}"
    )
