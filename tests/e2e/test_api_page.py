"""docs/api.md is what docs/make_api.py makes of the docstrings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_api.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_every_public_name_is_on_the_page() -> None:
    import fusionq

    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in fusionq.__all__:
        if not name.startswith("_"):
            assert f"### `{name}" in text
