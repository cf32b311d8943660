"""Names and docs use the terms of SYCL, LLVM and polyhedral compilation, not words of our own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("fusionq", "kernels", "benchmarks", "examples", "tools", "docs", "README.md")

INSTEAD = {
    r"pays": "profitable, profitability",
    r"too_slow": "unprofitable",
    r"settle[ds]?": "what is done, such as resolve or synchronize",
    r"tempting": "tried, a candidate",
    r"Found": "what it is",
    r"FARTHEST": "a window",
    r"patien(ce|t)": "spin limit, bounded",
    r"given[ _]up": "stalled",
    r"seldom": "unlikely, rarely",
    r"by turns": "alternately, interleaved, round-robin",
    r"to be had": "available",
    r"comes by": "runs",
    r"meet_as": "share_items",
    r"looks?_\w+|\w+_looks?|\.looks?\(|def looks?": "reads, polls",
}
"""Words that are not used, and what to write."""


def sources() -> list[Path]:
    """The files that people read."""
    found = []
    for place in PLACES:
        path = ROOT / place
        found += (
            [path]
            if path.is_file()
            else sorted(
                file for file in path.rglob("*") if file.suffix in (".py", ".md", ".cl", ".c")
            )
        )
    return found


@cache
def texts() -> dict[Path, str]:
    """Read once for all words."""
    return {path: path.read_text(encoding="utf-8") for path in sources()}


@pytest.mark.slow
@pytest.mark.parametrize("word", INSTEAD)
def test_words_of_our_own_are_not_used(word: str) -> None:
    pattern = re.compile(rf"(?<![A-Za-z])(?:{word})(?![A-Za-z])")  # also as a part of a name
    used = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in texts().items()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line) and f"{{{word} " not in line
    ]
    assert not used, f"write {INSTEAD[word]} in place of:\n" + "\n".join(used)


def test_the_check_reads_the_package() -> None:
    names = {path.name for path in sources()}
    assert {"README.md", "internals.md", "stages.py", "queue_protocol.py", "chain.py"} <= names
