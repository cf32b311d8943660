"""FUSIONQ_DEBUG: each level shows what the one below shows, and more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.config import debug_level
from fusionq.cache.plan_cache import PLANS

SHOWN = {
    1: ["fusionq: fused, 2 submissions → 1 kernel"],
    2: ["--- before fuse: submission 1", "--- after fuse", "--- after promote_private"],
    3: ["--- analysis", "write out", "{ [i0] -> [i0]", "[0] → [1] RAW ITEM"],
    4: ["--- device source"],
}


@fq.kernel
def shown(item: fq.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + 7


def run() -> None:
    PLANS.clear()
    x, middle = fq.Buffer(np.zeros(8, np.int32)), fq.Buffer(8, np.int32, promote_private=True)
    out = fq.Buffer(8, np.int32)
    with fq.FusionQueue("reference") as queue, fq.fusion(queue):
        queue.submit(shown, 8, x, middle)
        queue.submit(shown, 8, middle, out)


@pytest.mark.parametrize("level", range(5))
def test_each_level_shows_more(
    level: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUSIONQ_DEBUG", str(level))
    run()
    shown_text = capsys.readouterr().err
    for wanted, parts in SHOWN.items():
        for part in parts:
            assert (part in shown_text) == (wanted <= level), (part, shown_text)
    if level == 0:
        assert not shown_text


def test_words_that_are_no_level_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_DEBUG", "verbose")
    with pytest.raises(fq.ArgumentError, match="FUSIONQ_DEBUG='verbose' is no level; write 0, 1"):
        run()


@pytest.mark.parametrize(("text", "level"), [("", 0), ("off", 0), ("on", 1), (" 3 ", 3), ("9", 9)])
def test_levels_are_numbers_or_words_for_them(
    text: str, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_DEBUG", text)
    assert debug_level() == level
