"""Ids that are divided by what divides the work-group's size."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.propagate_ids import propagate_ids
from fusionq.passes.quotients_of_ids import with_quotients_of_ids
from tests.unit.frontend.running import define, specialised
from tests.unit.targets import device

X = np.zeros(96, np.int64)
LOCAL, GROUP = "item.get_local_id(0)", "item.get_group().get_group_id(0)"


def rewritten(value: str, kind: str = "cpu", local: tuple[int, ...] | None = (24,)) -> str:
    text = f"def divided(item, n, out):\n    i = item.get_global_id(0)\n    out[i] = {value}\n"
    kernel = propagate_ids(specialised(define(text), fq.NdRange(96, 24), 5, X))
    made = with_quotients_of_ids(kernel, local, device(kind))
    verify(made)
    return print_kernel(made).splitlines()[-1].strip().partition(" = ")[2]


@pytest.mark.parametrize(
    "value, expected",
    [
        ("i // 24", GROUP),
        ("i % 24", LOCAL),
        ("i // 8", f"{GROUP} * 3 + {LOCAL} // 8"),
        ("i % 8", f"{LOCAL} % 8"),
        ("i // 1", f"{GROUP} * 24 + {LOCAL} // 1"),
    ],
)
def test_what_becomes_of_them(value: str, expected: str) -> None:
    assert rewritten(value) == expected


@pytest.mark.parametrize("value", ["i // 7", "i % 48", "i // n", "(i + 1) // 24", "i % -24"])
def test_others_stay(value: str) -> None:
    assert LOCAL not in rewritten(value) and GROUP not in rewritten(value)


def test_without_work_groups_or_lanes_all_stay() -> None:
    assert "% 24" in rewritten("i % 24", local=None)
    assert "% 24" in rewritten("i % 24", kind="gpu")
