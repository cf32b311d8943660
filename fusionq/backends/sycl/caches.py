"""The sizes of a device's caches: SYCL gives one, Linux the one that a CPU's cores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fusionq.base.config import parse_bytes
from fusionq.base.errors import ArgumentError

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


MOST_OF_A_CORE = 32 << 20
"""Bytes of the last cache that a core counts on.  CPUs have 1 to 32 MiB for each of their cores;
virtual machines of a few cores are shown all of the host's, which others use.  Two cores of a Xeon
are shown 480 MiB: one copies 29 GB/s in 64 MiB, 18 in 128, 14 in 256 and 512."""


def cache_sizes(is_cpu: bool, asked: int, cores: int) -> dict[str, int]:
    """The fields of a ``Target`` about caches, where the device, of ``cores`` compute units,
    answered ``asked``: Intel's CPU runtime means a core's L2, a GPU's the cache of all."""
    if not is_cpu:
        return {"cache_bytes": asked}
    shared = min(last_level_bytes(), MOST_OF_A_CORE * cores)
    return {"worker_cache_bytes": asked, "cache_bytes": shared}


def last_level_bytes(folder: Path = _CACHES) -> int:
    """Bytes of the last cache before memory; 0 where the system does not say."""
    return max(_data_caches(folder), default=(0, 0))[1]


def _data_caches(folder: Path) -> Iterator[tuple[int, int]]:
    """Level and bytes of each cache that holds data."""
    try:
        for cache in folder.glob("index*"):
            if (cache / "type").read_text().strip() != "Instruction":
                size = parse_bytes((cache / "size").read_text(), str(cache))
                yield int((cache / "level").read_text()), size
    except (OSError, ValueError, ArgumentError):
        return
