"""What pyproject.toml says agrees with what is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import fusionq

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed(project: dict[str, Any]) -> None:
    found = set()
    for top, name in (
        ("fusionq", "fusionq"),
        ("kernels", "fusionq.kernels"),
        ("benchmarks", "fusionq.benchmarks"),
    ):
        for init in (ROOT / top).rglob("__init__.py"):
            found.add(".".join((name, *init.parent.relative_to(ROOT / top).parts)))
    listed = project["tool"]["setuptools"]["packages"]
    assert sorted(found) == sorted(listed)


def test_every_folder_with_modules_is_a_package() -> None:
    for top in ("fusionq", "kernels", "benchmarks"):
        for module in (ROOT / top).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module


def test_data_files_are_listed(project: dict[str, Any]) -> None:
    patterns = project["tool"]["setuptools"]["package-data"]
    assert (ROOT / "fusionq" / "py.typed").exists()
    assert "py.typed" in patterns["fusionq"]
    for top, name in (("kernels", "fusionq.kernels"), ("benchmarks", "fusionq.benchmarks")):
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                package = ".".join((name, *path.parent.relative_to(ROOT / top).parts))
                assert any(path.match(p) for p in patterns.get(package, ())), path


def test_the_version_is_one(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == fusionq.__version__


def test_both_libraries_are_inside_the_package() -> None:
    import fusionq.benchmarks
    import fusionq.kernels

    assert Path(fusionq.kernels.__file__).parent == ROOT / "kernels"
    assert Path(fusionq.benchmarks.__file__).parent == ROOT / "benchmarks"


def test_hosted_ci_runs_what_runs_here(project: dict[str, Any]) -> None:
    """On the oldest Python that the package takes and on the newest that it names."""
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run\n" in text
    stated = [c.rpartition(" ")[2] for c in project["project"]["classifiers"] if " 3." in c]
    assert f'python: ["{stated[0]}", "{stated[-1]}"]' in text
    assert project["project"]["requires-python"] == f">={stated[0]}"


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert fusionq.__version__ in headings
