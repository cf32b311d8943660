"""``fusionq cache``: what it says of the directory, and what it removes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fusionq as fq
from fusionq.base.units import format_bytes
from fusionq.cache.disk import DiskStore
from fusionq.cache.learned import Learned, LearnedCandidate, keep_learned
from fusionq.cache.plan_cache import PLANS
from fusionq.cli.main import app


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "the cache"
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", str(folder))
    monkeypatch.delenv("FUSIONQ_CACHE", raising=False)
    monkeypatch.delenv("FUSIONQ_CACHE_SIZE", raising=False)
    return folder


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, ["cache", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def fill(store: DiskStore) -> None:
    for number in range(3):
        store.put(f"{number:064x}", "plan", bytes(2000))
    store.put("f" * 64, "program", bytes(5000))


def row(out: str, kind: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith(kind)]
    return line.split()


def test_info_of_nothing(directory: Path) -> None:
    code, out, _ = run("info")
    assert code == 0
    assert f"directory: {directory}" in out
    assert "disk cache: on, at most 256 MiB" in out
    assert row(out, "all") == ["all", "0", "0", "B"]
    assert not directory.exists()


def test_info(directory: Path) -> None:
    fill(DiskStore(directory, 1 << 20))
    code, out, _ = run("info")
    assert code == 0
    assert row(out, "plan")[:4] == ["plan", "3", "6.29", "KiB"]
    assert row(out, "program")[:4] == ["program", "1", "5.03", "KiB"]
    assert row(out, "check")[:3] == ["check", "0", "0"]
    assert row(out, "all") == ["all", "4", "11.3", "KiB"]
    assert "\x1b" not in out
    assert "─" not in out  # piped: no rules


def test_info_shows_every_kind(directory: Path) -> None:
    DiskStore(directory, 1 << 20).put("0" * 64, "novelty", b"x")
    out = run("info")[1]
    assert row(out, "novelty")[1] == "1"
    assert row(out, "costs")[1] == "0"


def test_info_explains_code_that_kernels_share(directory: Path) -> None:
    DiskStore(directory, 1 << 20).put("0" * 64, "binary", b"x")
    assert row(run("info")[1], "binary")[-1] == "share"


def test_info_where_it_is_switched_off_or_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    monkeypatch.setenv("FUSIONQ_CACHE_SIZE", "1.5M")
    code, out, _ = run("info")
    assert code == 0
    assert "disk cache: off (FUSIONQ_CACHE), at most 1.50 MiB" in out


def test_clear(directory: Path) -> None:
    fill(DiskStore(directory, 1 << 20))
    (directory / "mine.txt").write_text("keep")
    code, out, _ = run("clear")
    assert code == 0
    assert out == f"removed 4 entries (11.3 KiB) from {directory}\n"
    assert DiskStore(directory, 1 << 20).usage() == {}
    assert (directory / "mine.txt").exists()
    assert run("clear")[1] == f"removed 0 entries (0 B) from {directory}\n"
    DiskStore(directory, 1 << 20).put("0" * 64, "plan", b"x")
    assert run("clear")[1].startswith("removed 1 entry (")


def test_clear_that_cannot(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    fill(DiskStore(directory, 1 << 20))

    def refuse(path: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    code, out, err = run("clear")
    assert (code, out) == (1, "")
    assert f"4 entries are still in {directory}" in err


def test_what_fusions_leave_there(directory: Path) -> None:
    PLANS.clear()

    @fq.kernel
    def left_in_the_cache(item: fq.Item, a):
        a[item.get_id(0)] = 1

    out = fq.Buffer(np.zeros(3))
    with fq.FusionQueue("reference") as queue, fq.fusion(queue):
        queue.submit(left_in_the_cache, 3, out)
    shown = run("info")[1]
    assert [row(shown, kind)[1] for kind in ("check", "plan", "program")] == ["1", "1", "0"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [((), "Usage"), (("look",), "look"), (("info", "x"), "x"), (("clear", "--all"), "--all")],
)
def test_bad_use_exits_with_2(arguments: tuple[str, ...], complaint: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert complaint in out + err


@pytest.mark.parametrize("command", ["info", "clear"])
def test_a_size_that_is_none(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE_SIZE", "much")
    code, _, err = run(command)
    assert code == 2
    assert "FUSIONQ_CACHE_SIZE='much'" in err


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (5 << 20, "5.00 MiB"),
        (3 << 29, "1.50 GiB"),
    ],
)
def test_sizes_for_people(nbytes: int, text: str) -> None:
    assert format_bytes(nbytes, binary=True) == text


def test_info_shows_what_was_learned(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not lists of which only the first strategy is known."""
    ready = LearnedCandidate("fused", "ready", "", (2e-3, 1.5e-3), 2)
    slower = LearnedCandidate("unfused", "slower", "", (4e-3,), 0)
    unseen = LearnedCandidate("sequence", "awaited", "", (), 0)
    both = (ready, slower, unseen)
    for number, one in enumerate((
        Learned("blur ×3", 4096, "a CPU", "unfused", "fused", 9, 0, 1, both),
        Learned("[odd], names", 12, "a CPU", "unfused", None, 3, 0, 0, (slower, unseen)),
        Learned("unknown", 99, "a CPU", "unfused", None, 0, 0, 0, (unseen,)),
    )):  # fmt: skip
        keep_learned(f"{number:064x}", one)
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run("info")
    assert code == 0
    lines = {line.split("  ")[0].strip(): line for line in out.splitlines()}
    assert "chosen" in out and "unknown" not in out
    assert "fused, compared again 2×, changed 1×" in lines["blur ×3"]
    assert "fused 1,500, unfused 4,000" in lines["blur ×3"]
    assert lines["blur ×3"].split()[-1] == "4,096"
    assert "not yet" in lines["[odd], names"] and "unfused 4,000" in lines["[odd], names"]
