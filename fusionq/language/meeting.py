"""Runs the work-items of a group together as plain Python, so that they can meet.

Each work-item that waits for others keeps a thread of its own; one runs at a time, from meeting
to meeting, in the order given.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusionq.base.errors import DeviceError
from fusionq.language.combine import over_group, over_sub_group

_current = threading.local()
"""``member``: the work-item that the thread runs."""


class _Stopped(BaseException):
    """Ends the threads of a group in which something failed."""


class _Member:
    """A work-item that waits: what for, and with which value; later the result."""

    def __init__(self, group: _WorkGroup, number: int) -> None:
        self.group = group
        self.number = number
        self.go = threading.Semaphore(0)
        self.what: tuple[str, str | None] = ("", None)
        self.sub_group: int | None = None
        self.value: Any = None
        self.source: Any = None
        self.result: Any = None


def meet(
    function: str,
    value: Any = None,
    op: str | None = None,
    source: Any = None,
    sub_group: int | None = None,
) -> Any:
    """Wait for the group's other work-items, or for those of the ``sub_group`` of so many; the
    function's result for this one.

    RuntimeError outside ``run_together``.
    """
    member: _Member | None = getattr(_current, "member", None)
    if member is None:
        raise RuntimeError(
            f"{function} needs the other work-items of the group: submit the kernel to a queue, "
            "FusionQueue('reference') for pure Python"
        )
    member.what, member.value, member.source = (function, op), value, source
    member.sub_group = sub_group
    member.group.wait(member)
    return member.result


def run_together(work_items: Sequence[tuple[int, Callable[[], object]]]) -> None:
    """Run the work-items of one group, given with their linear local ids, in the order given.

    Raises what they raise, and DeviceError if some miss a meeting that others wait at.
    """
    with np.errstate(all="ignore"):
        _WorkGroup(work_items).run()


class _WorkGroup:
    def __init__(self, work_items: Sequence[tuple[int, Callable[[], object]]]) -> None:
        self._size = len(work_items)
        self._new = deque(work_items)
        self._arrived: list[_Member] = []
        self._back = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._stopped = False

    def run(self) -> None:
        while self._new and self._error is None:
            threading.Thread(target=self._work, daemon=True).start()
            self._back.acquire()
        while self._arrived:
            arrived, self._arrived = self._arrived, []
            if self._error is None:
                try:
                    arrived = self._resolved(arrived)
                except (DeviceError, IndexError) as error:
                    self._error = error
            for member in arrived:
                self._stopped = self._error is not None
                member.go.release()
                self._back.acquire()
        if self._error is not None:
            raise self._error

    def _resolved(self, arrived: Sequence[_Member]) -> list[_Member]:
        """Those that have met all that they wait for, with their results; the others wait on."""
        groups: dict[int, list[_Member]] = {}
        for member in arrived:
            if member.sub_group is not None:
                groups.setdefault(member.number // member.sub_group, []).append(member)
        whole = [members for members in groups.values() if len(members) == members[0].sub_group]
        if not whole:
            _give_results(arrived, self._size)
            return list(arrived)
        for members in whole:
            _give_sub_group_results(members)
        done = {member.number for members in whole for member in members}
        self._arrived += [member for member in arrived if member.number not in done]
        return [member for member in arrived if member.number in done]

    def _work(self) -> None:
        """What a thread does: work-items until one has to wait, and the rest of that one."""
        try:
            with np.errstate(all="ignore"):
                while self._new:
                    number, call = self._new.popleft()
                    _current.member = _Member(self, number)
                    call()
        except _Stopped:
            pass
        except BaseException as error:
            self._error = error
        self._back.release()

    def wait(self, member: _Member) -> None:
        self._arrived.append(member)
        self._back.release()
        member.go.acquire()
        if self._stopped:
            raise _Stopped


def _give_sub_group_results(arrived: Sequence[_Member]) -> None:
    kinds = {member.what for member in arrived}
    if len(kinds) != 1:
        names = " and ".join(sorted(function for function, _ in kinds))
        raise DeviceError(f"the work-items of a sub-group wait at {names}, and not at the same")
    function, op = kinds.pop()
    members = sorted(arrived, key=lambda member: member.number)
    values, sources = [m.value for m in members], [m.source for m in members]
    for member, result in zip(
        members, over_sub_group(function, op, values, sources), strict=True
    ):
        member.result = result


def _give_results(arrived: Sequence[_Member], size: int) -> None:
    kinds = {member.what for member in arrived}
    if len(arrived) != size or len(kinds) != 1:
        names = " and ".join(sorted(function for function, _ in kinds))
        raise DeviceError(
            f"{len(arrived)} of the {size} work-items of a group wait at {names} for the others, "
            "which never come; every work-item of a group has to reach the same barriers"
        )
    function, op = kinds.pop()
    if function == "barrier":
        return
    members = sorted(arrived, key=lambda member: member.number)
    values = [member.value for member in members]
    for member, result in zip(
        members, over_group(function, op, values, members[0].source), strict=True
    ):
        member.result = result
