"""Whether a work-item goes through memory by itself: loops whose iterations no others share."""

from __future__ import annotations

from fusionq.ir.nodes import Const, For, Kernel, While
from fusionq.ir.walk import statements


def loops_alone(kernel: Kernel) -> bool:
    """Whether ``kernel`` has a loop of any trip count and step one, as over a row of a matrix.
    Where the work-items of a work-group share the iterations, the step is their number."""
    for stmt in statements(kernel.body):
        match stmt:
            case While():
                return True
            case For(start=Const(), stop=Const()):
                continue
            case For(step=Const(value=step)) if abs(int(step)) > 1:
                continue
            case For():
                return True
    return False
