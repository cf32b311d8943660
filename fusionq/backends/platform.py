"""A platform: the devices that one backend drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusionq.backends.base import Backend, DeviceEvent
from fusionq.base.device_info import DeviceInfo
from fusionq.base.frozen import dataclass


def _no(target: object) -> bool:
    return False


def _none(native: object) -> None:
    return None


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Platform:
    """The devices that one backend drives; what an entry point of ``fusionq.backends`` names.

    A queue's target selects the platform by the entry point's name, alone (its default device) or
    before a colon and one of its devices; or it is an object that the platform recognises.
    Importing a platform imports neither a device's runtime nor a compiler.
    """

    open: Callable[[object, bool], Backend]
    """A new queue on a device: the one that the text after the name and colon says, the default
    one for None, or that of an object which ``recognises`` takes; and whether its events record
    when they ran.  DeviceError where there is no such device, or it cannot be used: what is
    missing, and how to install it."""

    devices: Callable[[], Sequence[DeviceInfo]] = tuple
    """The devices that can be used now, the favourite first; none that are another platform's."""

    recognises: Callable[[object], bool] = _no
    """Whether an object is a queue of the runtime below, to open a queue on."""

    event: Callable[[object], DeviceEvent | None] = _none
    """An event of the runtime below as one of ours; None for other objects."""

    filters: frozenset[str] = frozenset()
    """Other words than the name that targets of this platform begin with."""

    missing: Callable[[], str | None] = _nothing
    """Why there are no devices, and what to install; None where there are some, or that is no
    matter."""

    advice: Callable[[], str | None] = _nothing
    """What to install in place of what is there, and why; None where that is well."""

    builder: Callable[[object], Backend] | None = None
    """As ``open``, what builds as that does but launches nothing and leaves the device alone; None
    where only what ``open`` gives can build."""
