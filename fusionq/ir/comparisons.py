"""What becomes of a comparison's operator."""

from __future__ import annotations

from fusionq.ir.nodes import CompareOp

NEGATED: dict[CompareOp, CompareOp] = {
    "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq",
}  # fmt: skip
"""Of ``not (a op b)``; of floating values it is no comparison, for NaN."""

MIRRORED: dict[CompareOp, CompareOp] = {
    "lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne",
}  # fmt: skip
"""Of the same comparison with its sides exchanged."""
