"""Runs with damaged entries in the disk cache: they are as if the entries were not there."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

import fusionq as fq
from fusionq.cache import user_key
from tests.property.damaged_entries import Case, apply
from tests.unit.cache.conftest import forget
from tests.unit.cache.programs import BASE, COPY, SECOND, Program, changed, run, without_cache

ROTATED = SECOND.replace("a[i]", "a[(i + 5) % 12]")
GROUPS = ROTATED.replace("get_id", "get_global_id")
PROGRAMS: tuple[Program, ...] = (
    changed(tmp_flags={"promote_private": True}, shape=(9,)),
    changed(second=SECOND.replace("a[i]", "a[i % 7]")),
    changed(second=ROTATED, options={"strategy": "megakernel"}),
    changed(first=COPY.replace("get_id", "get_global_id"), second=GROUPS, local=(4,)),
    BASE,
)
"""Fused with a promotion, under a condition, a persistent kernel, launches, fused."""
SECONDS = 60
"""Of the process's computing, after which a run has no end; a process may be stopped meanwhile."""


class DamagedRuns:
    """Runs on one queue with a cache of their own in ``directory``, made anew for each case."""

    def __init__(self, directory: Path, queue: fq.FusionQueue) -> None:
        self._queue = queue
        self._whole, self._cache = directory / "whole", directory / "cache"
        self._data = directory / "data"
        self._directory = directory
        self._expected = [without_cache(program, queue).out for program in PROGRAMS]
        with self._settings(self._whole / "cache"):
            for program in PROGRAMS:
                run(program, queue)
        shutil.copytree(self._data, self._whole / "data")

    def run(self, case: Case) -> tuple[bool, list[tuple[str, bool]]]:
        """Run all programs after the damage.  Whether each must be as before, and for each where
        its plan came from, or ``error``, and whether its result is right."""
        with self._settings(self._cache):
            self._make_anew()
            same = apply(case, self._cache)
            forget()
            return same, [*map(self._run, PROGRAMS, self._expected)]

    def _run(self, program: Program, expected: Any) -> tuple[str, bool]:
        try:
            with _bounded():
                ran = run(program, self._queue)
        except fq.FusionqError:
            return "error", False
        return ran.cache, np.array_equal(ran.out, expected)

    @contextmanager
    def _settings(self, cache: Path) -> Iterator[None]:
        environment = {"FUSIONQ_CACHE_DIR": str(cache), "FUSIONQ_CACHE": "on"}
        try:
            with (
                mock.patch.dict(os.environ, environment),
                mock.patch.object(user_key, "_data_directory", lambda: self._data),
            ):
                user_key._key.cache_clear()
                forget()
                yield
        finally:
            user_key._key.cache_clear()
            forget()

    def _make_anew(self) -> None:
        for now in (self._cache, self._data):
            with suppress(FileNotFoundError):
                shutil.rmtree(now)
            shutil.copytree(self._whole / now.name, now)
        user_key._key.cache_clear()


def check_damaged(runs: DamagedRuns, case: Case) -> str:
    """Each result is right, or where an entry has been signed anew perhaps another, or an error of
    fusionq's.  Where the plans came from."""
    same, results = runs.run(case)
    assert not same or all(right for _, right in results), results
    return ", ".join(sorted({cache for cache, _ in results}))


@contextmanager
def _bounded() -> Iterator[None]:
    """AssertionError where the block takes too long."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no end within {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
