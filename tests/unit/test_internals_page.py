"""docs/internals.md, its chapters and CONTRIBUTING.md speak of what there is: rooms, files and
names."""

from __future__ import annotations

import ast
import keyword
import re
from functools import cache
from pathlib import Path

import pytest

import fusionq
import fusionq.benchmarks
import fusionq.kernels

ROOT = Path(__file__).parents[2]
PACKAGE = Path(fusionq.__file__).parent
SOURCES = (
    PACKAGE,
    Path(fusionq.kernels.__file__).parent,
    Path(fusionq.benchmarks.__file__).parent,
)
INSTALLED_INSIDE = {"benchmarks", "kernels"}
"""Rooms that stand elsewhere in the repository."""
CHAPTERS = sorted(path.name for path in (ROOT / "docs" / "internals").glob("*.md"))
PAGES = ("docs/internals.md", "CONTRIBUTING.md", *(f"docs/internals/{name}" for name in CHAPTERS))
NOT_OURS = {
    "ext_codeplay_kernel_fusion", "ptxas", "griddepcontrol.wait", "ld.global.cs", "mbarrier",
    "cp.async", "cp.async.bulk", "cp.async.bulk.prefetch.L2",
}  # fmt: skip
"""Names of others that the pages mention."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w+(\.[A-Za-z_]\w*)*")


def rooms() -> list[list[str]]:
    """The rooms that docs/internals.md draws, floor by floor from the top."""
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    picture = re.search(r"<!-- rooms -->\n```\n(.*?)```", text, re.DOTALL)
    assert picture, "docs/internals.md draws no rooms"
    return [line.split() for line in picture[1].splitlines()]


def spans(page: str) -> list[str]:
    """What stands between backquotes, outside blocks of code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return list(dict.fromkeys(re.findall(r"`([^`\n]+)`", text)))


@cache
def names() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Every name of the package and of the tests' options (modules, what they define, parameters,
    words of a Literal), and what each module and each class holds."""
    found: set[str] = {"fusionq"}
    inside: dict[str, set[str]] = {"fusionq": set()}
    paths = [path for source in SOURCES for path in source.rglob("*.py")]
    for path in (*paths, ROOT / "tests" / "conftest.py"):
        module = path.parent.name if path.stem == "__init__" else path.stem
        found |= {path.parent.name, module}
        holder = path.parent.parent if path.stem == "__init__" else path.parent
        inside.setdefault(holder.name, set()).add(module)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside.setdefault(module, set()).update(defined(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                members = set(defined(node))
                for child in ast.walk(node):
                    if isinstance(child, ast.Attribute):
                        members.add(child.attr)
                inside.setdefault(node.name, set()).update(members)
                found |= members
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                found |= {a.arg for a in every}
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
        found |= set(defined(tree))
    return frozenset(found), {name: frozenset(held) for name, held in inside.items()}


def defined(tree: ast.Module | ast.ClassDef) -> list[str]:
    """The names that a module or a class defines."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if isinstance(node, ast.ImportFrom):
            found += [alias.asname or alias.name for alias in node.names]
        found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


def exists(span: str) -> bool:
    """Whether a path or a name is there; True for what is neither, such as a formula or a
    command."""
    if " " in span:
        return True
    if "/" in span:
        return any((base / span).exists() for base in (ROOT, PACKAGE))
    name = re.sub(r"(\(.*\)|=.*)$", "", span)  # a call, an option with its value
    if not _IDENTIFIER.fullmatch(name) or keyword.iskeyword(name) or name in NOT_OURS:
        return True
    known, inside = names()
    if name.endswith((".py", ".md", ".toml")):
        return (ROOT / name).exists() or (PACKAGE / name).exists()
    if name in known:
        return True
    first, *rest = name.replace("fq.", "fusionq.", 1).split(".")
    for part in rest:
        if part not in inside.get(first, frozenset()):
            return False
        first = part
    return first in known


def test_the_picture_of_the_rooms_is_the_trees() -> None:
    drawn = [room for floor in rooms() for room in floor]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == packages | INSTALLED_INSIDE | {"fusionq"}
    assert all((ROOT / room / "__init__.py").exists() for room in INSTALLED_INSIDE)


def test_every_room_has_a_line_in_their_table() -> None:
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)` \| .+ \|$", text, re.MULTILINE)
    assert table == [room for floor in rooms() for room in floor]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_names_in_backquotes_exist(page: str) -> None:
    missing = [span for span in spans(page) if not exists(span)]
    assert not missing, f"{page} names what there is not: {missing}"


@pytest.mark.parametrize(
    ("span", "there"),
    [
        ("planning/stages.py", True),
        ("planning/stage.py", False),
        ("tests/unit", True),
        ("NdItem", True),
        ("NdItemm", False),
        ("Launcher.profiler", True),
        ("Launcher.profile", False),
        ("tune=True", True),
        ("tuned=True", False),
        ("i // 100", True),
        ("fusionq/no_room", False),
        ("fusionq.planning.stages", True),
        ("fq.FusionQueue", True),
        ("fq.Queue", False),
        ("pyproject.toml", True),
        ("setup.toml", False),
    ],
)
def test_the_check_itself(span: str, there: bool) -> None:
    assert exists(span) is there
