"""The public interface of instrumentation passes, and what they put into kernels.

A pass sees the fused kernel and the plan, and gives the kernel back with records in it:

    class CountDropped(Instrumentation):
        def instrument(self, kernel, scope):
            def stmt(s):
                if isinstance(s, If) and not s.orelse:
                    return (replace(s, orelse=(count("dropped"),)),)
                return (s,)
            return replace(kernel, body=rewrite_body(kernel.body, stmt=stmt))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from fusionq.analysis.submission import Submission
from fusionq.base.device_info import DeviceInfo
from fusionq.ir.nodes import Const, Expr, Kernel, Record, Stmt
from fusionq.ir.types import INT64
from fusionq.planning.plan import Plan, StagePlan


@dataclass(frozen=True)
class Scope:
    """What an instrumentation pass can use beside the kernel.

    ``stage``: the launch that the kernel is, one of ``plan.stages``; ``submissions``: all of the
    list.  In the kernel each submission's statements stand in a ``Block`` with its heading.
    """

    plan: Plan
    stage: StagePlan
    submissions: tuple[Submission, ...]
    device: DeviceInfo

    def headings(self) -> dict[str, int]:
        """The submission of each heading."""
        members = self.stage.present
        if len(members) == 1:
            return {self.submissions[members[0]].ir.name: members[0]}
        return {f"{s}: {self.submissions[s].ir.name}": s for s in members}


class Instrumentation(ABC):
    """A pass that adds records to kernels.  It must not change what they compute."""

    @abstractmethod
    def instrument(self, kernel: Kernel, scope: Scope) -> Kernel:
        """``kernel`` with records; called once for each launch of each plan, and for a megakernel
        with each of its stages' kernels.
        """


def count(name: str, by: Expr | int = 1) -> Record:
    """A statement that adds ``by`` (int64) to counter ``name``, over all work-items.

    The sum is ``Profile.counters[name]``.  Costs an atomic addition each time.
    """
    return Record(name, "counter", "instant", Const(INT64, by) if isinstance(by, int) else by)


def around(name: str, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """``body`` as a region: what ``with region(name):`` gives in a kernel."""
    return (Record(name, "region", "start"), *body, Record(name, "region", "end"))


def mark(name: str, payload: Expr | None = None) -> Record:
    """A statement that notes the time, and ``payload`` (int64)."""
    return Record(name, "mark", "instant", payload)
