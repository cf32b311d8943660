"""Which tests the fast loop runs, and what the suite's own options do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import fast_loop, processor_seconds

TESTS = Path(__file__).parents[1]


class Item:
    """A test as pytest collects it, with parameters."""

    def __init__(self, place: str, name: str, is_marked: bool = False, **params: Any) -> None:
        self.path = TESTS / place
        words = "-".join(map(str, params.values()))
        self.nodeid = f"tests/{place}::{name}" + (f"[{words}]" if params else "")
        self.is_marked = is_marked
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> object:
        return True if self.is_marked and name == "slow" else None


def kept(*items: Item) -> list[str]:
    out = fast_loop.slow_ones(items, TESTS)  # type: ignore[arg-type]  # as much as it asks for
    return [item.nodeid.partition("::")[2] for item in items if item not in out]


@pytest.mark.parametrize("places", [fast_loop.RULES, fast_loop.COSTLY, fast_loop.ON_DEVICE])
def test_what_is_listed_is_there_and_once(places: tuple[str, ...]) -> None:
    assert [place for place in places if not (TESTS / place).exists()] == []
    assert list(places) == sorted(set(places))


def test_directories_and_files() -> None:
    slow = {
        place
        for place in (
            "unit/ir/test_printer.py",
            "conformance/test_operators.py",
            "e2e/test_semantics_rows.py",
            "property/test_programs.py",
            "protocol/test_model.py",
            "cuda/test_faults.py",
        )
        if fast_loop.is_slow(Path(place))
    }
    assert slow == {"property/test_programs.py", "protocol/test_model.py", "cuda/test_faults.py"}


def test_few_tests_of_costly_files_run() -> None:
    for place, names in (("e2e/test_halos.py", "a"), ("unit/kernels/test_library.py", "ad")):
        items = [Item(place, name, k=k) for name in "abcd" for k in range(3)]
        assert kept(*items) == [f"{name}[0]" for name in names]
        assert kept(*(Item(place, name) for name in "abcd")) == list(names)
    for place in ("e2e/test_semantics_rows.py", "unit/ir/test_printer.py"):
        assert kept(*(Item(place, name) for name in "abcd")) == list("abcd")


def test_of_each_rule_a_test_runs_where_few_of_its_file_do(monkeypatch: pytest.MonkeyPatch) -> None:
    halos, library = "e2e/test_halos.py", "unit/kernels/test_library.py"
    of_halos = (f"{halos}::test_c", f"{halos}::test_d")
    rows = (of_halos, (f"{library}::test_b",), ("e2e/gone.py::test_it",))
    monkeypatch.setattr(fast_loop, "rows", lambda: rows)
    four = [Item(halos, f"test_{name}", k=k) for name in "abcd" for k in range(3)]
    assert kept(*four) == ["test_c[0]"], "in place of the first"
    marked = [Item(halos, "test_c", is_marked=True), *(Item(halos, f"test_{n}") for n in "abd")]
    assert kept(*marked) == ["test_c", "test_d"], "the next that the row names"
    assert kept(*(Item(library, f"test_{name}") for name in "abcd")) == [
        "test_a", "test_b", "test_d",
    ]  # fmt: skip


def test_rules_are_those_of_the_page() -> None:
    named = [test for row in fast_loop.rows() for test in row]
    assert len(fast_loop.rows()) > 200
    assert "unit/runtime/test_fusion_state.py::test_start_submit_complete" in named
    assert fast_loop.of_rows(named) == {row[0] for row in fast_loop.rows()}


def test_of_many_sets_of_parameters_two_run() -> None:
    items = [Item("unit/ir/test_printer.py", "test_it", k=k) for k in range(11)]
    assert kept(*items) == ["test_it[0]", "test_it[10]"]
    assert kept(*items[:2]) == ["test_it[0]", "test_it[1]"]
    assert fast_loop.spread(list(range(11)), 3) == [0, 5, 10]
    alone = [Item("unit/ir/test_printer.py", name) for name in "abcde"]
    assert kept(*alone) == list("abcde")


def test_those_that_are_marked_do_not_count() -> None:
    marked = [Item("unit/ir/test_printer.py", "test_it", is_marked=True, k=k) for k in range(9)]
    others = [Item("unit/ir/test_printer.py", "test_it", k=k) for k in range(9, 11)]
    assert kept(*others) == kept(*marked, *others)[-2:]


@pytest.mark.parametrize("name", ["target", "queue"])
def test_the_reference_backend_and_tables_on_the_device(name: str) -> None:
    targets = ("reference", "far", "sycl", "cuda", "dpex", None)
    elsewhere = [Item("conformance/test_lists.py", "f", **{name: each}) for each in targets]
    assert kept(*elsewhere) == ["f[reference]"]
    tables = [
        Item("conformance/test_values.py", "f", **{name: each, "k": k})
        for each in targets
        for k in range(4)
    ]
    wanted = [f"f[{each}-{k}]" for each in ("reference", "sycl") for k in (0, 3)]
    assert kept(*tables) == wanted


def test_bytecode_is_kept_apart_where_none_is_to_be_written(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "one_module.py").write_text("VALUE = 3\n", encoding="utf-8")
    script = """
import subprocess, sys
from pathlib import Path
from tests.bytecode import keep_bytecode
keep_bytecode(Path(sys.argv[1]))
child = [sys.executable, "-c", "import one_module, sys; print(one_module.__cached__)"]
subprocess.run(child, check=True)
"""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((str(TESTS.parent), str(tmp_path / "sources"))),
    }
    environment.pop("PYTHONPYCACHEPREFIX", None)
    command = [sys.executable, "-c", script, str(tmp_path / "bytecode")]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    written = Path(said.stdout.strip())
    assert written.is_file() and written.is_relative_to(tmp_path / "bytecode")
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["one_module.py"]


def test_files_that_take_little_are_one_sum() -> None:
    seconds = Counter({"a": 0.25, "b": 3.0, "c": 0.125, "d": 1.0})
    wanted = ["     4.4 in all", "     3.0 b", "     1.0 d", "     0.4 2 others"]
    assert processor_seconds.lines(seconds) == wanted
