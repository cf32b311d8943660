"""Imports point down the floors that docs/internals.md draws, and nothing imports in a circle.

Every import counts: also those inside functions and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import fusionq
import fusionq.benchmarks
import fusionq.kernels
from tests.unit.test_internals_page import rooms

PACKAGE = Path(fusionq.__file__).parent
ELSEWHERE = {
    "benchmarks": Path(fusionq.benchmarks.__file__).parent,
    "kernels": Path(fusionq.kernels.__file__).parent,
}
"""Rooms that stand elsewhere in the repository."""
TOP = "fusionq"
"""The room of ``fusionq/__init__.py``."""
ONLY_IN = {
    "dpctl": ("backends.sycl", "backends.reference.backend", "runtime.event"),
    "islpy": ("analysis", "passes.affine_expression", "megakernel.bounds", "megakernel.proof"),
    "matplotlib": ("report.pictures", "profiling.plot", "benchmarks"),
    "perfetto": ("profiling.trace",),
}
"""Where a library may be used; the reference backend and events reach USM memory by dpctl."""


def modules() -> dict[str, Path]:
    """Every module by its name within the package, such as ``ir.nodes``."""
    found = {}
    for prefix, folder in (("", PACKAGE), *((f"{k}.", v) for k, v in ELSEWHERE.items())):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[(prefix + name).rstrip(".")] = path
    return found


MODULES = modules()
FLOOR = {room: floor for floor, line in enumerate(reversed(rooms())) for room in line}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that may hold an import: no expression does."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


@cache
def imports(name: str) -> frozenset[str]:
    """What a module imports, by full name, wherever in the file."""
    found = set()
    for node in statements(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} uses a relative import"
            assert node.module is not None
            inside = node.module.removeprefix("fusionq").lstrip(".")
            for alias in node.names:
                full = f"{inside}.{alias.name}".lstrip(".")
                is_module = node.module.partition(".")[0] == "fusionq" and full in MODULES
                found.add(f"fusionq.{full}" if is_module else node.module)
    return frozenset(found)


def own_imports(name: str) -> set[str]:
    """What a module imports from this package, by the name within it."""
    found = {i for i in imports(name) if i == "fusionq" or i.startswith("fusionq.")}
    return {i.removeprefix("fusionq").lstrip(".") for i in found} - {name}


@cache
def all_imports() -> dict[str, set[str]]:
    """What each module imports; read when the first test asks, not by every worker."""
    return {name: own_imports(name) for name in MODULES}


def room(name: str) -> str:
    """The room that a module stands in."""
    return TOP if name == "" else "cli" if name == "__main__" else name.partition(".")[0]


def cycles(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The strongly connected components of more than one node (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node] & graph.keys()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    yield from found


def wrong_arrows(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports of a room that does not stand on a lower floor."""
    return [
        f"{name} -> {other}"
        for name, others in graph.items()
        for other in sorted(others)
        if room(name) != room(other) and FLOOR[room(other)] >= FLOOR[room(name)]
    ]


def test_every_module_stands_in_a_room_that_is_drawn() -> None:
    assert {room(name) for name in MODULES} == set(FLOOR)


def test_no_module_imports_in_a_circle() -> None:
    assert list(cycles(all_imports())) == []


def test_imports_point_down() -> None:
    assert wrong_arrows(all_imports()) == []


def test_the_main_backends_import_no_other() -> None:
    for name, others in all_imports().items():
        if name.startswith(("backends.sycl.", "backends.reference.")):
            folder = name.rpartition(".")[0]
            backends = {o for o in others if o.startswith("backends.") and o.count(".") > 1}
            assert {o.rpartition(".")[0] for o in backends} <= {folder}, name


def test_no_room_imports_numba_dpexs() -> None:
    imported = all_imports()
    users = {name for name, others in imported.items() if any(room(o) == "dpex" for o in others)}
    strays = {name for name in users if room(name) != "dpex"}
    assert strays <= {"benchmarks.baselines.dpex_child"}  # which runs in its environment


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    users = {name for name in MODULES if any(i.split(".")[0] == library for i in imports(name))}
    assert users, f"nobody imports {library}: is it still needed?"
    strays = {name for name in users if not name.startswith((*ONLY_IN[library], "benchmarks"))}
    assert not strays


def test_the_checks_themselves() -> None:
    assert wrong_arrows({"ir.nodes": {"ir.types", "base.span"}, "cli.main": {""}}) == []
    assert wrong_arrows({"ir.nodes": {"frontend.kernel"}}) == ["ir.nodes -> frontend.kernel"]
    assert wrong_arrows({"report.text": {"cache.disk"}}) == ["report.text -> cache.disk"]
    assert wrong_arrows({"runtime.queue": {"benchmarks.runner"}})
    circle = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert list(cycles(circle)) == [["a", "b", "c"]]
    assert list(cycles({"a": {"b"}, "b": set()})) == []
