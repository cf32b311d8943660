"""The event of a launch with something to be done when it has run."""

from __future__ import annotations

from typing import Any

from fusionq.backends.base import DeviceEvent


class WrappedEvent:
    """A DeviceEvent around another, whose answers it gives; who derives from it says what else
    ``wait`` does."""

    __slots__ = ("_inner",)

    def __init__(self, inner: DeviceEvent) -> None:
        self._inner = inner

    @property
    def inner(self) -> DeviceEvent:
        """The launch's own."""
        return self._inner

    @property
    def complete(self) -> bool:
        """See ``DeviceEvent``."""
        return self._inner.complete

    @property
    def native(self) -> Any:
        """See ``DeviceEvent``."""
        return self._inner.native

    def times(self) -> tuple[int, int] | None:
        """See ``DeviceEvent``."""
        return self._inner.times()
