"""``--processor-seconds``: what the tests of each file take of a processor.  Unlike durations these
seconds mean the same while other programs run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

COLLECTION = "start and collection"
LEAST = 0.5
"""Files that take fewer seconds are printed as one sum."""


class ProcessorSeconds:
    """A plugin that counts them by file, with those of child processes that have ended, in the
    workers of xdist too."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        start = processor_seconds()
        result = yield
        self.seconds[item.nodeid.partition("::")[0]] += processor_seconds() - start
        return result

    def pytest_collection_finish(self) -> None:
        self.seconds[COLLECTION] += processor_seconds()

    def pytest_sessionfinish(self) -> None:
        output: dict[str, Any] | None = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["processor seconds"] = dict(self.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist has ended."""
        self.seconds.update(getattr(node, "workeroutput", {}).get("processor seconds", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor seconds")
        for line in lines(self.seconds):
            terminalreporter.write_line(line)


def processor_seconds() -> float:
    """Of this process and its children that have ended, so far."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def lines(seconds: Counter[str]) -> list[str]:
    """The sum, then files, the costliest first, then the others together."""
    shown = {name: taken for name, taken in seconds.most_common() if taken >= LEAST}
    rest = sum(seconds.values()) - sum(shown.values())
    others = f"{rest:8.1f} {len(seconds) - len(shown)} others"
    each = [f"{taken:8.1f} {name}" for name, taken in shown.items()]
    return [f"{sum(seconds.values()):8.1f} in all", *each, others]
