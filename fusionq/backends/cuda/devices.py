"""The GPUs: their contexts, and what they say of themselves."""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from fusionq.backends.cuda.runtime import checked, load_driver
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import DeviceError
from fusionq.base.target import Target, target_of

WARP = 32
"""Threads of a warp, on every GPU so far."""
BLOCK = CODE_LIMITS.worker_threads
"""Threads of a worker of a persistent kernel."""
GROUP_FUNCTION_BYTES = 1024 * (4 + 8) + 256
"""Of shared memory, which group functions may take beside a kernel's own: a value of each size for
each thread, and what broadcasts take (``codegen.cuda.groups``)."""
RESERVED_BYTES = GROUP_FUNCTION_BYTES + 256
"""The same with what the alignment of a kernel's local arrays takes."""
MUCH_MEMORY = 128 << 10
"""Bytes of a block's shared memory, from which rings have slots of the size that is assumed."""
SMALL_SLOT = 4 << 10
"""Bytes; with larger slots there would be no ring beside the tables of most lists."""


class LaunchNames(Protocol):
    """A stream that knows what was launched on it."""

    def in_flight(self) -> Sequence[str]:
        """The kernels that may still be running."""


class Device:
    """One GPU, with its primary context, which CUDA's other libraries use too."""

    def __init__(self, ordinal: int) -> None:
        driver = load_driver()
        self.ordinal = ordinal
        self._handle = checked("the GPU", driver.cuDeviceGet(ordinal))
        self.name = _text(checked("the GPU's name", driver.cuDeviceGetName(256, self._handle)))
        self.compute_capability = (
            self.attribute("COMPUTE_CAPABILITY_MAJOR"),
            self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )
        self.architecture = f"sm_{self.compute_capability[0]}{self.compute_capability[1]}"
        self.has_dependent_launches = self.compute_capability >= (9, 0)
        """Whether a kernel may begin before the one before it has ended, and wait for it."""
        self.has_neighbours = device_count() > 1
        """Whether there are other GPUs."""
        self.graphs = 0
        """That there are."""
        self.lost: str | None = None
        """What happened, once the context is lost."""
        self.streams: WeakSet[LaunchNames] = WeakSet()
        """Those on which fusionq launches."""
        self.total_bytes = int(checked("its memory", driver.cuDeviceTotalMem(self._handle)))

    @functools.cached_property
    def context(self) -> Any:
        """The primary context, kept for the rest of the process."""
        driver = load_driver()
        return checked(f"{self.name}'s context", driver.cuDevicePrimaryCtxRetain(self._handle))

    def attribute(self, name: str) -> int:
        """``CU_DEVICE_ATTRIBUTE_<name>``."""
        driver = load_driver()
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(name, driver.cuDeviceGetAttribute(attribute, self._handle)))

    def in_flight(self) -> list[str]:
        """The kernels that may be running, each stream's in order."""
        found = (name for stream in tuple(self.streams) for name in stream.in_flight())
        return list(dict.fromkeys(found))

    @property
    def memory_domain(self) -> Hashable:
        """Equal for all that reach this GPU's memory."""
        return ("cuda", self.ordinal)

    @property
    def is_current_elsewhere(self) -> bool:
        """Whether this thread's calls of the driver may be about another device, or none."""
        return current.device is not self or self.has_neighbours

    def make_current(self) -> None:
        """Let this thread's calls of the driver be about this device."""
        if self.is_current_elsewhere:
            driver = load_driver()
            checked(f"{self.name}'s context", driver.cuCtxSetCurrent(self.context))
            current.device = self

    @functools.cached_property
    def threads(self) -> int:
        """That run at once, where a kernel takes few registers."""
        units = self.attribute("MULTIPROCESSOR_COUNT")
        return units * self.attribute("MAX_THREADS_PER_MULTIPROCESSOR")

    @functools.cached_property
    def target(self) -> Target:
        """The GPU as the compiler sees it."""
        units = self.attribute("MULTIPROCESSOR_COUNT")
        resident = self.attribute("MAX_THREADS_PER_MULTIPROCESSOR") // BLOCK
        return target_of(
            self.info,
            sub_group_size=WARP,
            worker_size=BLOCK,
            resident_workers=units * resident,
            vector_width=WARP,
            worker_cache_bytes=self.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            cache_bytes=self.attribute("L2_CACHE_SIZE"),
            slot_bytes=SMALL_SLOT if self.info.local_memory_bytes < MUCH_MEMORY else 0,
        )

    @functools.cached_property
    def info(self) -> DeviceInfo:
        """The GPU as people see it."""
        driver = load_driver()
        version = int(checked("the driver's version", driver.cuDriverGetVersion()))
        return DeviceInfo(
            name=self.name,
            vendor="NVIDIA",
            driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
            filter_string=f"cuda:{self.ordinal}",
            kind="gpu",
            compute_units=self.attribute("MULTIPROCESSOR_COUNT"),
            max_work_group_size=self.attribute("MAX_THREADS_PER_BLOCK"),
            local_memory_bytes=self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") - RESERVED_BYTES,
            sub_group_sizes=(WARP,),
            has_fp16=True,
            has_fp64=True,
            host_memory=False,
            reads_ahead=True,
            streams_rows=self.compute_capability >= (8, 0),
            groups_in_workers=True,
            chooses_persistent=False,
            float_groups="ordered",
            narrow_indices=True,
            jams_items=True,
            loads_together=True,
        )


class _Current(threading.local):
    device: Device | None = None


current = _Current()
"""What the calls of each thread are about, as far as fusionq has said."""


@functools.cache
def device_count() -> int:
    """GPUs that the driver shows; DeviceError where there is no driver."""
    return int(checked("the number of GPUs", load_driver().cuDeviceGetCount()))


@functools.cache
def device(ordinal: int) -> Device:
    """The GPU of that number; DeviceError, which lists those that there are, if there is none."""
    count = device_count()
    if not 0 <= ordinal < count:
        found = ", ".join(f"cuda:{number}" for number in range(count)) or "none"
        raise DeviceError(f"there is no GPU cuda:{ordinal}; GPUs here: {found}")
    return Device(ordinal)


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode(errors="replace")
