"""A kernel's launches on the reference device: every work-item in a chosen order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fusionq.backends.arguments import bound_by_name, check_fits, misfit, values_of
from fusionq.backends.base import ArrayBinding, Binding, DeviceEvent
from fusionq.backends.reference.checked_arrays import CheckedArray, array_at
from fusionq.backends.reference.compile import Bind, Ids
from fusionq.backends.reference.groups import Steps, run_group
from fusionq.backends.reference.order import Box, Index, Order, box_items, work_items
from fusionq.backends.reference.scalars import Scalar, as_scalar
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.frozen import dataclass
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import ArrayParam, Barrier, GroupCall, Kernel, KernelParam, ScalarParam
from fusionq.ir.walk import is_work_group_function, statements

ItemOrder: TypeAlias = Order | Callable[[list[Index]], Sequence[Index]]
Applied = TypeVar("Applied")


class ReferenceEvent:
    """The event of a launch, which has run when it returns."""

    native = None
    complete = True

    def wait(self) -> None:
        """Nothing to wait for."""

    def times(self) -> None:
        """There is no clock."""


@dataclass(frozen=True, slots=True)
class ReferenceProgram:
    """A kernel as a Python function; ``source`` is the kernel, not that function."""

    kernel: Kernel
    bind: Bind
    source: str
    build_seconds: float


class ReferenceLaunch:
    """A program with its arguments as NumPy objects."""

    def __init__(
        self,
        program: ReferenceProgram,
        arguments: Sequence[Binding],
        shape: LaunchShape,
        order: Order,
        seed: int,
    ) -> None:
        self._kernel = program.kernel
        self._bind = program.bind
        self._order: Order = order
        self._seed = seed
        self._places: Mapping[str, int] = {}
        """Of a copy's arrays."""
        self.resize(arguments, shape)

    def resize(self, arguments: Sequence[Binding], shape: LaunchShape) -> bool:
        """See ``ResizableLaunch``."""
        self._global_range, self._local_range = shape.global_range, shape.local_range
        self._check_shape()
        whole, part = self._global_range, self._local_range
        counts = tuple(n // local for n, local in zip(whole, part, strict=True))
        self._ranges = _int64(whole), _int64(part)
        self._counts = _int64(counts)
        self._bindings = bound_by_name(self._kernel, arguments)
        self._arguments: dict[str, CheckedArray | Scalar] = {
            name: self._argument(self._kernel.param(name), value)
            for name, value in self._bindings.items()
        }
        return True

    def copy(self, places: Mapping[str, int]) -> ReferenceLaunch:
        """The same launch, which takes other arguments by itself; ``places``: of its arrays, by
        parameter, among the addresses that it moves to."""
        other = copy(self)
        other._bindings, other._arguments = self._bindings.copy(), self._arguments.copy()
        other._places = places
        return other

    def move(self, addresses: Sequence[int | None]) -> None:
        """Have the arrays of a copy at other ``addresses`` in the launches that follow."""
        for name, place in self._places.items():
            binding, address = self._bindings[name], addresses[place]
            assert isinstance(binding, ArrayBinding) and address is not None
            self._bindings[name] = moved = replace(binding, address=address)
            self._arguments[name] = self._argument(self._kernel.param(name), moved)

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> None:
        """Give scalar parameter ``name`` another value for the launches that follow."""
        self._arguments[name] = self._argument(self._kernel.param(name), value)

    def launch(self, depends: Sequence[DeviceEvent] = ()) -> ReferenceEvent:
        """Run every work-item, after the events in ``depends``."""
        for event in depends:
            event.wait()
        with self._executing():
            self._run()
        return ReferenceEvent()

    def applied(self, function: Callable[..., Applied]) -> Applied:
        """The value of a function of the arguments, which come in the order of the parameters."""
        with np.errstate(all="ignore"):
            return function(*self._arguments.values())

    def run_items(self, boxes: Sequence[Box], order: ItemOrder = "shuffled", seed: int = 0) -> None:
        """Run only the work-items of ``boxes``; see ``item_steps``."""
        with np.errstate(all="ignore"):
            for _ in self.item_steps(boxes, order, seed):
                pass

    def item_steps(
        self, boxes: Sequence[Box], order: ItemOrder = "shuffled", seed: int = 0
    ) -> Iterator[Index]:
        """Run only the work-items of ``boxes``, ranges of global ids in each dimension: one each
        time that the iterator is asked, which gives its global id.

        ``order``: a named one (``seed`` determines the shuffled), or a function from the ids, box
        by box, to those to run.  Local and group ids are as in a whole launch.  DeviceError, at
        once, if the kernel's work-items meet or share local memory, or a box exceeds the range.
        What NumPy does about overflow is the caller's.
        """
        if self._needs_groups is not None:
            raise DeviceError(
                f"some work-items of kernel '{self._kernel.name}' cannot run without the others "
                f"of their work-group: {self._needs_groups}; launch the whole kernel"
            )
        try:
            items = box_items(boxes, self._global_range, order, seed)
        except ValueError as error:
            raise DeviceError(f"kernel '{self._kernel.name}': {error}") from None
        return self._run_one_by_one(items)

    @cached_property
    def _needs_groups(self) -> str | None:
        """Why its work-items run by whole work-groups, if they do."""
        meetings = [
            str(statement.span)
            for statement in statements(self._kernel.body)
            if isinstance(statement, Barrier | GroupCall)
        ]
        shared = [a.name for a in self._kernel.arrays if a.space == "local"]
        if meetings or shared:
            return f"they meet at {meetings[0]}" if meetings else f"they share '{shared[0]}'"
        return None

    def _run_one_by_one(self, items: Sequence[Index]) -> Iterator[Index]:
        work_item = self._bind(*self._arguments.values())()
        part = self._local_range
        ranges, groups = self._ranges, self._counts
        alone, first = all(n == 1 for n in part), _int64((0,) * len(part))
        for item in items:
            ids = _int64(item)
            local = first if alone else _int64([i % n for i, n in zip(item, part, strict=True)])
            group = ids if alone else _int64([i // n for i, n in zip(item, part, strict=True)])
            try:
                work_item(ids, ranges[0], local, ranges[1], group, groups)
            except NameError as error:
                raise self._unassigned(error) from error
            yield item

    def group_steps(self, box: Box, seed: int) -> Iterator[None]:
        """Run the groups that have the work-items of ``box``, in shuffled order: of a work-group
        function a work-item's part between two barriers each time that the iterator is asked, else
        a whole group."""
        part = self._local_range
        ranges, counts = self._ranges, self._counts
        of_groups = is_work_group_function(self._kernel)
        groups = tuple(
            range(ids[0] // n, ids[-1] // n + 1) for ids, n in zip(box, part, strict=True)
        )
        shuffled = random.Random(seed)
        for group in box_items([groups], tuple(map(int, counts)), "shuffled", seed):
            if not of_groups:
                with self._executing():
                    work_group = self._bind(*self._arguments.values())
                    self._run_group(work_group, group, list(np.ndindex(part)))
                yield
                continue
            base = [g * n for g, n in zip(group, part, strict=True)]

            def items(count: int, base: Sequence[int] = base) -> Iterator[tuple[Ids, Ids, Ids]]:
                order = list(range(count))
                shuffled.shuffle(order)
                for linear in order:
                    local = tuple(map(int, np.unravel_index(linear, part)))
                    item = tuple(b + i for b, i in zip(base, local, strict=True))
                    yield _int64(item), _int64(local), _int64((linear,))

            run: Callable[..., Iterator[None]] = self._bind(*self._arguments.values())()  # type: ignore[assignment]  # a work-group function's
            steps = run(items, *ranges, _int64(group), counts)
            while True:
                with self._executing():
                    if next(steps, steps) is steps:
                        break
                yield

    @contextmanager
    def _executing(self) -> Iterator[None]:
        """The arithmetic of kernels, and the message about what their code gets wrong."""
        try:
            with np.errstate(all="ignore"):
                yield
        except NameError as error:
            raise self._unassigned(error) from error

    def _unassigned(self, error: NameError) -> DeviceError:
        return DeviceError(
            f"kernel '{self._kernel.name}' ({self._kernel.span}) reads a variable that the "
            f"work-item has not assigned: {error}; assign it on every path"
        )

    def _run(self) -> None:
        work_group = self._bind(*self._arguments.values())
        groups = tuple(map(int, self._counts))
        for group, members in work_items(groups, self._local_range, self._order, self._seed):
            self._run_group(work_group, group, members)

    def _run_group(
        self, work_group: Callable[[], Any], group: Index, members: Iterable[Index]
    ) -> None:
        """Run the work-items of a group that have the local ids ``members``."""
        part = self._local_range
        (global_range, local_range), counts = self._ranges, self._counts
        work_item, group_id = work_group(), _int64(group)
        base = [g * n for g, n in zip(group, part, strict=True)]
        meeting: list[tuple[int, Steps]] = []
        for local in members:
            global_id = _int64([b + i for b, i in zip(base, local, strict=True)])
            steps = work_item(global_id, global_range, _int64(local), local_range, group_id, counts)
            if steps is not None:
                meeting.append((int(np.ravel_multi_index(local, part)), steps))
        if meeting:
            run_group(self._kernel.name, meeting)

    def _check_shape(self) -> None:
        whole, part = self._global_range, self._local_range
        fits = len(whole) == len(part) == self._kernel.ndim and all(
            p >= 1 and w >= 0 and w % p == 0 for w, p in zip(whole, part, strict=True)
        )
        if not fits:
            raise DeviceError(
                f"kernel '{self._kernel.name}' has {self._kernel.ndim} dimensions and cannot "
                f"run over the global range {whole} in work-groups of {part}"
            )

    def _argument(self, param: KernelParam, value: Binding) -> CheckedArray | Scalar:
        if isinstance(param, ScalarParam) and not isinstance(value, ArrayBinding):
            if not isinstance(value, np.generic):
                check_fits(param, value, values_of(param))
            try:
                return as_scalar(value, param.type)
            except (TypeError, OverflowError) as error:
                raise ArgumentError(
                    f"argument '{param.name}' of kernel '{self._kernel.name}': {error}"
                ) from error
        if (
            isinstance(param, ArrayParam)
            and isinstance(value, ArrayBinding)
            and param.ndim == len(value.shape) == len(value.strides)
        ):
            data = array_at(value, param.dtype.dtype, param.alignment)
            return CheckedArray(self._kernel.name, param.name, data)
        raise misfit(self._kernel, param, value)


_SMALL = tuple(map(np.int64, range(4096)))
"""Ids that need not be made anew."""


def _int64(index: Sequence[int]) -> Ids:
    """Ids, which are 0 or more."""
    return tuple([_SMALL[i] if i < len(_SMALL) else np.int64(i) for i in index])
