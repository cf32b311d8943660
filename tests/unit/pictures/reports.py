"""Fusions on the reference queue, and what their pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

import fusionq as fq
from tests.unit.megakernel.cases import blur, reverse


@fq.kernel
def double(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    out[i] = a[i] * 2.0


@fq.kernel
def turn_in_tiles(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    out[i] = a[i // 8 * 8 + 7 - i % 8]


@fq.kernel
def add_turned(item: fq.Item, a, b, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    out[i] = a[i // 8 * 8 + 7 - i % 8] + b[i]


N = 1104
"""Work-items: more than a work-group holds, so that work-groups depend on each other."""


def buffers(count: int, n: int = N) -> list[fq.Buffer]:
    return [fq.Buffer(np.arange(n, dtype=np.float64)) for _ in range(count)]


def sequence() -> fq.Report:
    """Two launches: a promoted buffer each in private and local memory, then a GLOBAL
    dependence."""
    queue = fq.FusionQueue("reference")
    a, turned, out = buffers(3)
    private = fq.Buffer(N, np.float64, promote_private=True)
    local = fq.Buffer(N, np.float64, promote_local=True)
    with fq.fusion(queue, strategy="sequence") as f:
        queue.submit(double, N, a, private)
        queue.submit(double, N, private, local)
        queue.submit(turn_in_tiles, N, local, turned)
        queue.submit(reverse, N, turned, out)
    return f.report


def steps(strategy: Any, count: int = 4, n: int = N) -> fq.Report:
    """A stencil's steps."""
    queue = fq.FusionQueue("reference")
    a, b = buffers(2, n)
    with fq.fusion(queue, strategy=strategy) as f:
        for _ in range(count):
            queue.submit(blur, n, a, b)
            a, b = b, a
    return f.report


@fq.kernel(sub_group_size=8)
def group_sums(item: fq.NdItem, a, out):  # type: ignore[no-untyped-def]  # kernel language
    total = fq.reduce_over_group(item.get_sub_group(), a[item.get_global_id(0)], "add")
    if item.get_local_id(0) == 0:
        out[item.get_global_id(0) // 8] = total


def mixed() -> fq.Report:
    """A persistent kernel, then a launch with a function of sub-groups, which has to be its own."""
    queue = fq.FusionQueue("reference")
    a, b, sums = buffers(3)
    with fq.fusion(queue, strategy="megakernel") as f:
        for _ in range(3):
            queue.submit(blur, N, a, b)
            a, b = b, a
        queue.submit(group_sums, fq.NdRange(N, 8), a, sums)
    return f.report


def long_names() -> fq.Report:
    """A launch of many kernels with a long name."""

    @fq.kernel
    def a_kernel_with_a_rather_long_name_as_people_write(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
        i = item.get_id(0)
        out[i] = a[i] + 1.0

    queue = fq.FusionQueue("reference")
    held = buffers(80)
    with fq.fusion(queue) as f:
        for source, target in pairwise(held):
            queue.submit(a_kernel_with_a_rather_long_name_as_people_write, N, source, target)
    return f.report


def shown(figure: Any, kind: str) -> list[tuple[str, ...]]:
    """What is drawn of a kind: the rest of its artists' gids, such as ``("0", "3")`` for the
    artist ``tile 0 3``; sorted."""
    gids = [gid.split() for gid, _ in named(figure)]
    return sorted(tuple(rest) for first, *rest in gids if first == kind)


def text_of(figure: Any, gid: str) -> str:
    """The text of the one artist with this gid."""
    [found] = [artist for own, artist in named(figure) if own == gid]
    return str(found.get_text())


@lru_cache(maxsize=1)
def named(figure: Any) -> list[tuple[str, Any]]:
    """The artists of a page that is drawn, each with its gid."""
    return [(artist.get_gid(), artist) for artist in figure.findobj() if artist.get_gid()]


def texts(figure: Any) -> Sequence[str]:
    """All that is written on the page itself."""
    return [text.get_text() for text in figure.axes[0].texts]
