"""What workers of xdist send of tests: what is printed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.few_reports import FewReports, _only_what_is_printed


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_of_what_passes_the_call_alone(when: str, outcome: str) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []
    send = _only_what_is_printed(lambda name, **given: sent.append((name, given)))
    report = {"when": when, "outcome": outcome}
    send("testreport", data=report)
    is_sent = when == "call" or outcome != "passed"
    assert sent == ([("testreport", {"data": report})] if is_sent else [])


def test_whatever_is_no_report_is_sent() -> None:
    sent: list[str] = []
    send = _only_what_is_printed(lambda name, **given: sent.append(name))
    send("collectreport", data={"outcome": "failed"})
    send("logfinish", nodeid="a", location=("b", 1, "c"))
    assert sent == ["collectreport", "logfinish"]


@pytest.mark.parametrize("asked", [{}, {"verbose": 1}, {"durations": 10}, {"xmlpath": "a.xml"}])
def test_all_are_sent_where_they_are_asked_for(asked: dict[str, Any]) -> None:
    option = SimpleNamespace(**({"verbose": 0, "durations": None, "xmlpath": None} | asked))
    worker = SimpleNamespace(sendevent=lambda name, **given: None)
    before = worker.sendevent
    manager = SimpleNamespace(get_plugins=lambda: {SimpleNamespace: None, 1: worker}.values())
    config: Any = SimpleNamespace(option=option, pluginmanager=manager)
    FewReports(config).pytest_sessionstart(SimpleNamespace(config=config))  # type: ignore[arg-type]  # a Session
    assert (worker.sendevent is before) == bool(asked)
