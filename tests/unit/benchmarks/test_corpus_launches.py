"""The table of launches of the corpus: what is planned, kept and printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import corpus_launches

ARGUMENTS = ["separable_blur/clamped", "--working-set", "tiny", "--device", "reference", "--keep"]


def test_forms_are_planned_by_each_strategy_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "launches.json"
    corpus_launches.main([*ARGUMENTS, str(kept)])
    first = capsys.readouterr().out
    assert first.splitlines()[2].startswith("| `separable_blur` clamped | 2 | ")
    ((form, launches),) = json.loads(kept.read_text()).items()
    assert form == "separable_blur/clamped"
    assert list(launches) == list(corpus_launches.COLUMNS)
    assert launches["megakernel"] == launches["overlap"] == 1

    monkeypatch.setattr(corpus_launches, "launches", lambda *_: pytest.fail("planned again"))
    corpus_launches.main([*ARGUMENTS, str(kept)])
    assert capsys.readouterr().out == first


def test_what_is_no_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        corpus_launches.main(["nothing"])
    assert "no program or form is named nothing" in capsys.readouterr().err
