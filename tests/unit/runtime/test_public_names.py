"""What users see of the objects that they hold is what docs/api.md documents."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import fusionq as fq

API = Path(__file__).parents[3] / "docs" / "api.md"


def documented(name: str) -> set[str]:
    """The members that the API page lists under a class."""
    text = API.read_text(encoding="utf-8")
    part = re.search(rf"^### `{name}\b.*?(?=^##? |^### |\Z)", text, re.DOTALL | re.MULTILINE)
    assert part, f"docs/api.md has no {name}"
    return set(re.findall(r"^#### `\.(\w+)", part[0], re.MULTILINE))


def public(value: object) -> set[str]:
    """The names that ``dir`` shows, without those that begin with an underscore."""
    return {name for name in dir(value) if not name.startswith("_")}


def test_queues_events_fusions_and_buffers_show_what_is_documented() -> None:
    queue = fq.FusionQueue("reference")
    buffer = fq.Buffer(np.ones(4, np.float32))
    with fq.fusion(queue) as f:
        queue.submit(_set, 4, buffer)
    assert public(queue) == documented("FusionQueue")
    assert public(f) == documented("Fusion")
    assert public(f.event) == documented("Event")
    assert public(buffer) == documented("Buffer")


@fq.kernel
def _set(item, out):  # type: ignore[no-untyped-def]  # a kernel has no annotations
    out[item.get_id(0)] = 2.0
