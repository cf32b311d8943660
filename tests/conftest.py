"""Options and fixtures of the whole suite."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the texts that tests produce to tests/golden instead of comparing",
    )


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
