"""A persistent kernel that records without its records."""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import Kernel
from fusionq.ir.walk import persistent_of


def unrecorded(kernel: Kernel) -> Kernel | None:
    """``kernel`` without the records of its tiles; None where it has none, or where its stages
    record, too."""
    body = persistent_of(kernel)
    if body is None or body.records is None:
        return None
    own = {body.records.buffer, body.records.base, body.records.rows}
    if any(own & set(stage.arguments) for stage in body.stages):
        return None
    params = tuple(param for param in kernel.params if param.name not in own)
    return replace(kernel, params=params, body=(replace(body, records=None),))
