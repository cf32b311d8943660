"""What ``submit`` and ``complete_fusion`` return: the completion of submitted work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from fusionq.backends.base import Backend, DeviceEvent
from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError, FusionStateError
from fusionq.base.not_copied import NotCopied


class EventsOfList(Protocol):
    """What an event needs of the list that its submission was in."""

    @property
    def ended(self) -> bool:
        """Whether it waits no longer."""

    @property
    def waits_for(self) -> Sequence[DeviceEvent]:
        """What it runs after."""

    def abort(self, cause: str) -> None:
        """End its fusion mode, where it still waits."""

    def event_of(self, index: int) -> DeviceEvent | None:
        """The device's event for submission ``index``; None where there was nothing to run."""

    def error_of(self, index: int) -> BaseException | None:
        """What kept submission ``index`` from running."""


class Event(NotCopied):
    """The completion of one submission, or of a fused list.

    While the submission waits in a list for fusion, the event is pending; it stays valid
    whatever becomes of the list.
    """

    __slots__ = ("__weakref__", "_device_event", "_index", "_list", "_waits_for")

    def __init__(
        self,
        device_event: DeviceEvent | None = None,
        submissions: EventsOfList | None = None,
        index: int = -1,
        waits_for: Sequence[DeviceEvent] = (),
    ) -> None:
        self._device_event = device_event
        self._waits_for = waits_for
        self._list: EventsOfList | None = submissions
        self._index = index

    def wait(self) -> None:
        """Block until the work has run.  Ends fusion mode if it is still pending (the list then
        runs unfused).  Raises the error that kept the work from running, if one did."""
        submissions = self._list
        if submissions is not None:
            if not submissions.ended:
                submissions.abort("Event.wait() on an event of the list")
            raise_failure(self)
        event = device_event_of(self)
        if event is not None:
            event.wait()

    @property
    def is_complete(self) -> bool:
        """Whether the work has run; False while pending.  Does not end fusion mode."""
        if pending_list_of(self) is not None:
            return False
        event = device_event_of(self)
        return event is None or event.complete

    complete = is_complete

    def get_wait_list(self) -> list[Event]:
        """The events of ``depends_on`` for which the work still waits: those of its own call, or,
        of an event of a list, all that the list waits for.  The queue's order needs no events.

        Source: SYCL 2020, section 4.6.6 (direct dependences; complete ones may be left out).
        """
        waits = self._waits_for if self._list is None else self._list.waits_for
        return [Event(event) for event in waits if not event.complete]

    @property
    def profiling(self) -> tuple[int, int]:
        """When the device started and ended the work, in nanoseconds of the device's clock; waits
        for it.  Submissions that ran as one kernel share its times.

        FusionStateError while pending, on a queue made without ``profiling=True``, on a backend
        without a clock, and where there was nothing to run.
        """
        event = None if pending_list_of(self) is not None else device_event_of(self)
        times = None if event is None else event.times()
        if times is None:
            raise FusionStateError(
                f"{user_span()}: this event has no times; it needs work that has been launched, on "
                "a SYCL device, by a queue made with FusionQueue(profiling=True)"
            )
        return times

    @property
    def native(self) -> Any:
        """dpctl's SyclEvent, or the event of another device's runtime; None while pending, and
        where the runtime has none."""
        event = device_event_of(self)
        return None if event is None else event.native

    sycl_event = native

    def __repr__(self) -> str:
        if pending_list_of(self) is not None:
            return "<Event pending in a list for fusion>"
        return f"<Event {'complete' if self.is_complete else 'running'}>"


class NewEvent(Event):
    """An Event without its constructor, which would take longer than recording a submission, and
    ``object.__new__`` twice as long as this.  Who makes one sets ``_list`` and ``_index``, or
    ``_list`` as None, ``_device_event`` and ``_waits_for``."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self) -> None: ...
    else:
        __init__ = object.__init__


NewEvent.__name__ = NewEvent.__qualname__ = Event.__name__


class AllOf:
    """The completion of several launches."""

    native = None

    def __init__(self, events: Sequence[DeviceEvent]) -> None:
        self.events = events

    def wait(self) -> None:
        """Block until all have run."""
        for event in self.events:
            event.wait()

    @property
    def complete(self) -> bool:
        """Whether all have run."""
        return all(event.complete for event in self.events)

    def times(self) -> tuple[int, int] | None:
        """None: nothing was launched for it."""
        return None


def pending_list_of(event: Event) -> EventsOfList | None:
    """The list that the event's submission waits in, if it does."""
    submissions = event._list
    return submissions if submissions is not None and not submissions.ended else None


def device_event_of(event: Event) -> DeviceEvent | None:
    """The backend's event; None while pending, and where there was nothing to run."""
    submissions = event._list
    if submissions is None:
        return event._device_event
    return submissions.event_of(event._index) if submissions.ended else None


def raise_failure(event: Event) -> None:
    """Raise the error that kept the event's work from running, if one did."""
    error = None if event._list is None else event._list.error_of(event._index)
    if error is not None:
        raise error


NO_EVENTS: tuple[Event, ...] = ()
"""``depends_on`` where nothing is given."""


def as_dependences(depends_on: object) -> list[Event | DeviceEvent]:
    """The entries of ``depends_on``: one, or several in anything that can be iterated over; None
    stands for none.  ArgumentError for anything but an Event or a dpctl.SyclEvent."""
    if depends_on is None:
        return []
    if not isinstance(depends_on, Iterable) or getattr(depends_on, "shape", None) == ():
        return [as_dependence(depends_on)]
    return [as_dependence(dependence) for dependence in depends_on]


def as_dependence(dependence: object) -> Event | DeviceEvent:
    """An entry of ``depends_on``; ArgumentError for anything but an Event or a dpctl.SyclEvent."""
    if isinstance(dependence, Event):
        return dependence
    from fusionq.backends.registry import event_of

    event = event_of(dependence)
    if event is not None:
        return event
    raise ArgumentError(
        f"{user_span()}: depends_on takes Events, fusionq's or dpctl's SyclEvent, not "
        f"{type(dependence).__name__}"
    )


def usable_dependences(backend: Backend, events: Sequence[DeviceEvent]) -> list[DeviceEvent]:
    """Those of ``events`` that a launch on ``backend`` must still be told of; a backend that
    does not wait for them by itself has them waited for here."""
    running = [event for event in events if not event.complete]
    if backend.abilities.asynchronous:
        return running
    for event in running:
        event.wait()
    return []
