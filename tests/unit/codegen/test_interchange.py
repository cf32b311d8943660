"""What a stage's arrays take, by which its lanes are chosen in the tile."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.codegen.interchange import touched_bytes
from fusionq.ir.nodes import Const
from fusionq.ir.printer import print_expr
from fusionq.ir.types import INT64
from tests.unit.frontend.running import specialised


def test_all_arrays_or_none() -> None:
    @fq.kernel
    def two(item: fq.Item, a, b):
        b[item.get_id(0)] = a[item.get_id(0), item.get_id(1)]

    @fq.kernel
    def nothing(item: fq.Item, n):
        for _ in range(n):
            pass

    ir = specialised(two, (2, 3), np.zeros((2, 3), np.float32), np.zeros(2))
    assert print_expr(touched_bytes(ir)) == "4 * a.shape[0] * a.shape[1] + 8 * b.shape[0]"
    assert touched_bytes(specialised(nothing, (2, 3), 5)) == Const(INT64, 0)
