"""Options and fixtures of the whole suite."""

from __future__ import annotations

import difflib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

GOLDEN = Path(__file__).parent / "golden"

MARKERS = {
    "unit": ["unit"],
    "unit/benchmarks": ["slow"],
    "unit/kernels": ["slow"],
    "conformance": ["conformance"],
    "e2e": ["e2e"],
    "property": ["property", "slow"],
    "protocol": ["protocol", "slow"],
    "dpex": ["dpex", "slow"],
}
"""The markers of the tests in each directory and below it; pyproject.toml says what they mean.
Single tests elsewhere are marked as slow where they stand."""

EXAMPLES = {"dev": 10, "ci": 100, "nightly": 2800}
"""Profiles of Hypothesis: how many of a hundred examples that a test asks for it gets."""
for _profile, _percent in EXAMPLES.items():
    settings.register_profile(
        _profile,
        max_examples=_percent,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the texts that tests produce to tests/golden instead of comparing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Without ``--hypothesis-profile`` the fast loop takes ``dev``, all other runs ``ci``."""
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("dev" if "not slow" in config.option.markexpr else "ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(Path(__file__).parent)
        for directory, markers in MARKERS.items():
            if place.is_relative_to(directory):
                for marker in markers:
                    item.add_marker(marker)


def pytest_collection_finish() -> None:
    """Many tests collect garbage to see what dies.  What the suite itself is made of does not,
    and would cost each of them a walk through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_disk_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The suite neither reads nor fills the user's disk cache; child processes neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONQ_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        for name in ("FUSIONQ_CACHE", "FUSIONQ_CACHE_SIZE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text must be that of ``tests/golden/name``."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no {path}; run pytest --update-golden and review the file")
        wanted = path.read_text(encoding="utf-8")
        if text != wanted:
            lines = (wanted.splitlines(), text.splitlines())
            difference = "\n".join(difflib.unified_diff(*lines, "golden", "now", lineterm=""))
            pytest.fail(f"{name} changed; --update-golden accepts it\n{difference}")

    return check
