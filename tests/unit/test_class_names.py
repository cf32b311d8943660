"""One concept, one class, one word: no two public classes of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import fusionq

PACKAGE = Path(fusionq.__file__).parent


def named_twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """Public classes at the top of more than one module, with the modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    return {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.slow
def test_no_name_stands_for_two_classes() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 200
    assert named_twice({str(path): path.read_text(encoding="utf-8") for path in paths}) == {}


def test_the_check_itself() -> None:
    twice = {"a": "class Stage: pass\nclass _Own: pass", "b": "class Stage: pass\nclass _Own: pass"}
    assert named_twice(twice) == {"Stage": ["a", "b"]}
