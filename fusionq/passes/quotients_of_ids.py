"""Quotients and remainders of global ids by a divisor of the work-group's size.

    y, x = i // 331, i % 331    →    y, x = group id, local id    in work-groups of 331
    y, x = i // 8, i % 8        →    y, x = group id * 4 + local id // 8, local id % 8    of 32

Kernels over flat arrays divide linear ids by the length of a row.  Where work-groups are whole
rows, as those that keep an exchange inside of rows are, nothing is left to divide, and compilers
see that neighbours access neighbours.  Legal since ids of work-items and work-groups begin with 0
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.base.device_info import DeviceInfo
from fusionq.ir.nodes import Binary, Const, Expr, ItemQuery, Kernel
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body


def with_quotients_of_ids(
    kernel: Kernel, local_range: Sequence[int] | None, device: DeviceInfo
) -> Kernel:
    """``kernel``, for work-groups of ``local_range``, in which ids are not divided by what divides
    these; as it is where its ``device`` makes no lanes of work-items, or there are none."""
    if local_range is None or device.kind != "cpu":
        return kernel

    def expr(e: Expr) -> Expr:
        match e:
            case Binary(
                type, "floordiv" | "mod" as op, ItemQuery("global_id", dim), Const(_, value)
            ) if type == INT64 and value > 0 and local_range[dim] % int(value) == 0:
                return _divided(op == "mod", dim, int(value), local_range[dim])
        return e

    body = rewrite_body(kernel.body, expr)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _divided(is_rest: bool, dim: int, divisor: int, size: int) -> Expr:
    """The quotient of a global id by a ``divisor`` of the work-group's ``size``, or the rest."""
    group, local = ItemQuery("group_id", dim), ItemQuery("local_id", dim)
    by = Const(INT64, divisor)
    if is_rest:
        return local if divisor == size else Binary(INT64, "mod", local, by)
    if divisor == size:
        return group
    first = Binary(INT64, "mul", group, Const(INT64, size // divisor))
    return Binary(INT64, "add", first, Binary(INT64, "floordiv", local, by))
