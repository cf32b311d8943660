"""The snippets of the guide's page on numba-dpex, and its names of benchmark cases."""

from __future__ import annotations

import re

import pytest

from fusionq.benchmarks.baselines.dpex import runs_on_dpex
from fusionq.benchmarks.cases import CASES
from tests.e2e import test_docs_snippets as docs

pytest.importorskip("numba_dpex", exc_type=ModuleNotFoundError)
PAGE = docs.ROOT / "docs" / "guide" / "numba-dpex.md"


def test_the_snippets(tmp_path, monkeypatch):
    docs.test_python_snippets(PAGE, tmp_path, monkeypatch)


def test_the_benchmark_has_its_cases():
    (found,) = re.findall(r"^fusionq bench (.*) --dpex-python", PAGE.read_text(), re.MULTILINE)
    assert found.split() == [name for name, case in CASES.items() if runs_on_dpex(case)]
