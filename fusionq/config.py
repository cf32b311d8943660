"""Settings from the environment."""

from __future__ import annotations

import os


def debug_level() -> int:
    """``FUSIONQ_DEBUG``: 0 (nothing, the default), 1 (the report of each new fusion on standard
    error), 2 (also each pass's kernel before and after).  Read at each call."""
    text = os.environ.get("FUSIONQ_DEBUG", "")
    return int(text) if text.isdecimal() else 0
