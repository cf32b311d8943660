"""The sizes of a device's caches: SYCL gives one, Linux the one that a CPU's cores share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fusionq.base.config import parse_bytes
from fusionq.base.errors import ArgumentError

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def cache_sizes(is_cpu: bool, asked: int) -> dict[str, int]:
    """The fields of a ``Target`` about caches, where the device answered ``asked``: Intel's CPU
    runtime means a core's L2, a GPU's the cache of all."""
    if not is_cpu:
        return {"cache_bytes": asked}
    return {"worker_cache_bytes": asked, "cache_bytes": last_level_bytes()}


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
