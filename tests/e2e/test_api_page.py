"""docs/api.md is what docs/make_api.py makes of the docstrings."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fusionq as fq

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_api.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_every_public_name_is_on_the_page() -> None:
    for name in fq.__all__:
        if not name.startswith("_"):
            assert name in entries()


def test_the_page_shows_what_users_see() -> None:
    """Of objects that users hold: every name without an underscore that ``dir`` gives."""
    queue = fq.FusionQueue("reference")
    buffer = fq.Buffer(np.ones(4))
    with fq.profile(queue) as profile, fq.fusion(queue) as fusion:
        event = queue.submit(double, 4, buffer)
    local = fq.LocalAccessor(4, np.float32)
    held = (
        queue, buffer, event, fusion, fusion.report, local, fq.Range(4), fq.NdRange(4, 2),
        fq.AtomicRef, fq.Item, fq.NdItem, fq.Group,
    )  # fmt: skip
    for value in held:
        cls = value if isinstance(value, type) else type(value)
        assert seen(value) == entries()[cls.__name__]
    assert seen(profile) == entries()["profiling.Profile"]
    assert seen(profile.timeline) == entries()["profiling.Timeline"]
    assert seen(profile.timeline.launches[0]) == entries()["profiling.Launch"]


@fq.kernel
def double(item: fq.Item, x: Any) -> None:
    i = item.get_id(0)
    x[i] = x[i] + x[i]


def seen(value: object) -> set[str]:
    """The names of an object without an underscore, but for those of Python's own types."""
    cls = value if isinstance(value, type) else type(value)
    foreign = [base for base in cls.__mro__ if not base.__module__.startswith("fusionq.")]
    names = set(dir(value)) - {name for base in foreign for name in vars(base)}
    return {name for name in names if not name.startswith("_")}


@cache
def entries() -> dict[str, set[str]]:
    """The members on the page of each entry."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for entry in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        (name,) = re.findall(r"^`([\w.]+)", entry)
        members = re.findall(r"^#### `\.(\w+)", entry, re.MULTILINE)
        for line in re.findall(r"^Attributes: (.*)$", entry, re.MULTILINE):
            members += re.findall(r"`\.(\w+)`", line)
        found[name] = set(members)
    return found
