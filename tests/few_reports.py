"""What workers of xdist tell of tests that pass: half of it, the half that is printed."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

NEEDED_FOR = ("durations", "xmlpath", "reportlog")
"""Options of what is made of all reports."""


class FewReports:
    """A worker sends three reports for each test, and the controller, which reads each of them in
    Python, hands it to all plugins: ten seconds of a processor for twelve thousand tests.  Those of
    fixtures that were made and taken down without an error say nothing that is printed; nor do the
    names that ``-k`` would find, of a test that has passed."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """xdist's own plugin, which sends them, is registered behind this one."""
        option = session.config.option
        if any(getattr(option, name, None) for name in NEEDED_FOR) or option.verbose > 0:
            return
        for plugin in session.config.pluginmanager.get_plugins():
            if hasattr(plugin, "sendevent"):
                plugin.sendevent = _only_what_is_printed(plugin.sendevent)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, dict[str, Any], dict[str, Any]]:
        data = yield
        if report.passed:
            data["keywords"] = {}
        return data


def _only_what_is_printed(send: Any) -> Any:
    def sendevent(name: str, **given: Any) -> None:
        report = given["data"] if name == "testreport" else None
        if report is None or report["when"] == "call" or report["outcome"] != "passed":
            send(name, **given)

    return sendevent
