from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.cache import disk
from fusionq.cache.disk import DiskStore
from fusionq.cache.plan_cache import PLANS
from fusionq.submission import admission
from tests.unit.runtime.conftest import default_runtime


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The disk cache's directory: empty, and switched on; what the process knows is forgotten."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(folder))
    monkeypatch.delenv("FUSIONQ_CACHE", raising=False)
    monkeypatch.delenv("FUSIONQ_CACHE_SIZE", raising=False)
    forget()
    yield folder
    fq.set_disk_cache()
    forget()


def forget(queue: fq.FusionQueue | None = None) -> None:
    """Forget all but what is on disk, as a new process of the same code; what the ``queue`` keeps,
    too, whose launches serve lists of their structure."""
    if queue is not None:
        queue._state.launcher.cache.clear()
    PLANS.clear()
    admission._checked.clear()
    disk._store.cache_clear()
    disk._warn.cache_clear()


@pytest.fixture(params=["reference", "sycl"])
def target(request: pytest.FixtureRequest) -> str | None:
    """What makes a queue: the reference backend, or the default device, SYCL's or a GPU."""
    if request.param == "sycl" and default_runtime() is None:
        pytest.skip("no SYCL device and no GPU")
    return None if request.param == "sycl" else "reference"


@pytest.fixture
def queue() -> Iterator[fq.FusionQueue]:
    """A queue on the reference backend."""
    with fq.FusionQueue("reference") as made:
        yield made


@pytest.fixture
def store(directory: Path) -> DiskStore:
    """A store of 1 MiB in the directory."""
    return DiskStore(directory, 1 << 20)


@pytest.fixture
def no_warnings() -> Iterator[None]:
    """Every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and from then on parsing a kernel into IR, analysing, planning, checking accesses
    and generating code fail the test."""

    def watch() -> None:
        from fusionq.analysis import list_analysis
        from fusionq.codegen import kernel_source
        from fusionq.frontend import lowering
        from fusionq.planning import planner, submission_check

        def forbidden(*arguments: object) -> object:
            raise AssertionError("this should have come from the disk cache")

        monkeypatch.setattr(lowering, "lower_kernel", forbidden)
        monkeypatch.setattr(list_analysis.ListAnalysis, "__init__", forbidden)
        monkeypatch.setattr(planner, "Planning", forbidden)
        monkeypatch.setattr(submission_check, "check_submission", forbidden)
        monkeypatch.setattr(kernel_source, "generate", forbidden)

    return watch
