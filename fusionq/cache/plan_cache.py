"""The cache in memory: what the process has planned and built."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from fusionq.backends.base import Program
from fusionq.base.frozen import dataclass

if TYPE_CHECKING:
    from fusionq.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A plan and the programs of its stages."""

    plan: Plan
    programs: tuple[Program, ...]


class PlanCache:
    """Plans by structure (several where they depend on sizes), and programs by kernel, so that
    no kernel is built twice; the least recently used beyond ``capacity`` go."""

    def __init__(self, capacity: int = 1024) -> None:
        self.capacity = capacity
        self._plans: OrderedDict[Hashable, list[BuiltPlan]] = OrderedDict()
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()
        self.superseded: list[Callable[[Iterable[BuiltPlan]], object]] = []
        """Called with plans that are no longer to be used, by ``supersede``."""

    def plans(self, key: Hashable) -> Iterable[BuiltPlan]:
        """The plans for lists of that structure, the latest first."""
        found = self._plans.get(key)
        if found is None:
            return ()
        self._plans.move_to_end(key)
        return tuple(found)

    def add_plan(self, key: Hashable, built: BuiltPlan, variants: int = 16) -> None:
        """Remember a plan, at most ``variants`` for one structure."""
        found = self._plans.setdefault(key, [])
        found.insert(0, built)
        del found[variants:]
        self._plans.move_to_end(key)
        if len(self._plans) > self.capacity:
            self._plans.popitem(last=False)

    def supersede(self, key: Hashable, built: BuiltPlan) -> None:
        """Put ``built``, which was measured, before the plans that were not; what is prepared by
        those is not used any longer."""
        old = [plan for plan in self.plans(key) if not plan.plan.measured]
        for tell in self.superseded if old else ():
            tell(old)
        self.add_plan(key, built)

    def program(self, key: Hashable) -> Program | None:
        """The program that was built for a kernel."""
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
        return found

    def loaded_program(self, key: Hashable) -> Program | None:
        """The same for any thread; that it is used is not noted."""
        return self._programs.get(key)

    def add_program(self, key: Hashable, program: Program) -> None:
        """Remember a built program."""
        self._programs[key] = program
        if len(self._programs) > self.capacity:
            self._programs.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._plans.clear()
        self._programs.clear()


PLANS = PlanCache()
"""The process's plans and programs."""
