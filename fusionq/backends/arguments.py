"""Whether arguments fit a kernel: what every backend refuses alike."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.backends.base import Binding
from fusionq.base.errors import ArgumentError
from fusionq.ir.interval_arithmetic import Interval, of_type
from fusionq.ir.nodes import ArrayParam, Kernel, KernelParam, ScalarParam


def check_count(kernel: Kernel, bindings: Sequence[Binding]) -> None:
    """ArgumentError where there are more or fewer arguments than parameters."""
    params = kernel.params
    if len(params) != len(bindings):
        raise ArgumentError(
            f"kernel {kernel.name!r} has {len(params)} parameters, and {len(bindings)} arguments "
            f"were bound: {', '.join(p.name for p in params)}"
        )


def bound_by_name(kernel: Kernel, bindings: Sequence[Binding]) -> dict[str, Binding]:
    """Each parameter's argument; ArgumentError where there are more or fewer."""
    check_count(kernel, bindings)
    return {param.name: binding for param, binding in zip(kernel.params, bindings, strict=True)}


def misfit(kernel: Kernel, param: KernelParam, binding: Binding) -> ArgumentError:
    """The error of an argument of another kind than the parameter."""
    takes = f"an array of {param.ndim} dimensions" if isinstance(param, ArrayParam) else "a scalar"
    return ArgumentError(
        f"parameter {param.name!r} of kernel {kernel.name!r} takes {takes}, not {binding!r}"
    )


def values_of(param: ScalarParam) -> Interval | None:
    """The values that an integer parameter may have; None for other types."""
    return (param.bounds or of_type(param.type)) if param.type.is_integer else None


def check_fits(param: ScalarParam, value: int | float, values: Interval | None) -> None:
    """ArgumentError if an integer is none of the ``values_of`` its parameter."""
    if values is None:
        return
    low, high = values
    if not low <= value <= high:
        raise ArgumentError(
            f"{param.name}={value} does not fit: the kernel takes {param.type} values from "
            f"{low} to {high}"
        )
