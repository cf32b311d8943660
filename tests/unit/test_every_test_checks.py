"""Every test checks something: it asserts, expects an error, or calls a function that does."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
EXPECTATIONS = {"raises", "warns", "fail", "deprecated_call"}
"""pytest's functions that fail a test."""

Function = tuple[str, str]
"""A function of the suite: its module and its name; nested functions and methods too."""


def parsed(root: Path) -> dict[str, ast.Module]:
    """The syntax trees below ``root`` by module name, such as ``tests.unit.lists``."""
    return {
        ".".join((root.name, *path.relative_to(root).with_suffix("").parts)): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(root.rglob("*.py"))
    }


class Suite:
    """Which functions of the suite check something, themselves or through what they call."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.defined: dict[Function, list[ast.FunctionDef]] = {}
        self.imported: dict[Function, Function] = {}
        self.fixtures: dict[str, list[Function]] = {}
        for module, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.defined.setdefault((module, node.name), []).append(node)
                    if any("fixture" in ast.dump(d) for d in node.decorator_list):
                        self.fixtures.setdefault(node.name, []).append((module, node.name))
                elif isinstance(node, ast.ImportFrom) and node.module is not None:
                    for alias in node.names:
                        there = node.module, alias.name
                        self.imported[module, alias.asname or alias.name] = there
        self.check = cache(self._check)

    def idle_tests(self) -> list[str]:
        """The tests that check nothing."""
        return sorted(
            f"{module}::{name}"
            for module, name in self.defined
            if name.startswith("test_") and not self.reaches_a_check((module, name))
        )

    def reaches_a_check(self, start: Function) -> bool:
        """Whether ``start``, or what it calls, checks something."""
        seen, waiting = {start}, [start]
        while waiting:
            function = waiting.pop()
            if self.check(function):
                return True
            for node in self.defined.get(function, ()):
                found = set(self._called(function[0], node)) - seen
                seen |= found
                waiting += found
        return False

    def _check(self, function: Function) -> bool:
        return any(map(_checks, self.defined.get(function, ())))

    def _called(self, module: str, node: ast.FunctionDef) -> Iterator[Function]:
        parameters = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        for inner in ast.walk(node):
            match inner:
                case ast.Call(ast.Name(name)) if name in parameters:
                    yield from self.fixtures.get(name, ())
                case ast.Call(ast.Name(name)):
                    yield self.imported.get((module, name), (module, name))
                case ast.Call(ast.Attribute(ast.Name(name), function)):
                    yield ".".join(self.imported.get((module, name), ())), function


def _checks(function: ast.FunctionDef) -> bool:
    """Whether the text of ``function`` holds a statement that can fail a test."""
    for node in ast.walk(function):
        match node:
            case ast.Assert() | ast.Raise():
                return True
            case ast.Attribute(ast.Name("pytest"), attr=name) if name in EXPECTATIONS:
                return True
            case ast.Attribute(ast.Name("np"), "testing"):
                return True
            case ast.keyword("check", ast.Constant(True)):  # of subprocess.run
                return True
    return False


@pytest.mark.slow
def test_every_test_of_the_suite_checks_something() -> None:
    idle = Suite(parsed(TESTS)).idle_tests()
    assert not idle, "these tests cannot fail:\n" + "\n".join(idle)


HELPERS = """
import pytest

def wrong():
    print("nothing")

def right(x):
    assert x

@pytest.fixture
def golden():
    def compare(text):
        assert text
    return compare
"""
TESTS_OF_ALL_KINDS = """
import subprocess
from tests import helpers
from tests.helpers import right as good, wrong

def local():
    good(1)

def test_that_asserts(): assert True
def test_that_expects_an_error():
    with pytest.raises(ValueError):
        wrong()
def test_through_an_import(): good(1)
def test_through_a_module(): helpers.right(1)
def test_through_two_calls(): local()
def test_through_a_fixture(golden): golden("text")
def test_of_a_process(): subprocess.run(["ls"], check=True)

def test_that_only_calls(): wrong()
def test_that_only_prints(): print("done")
def test_with_a_fixture_it_does_not_use(golden): wrong()
"""


@pytest.fixture
def example() -> Suite:
    texts = {"tests.helpers": HELPERS, "tests.test_kinds": TESTS_OF_ALL_KINDS}
    return Suite({name: ast.parse(text) for name, text in texts.items()})


def test_the_scan_finds_the_tests_that_check_nothing(example: Suite) -> None:
    assert [name.rpartition("::")[2] for name in example.idle_tests()] == [
        "test_that_only_calls", "test_that_only_prints", "test_with_a_fixture_it_does_not_use",
    ]  # fmt: skip
