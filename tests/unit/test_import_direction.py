"""Imports point one way: from the command line down to the language."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fusionq

PACKAGE = Path(fusionq.__file__).parent
ORDER = (
    "language", "ir", "frontend", "analysis", "codegen", "passes", "megakernel", "planning",
    "queue", "cli",
)  # fmt: skip
"""From the bottom up; a layer imports itself and what stands before it."""
EVERYWHERE = {"errors", "config", "language.ranges"}
"""May be imported by all."""
BACKENDS_MAY_IMPORT = {"backends", "codegen", "ir", "language"}
DEVICE_DESCRIPTION = "backends.base"
"""What a backend offers: for all but the layers that know no device."""
KNOW_NO_DEVICE = {"language", "ir", "frontend", "analysis"}
ONLY_IN = {
    "dpctl": ("backends.sycl", "backends.reference.backend"),  # the latter to reach USM memory
    "islpy": ("analysis", "passes.affine_expression", "megakernel.bounds", "megakernel.proof"),
}


def modules() -> dict[str, Path]:
    """Every module by its name within the package, such as ``ir.nodes``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
PACKAGES = {name.partition(".")[0] for name in MODULES if "." in name}


def imports(name: str) -> set[str]:
    """What a module imports, by full name, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
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
    return found


def own_imports(name: str) -> set[str]:
    """What a module imports from this package, by the name within it."""
    found = {i for i in imports(name) if i == "fusionq" or i.startswith("fusionq.")}
    return {i.removeprefix("fusionq").lstrip(".") for i in found}


def layer(name: str) -> str:
    """The layer of a module; those at the top of the package are the queue's, as the cache, the
    pictures and the profiler are."""
    if name == "__main__":
        return "cli"
    top = name.partition(".")[0]
    return top if top in PACKAGES and top not in ("cache", "pictures", "profiling") else "queue"


def is_allowed(name: str, imported: str) -> bool:
    """Whether module ``name`` may import module ``imported``."""
    source, target = layer(name), layer(imported)
    if imported in EVERYWHERE:
        return True
    if imported.partition(".")[0] in ("kernels", "benchmarks"):
        return source == "cli"
    if source == "backends":
        return target in BACKENDS_MAY_IMPORT
    if target == "backends":
        above = source in ("queue", "cli")
        return above or (imported == DEVICE_DESCRIPTION and source not in KNOW_NO_DEVICE)
    return ORDER.index(target) <= ORDER.index(source)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str) -> None:
    wrong = sorted(i for i in own_imports(name) if not is_allowed(name, i))
    assert not wrong, f"fusionq.{name} must not import {wrong}"


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    users = {name for name in MODULES if any(i.split(".")[0] == library for i in imports(name))}
    assert users, f"nobody imports {library}: is it still needed?"
    strays = {name for name in users if not name.startswith(ONLY_IN[library])}
    assert not strays


def test_every_package_has_a_place() -> None:
    assert {*ORDER, "backends", "cache", "pictures", "profiling"} >= PACKAGES


@pytest.mark.parametrize(
    ("name", "imported", "allowed"),
    [
        ("ir.nodes", "ir.types", True),
        ("ir.nodes", "frontend.kernel", False),
        ("codegen.opencl_c", "passes.fuse", False),
        ("passes.fuse", "codegen.opencl_c", True),
        ("planning.planner", "queue", False),
        ("planning.planner", "backends.base", True),
        ("planning.planner", "backends.sycl.backend", False),
        ("analysis.access", "backends.base", False),
        ("backends.sycl.backend", "queue", False),
        ("backends.sycl.backend", "planning.plan", False),
        ("queue", "cli.main", False),
        ("queue", "benchmarks.runner", False),
        ("cli.bench", "benchmarks.runner", True),
        ("ir.nodes", "errors", True),
    ],
)
def test_the_rule_itself(name: str, imported: str, allowed: bool) -> None:
    assert is_allowed(name, imported) is allowed
