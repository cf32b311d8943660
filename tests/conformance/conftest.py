"""The backends that every test of this directory is run on, and how tests use them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.backends.registry import backend_for
from fusionq.base import entry_points
from fusionq.memory.fusing_queues import QUEUES

TARGETS = ("reference", "far", "sycl", "cuda", "dpex")
"""What queues are made for.  ``far`` is a package of its own, see ``far_package``."""
PACKAGES = {"sycl": "dpctl", "cuda": "cuda", "dpex": "numba_dpex"}
"""What a target needs that an extra installs."""

PRINTED = ("sycl", "cuda")
"""Those whose source ``fusionq.codegen`` prints; numba-dpex compiles kernels as they are."""


@pytest.fixture(scope="session", autouse=True)
def far_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The metadata of an installed package that registers ``tests.conformance.far_memory``."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "fusionq_far_memory-1.0.dist-info"
    info.mkdir()
    _write(info / "METADATA", "Metadata-Version: 2.1\nName: fusionq-far-memory\nVersion: 1.0\n")
    _write(
        info / "entry_points.txt",
        "[fusionq.backends]\nfar = tests.conformance.far_memory:PLATFORM\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        entry_points._of_other_packages.cache_clear()
        yield
    entry_points._of_other_packages.cache_clear()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="session", params=TARGETS)
def target(request: pytest.FixtureRequest, far_package: None) -> str:
    """Each target in turn; skipped with the reason where its device is missing."""
    name: str = request.param
    package = PACKAGES.get(name)
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    try:
        fq.FusionQueue(name).close()
    except fq.DeviceError as error:
        pytest.skip(f"{name}: {str(error).splitlines()[0]}")
    return name


@pytest.fixture
def queue(target: str) -> Iterator[fq.FusionQueue]:
    """A queue on the target."""
    made = fq.FusionQueue(target)
    yield made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        made.close()
    assert not QUEUES


@pytest.fixture(scope="session")
def backend(target: str) -> Backend:
    """A backend on the target."""
    return backend_for(target)


@pytest.fixture
def printed(target: str) -> None:
    """What tests of how loops are rewritten use: only printed source has them."""
    if target not in PRINTED:
        pytest.skip("fusionq.codegen prints no source for it")


@pytest.fixture
def group_functions(backend: Backend) -> None:
    """What tests of functions of groups use, where there are any."""
    if not backend.abilities.group_functions:
        pytest.skip("the backend has no group functions")
