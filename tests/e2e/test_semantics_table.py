"""Every test that the documentation names exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "semantics.md"


@pytest.mark.slow
def test_every_named_test_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 60
    missing = [f"{file}::{name}" for file, name in named if name not in functions(TESTS / file)]
    assert not missing


def test_every_row_has_a_test_or_is_open() -> None:
    bare = []
    for block in re.split(r"\n(?=## )", PAGE.read_text(encoding="utf-8"))[1:]:
        for table in re.findall(r"(?:^\|.*\n)+", block, re.MULTILINE):
            header, _, *rows = table.strip().splitlines()
            if "test" in header or "here" in header.split("|")[-2]:
                bare += [
                    r for r in rows if "::" not in r and "*open*" not in r and "above" not in r
                ]
    assert not bare


@cache
def functions(file: Path) -> set[str]:
    if not file.exists():
        return set()
    return set(re.findall(r"^def (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
