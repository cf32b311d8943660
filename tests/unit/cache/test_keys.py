"""Names of entries: the same for the same, others for what differs, the same in every process."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache import keys
from fusionq.cache.keys import code_version, digest
from tests.unit.frontend.running import define


@dataclass(frozen=True)
class Part:
    number: int | float | None
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class OtherPart:
    number: int
    place: str = field(default="", compare=False)


DIFFERENT = [
    None, True, False, 0, 1, -1, 0.0, -0.0, 1.0, float("inf"), float("nan"), 0.1,
    math.nextafter(0.1, 1),
    "", "0", "None", "(0,)", "a,b", "'a','b'", (), (0,), ((0,),), (0, 0), ("a", "b"), ("a,b",),
    ((), ()), Part(0), Part(None), OtherPart(0), (Part(0),), "Part(0)",
]  # fmt: skip


def test_what_differs_has_another_name() -> None:
    names = [digest(value) for value in DIFFERENT]
    names += [digest(), digest(1, 2), digest((1, 2)), digest(12), digest((1,), 2)]
    assert len(set(names)) == len(names)
    assert all(len(name) == 64 and set(name) <= set("0123456789abcdef") for name in names)


def test_what_does_not_compare_does_not_count() -> None:
    assert digest(Part(1, "here")) == digest(Part(1, "there")) != digest(Part(2, "here"))


def test_one_object_in_several_places_is_as_equal_ones() -> None:
    part = Part(1)
    assert digest(part, (part, part)) == digest(Part(1), (Part(1), Part(1)))
    assert digest(part, (part, Part(2))) != digest(part, (part, part))


@pytest.mark.parametrize("value", [object(), len, [1], {1: 2}, {1}, b"x", np.arange(3), Part])
def test_what_may_read_differently_in_another_process_is_refused(value: object) -> None:
    for part in (value, (value,), Part(value)):  # type: ignore[arg-type]  # is what is tested
        with pytest.raises(TypeError):
            digest(part)


@pytest.mark.slow
def test_the_same_in_every_process() -> None:
    code = "from fusionq.cache.keys import digest; print(digest('x', (1, 2.5, None)))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == digest("x", (1, 2.5, None))


# ---------------------------------------------------------------------------- fusionq itself
def test_another_version_of_fusionq(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest("x")
    monkeypatch.setattr("fusionq.base.version.__version__", "0.0.0")
    code_version.cache_clear()
    assert digest("x") != before


def test_another_version_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest("x")
    monkeypatch.setattr(np, "__version__", "0.0.0")
    code_version.cache_clear()
    assert digest("x") != before


@pytest.mark.parametrize("change", ["edit", "touch", "add", "remove", "rename", "move"])
def test_changed_source_files(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fusionq"
    (package / "cache").mkdir(parents=True)
    (package / "cache" / "keys.py").write_text("")
    (package / "passes").mkdir()
    source = package / "passes" / "fuse.py"
    source.write_text("x = 1\n")
    os.utime(source, (1, 1))
    monkeypatch.setattr(keys, "__file__", str(package / "cache" / "keys.py"))

    def version() -> str:
        code_version.cache_clear()
        return code_version()

    before = version()
    assert version() == before
    (package / "notes.txt").write_text("no source")
    (package / "passes" / "__pycache__").mkdir()
    (package / "passes" / "__pycache__" / "fuse.py").write_text("")
    assert version() == before
    if change == "edit":
        source.write_text("x = 22\n")
        os.utime(source, (1, 1))
    elif change == "touch":
        os.utime(source, (2, 2))
    elif change == "add":
        (package / "passes" / "new.py").write_text("")
    elif change == "remove":
        source.unlink()
    elif change == "rename":
        source.rename(source.with_name("gues.py"))
    else:
        source.rename(package / "fuse.py")
    assert version() != before


def test_sources_that_cannot_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package inside a zip file, say: nothing is kept, nothing breaks."""
    monkeypatch.setattr(keys, "__file__", "/no/such/archive.zip/fusionq/cache/keys.py")
    code_version.cache_clear()
    with fq.FusionQueue("reference") as queue:
        out = fq.Buffer(np.zeros(3, np.int32))
        queue.submit(fq.kernel(define("def one(item, a):\n    a[item.get_id(0)] = 1\n")), 3, out)
        assert out.numpy().tolist() == [1, 1, 1]


# ------------------------------------------------------------------------------- kernels
def test_functions_of_one_name_are_told_apart() -> None:
    """Which of them each name stands for counts, not only which there are."""

    def factor(c):
        def helper(x):
            return x * c

        return helper

    text = (
        "def k(item, out):\n"
        "    i = item.get_id(0)\n"
        "    out[i] = f(1.0) + 10.0 * g(1.0) + 100.0 * h(1.0)\n"
    )
    one, two = factor(1.0), factor(2.0)
    out = fq.Buffer(1, np.float64)
    results, names = [], set()
    with fq.FusionQueue("reference") as queue:
        for f, g, h in ((one, two, one), (one, two, two), (two, one, one), (two, one, two)):
            kernel = fq.kernel(define(text, f=f, g=g, h=h))
            queue.submit(kernel, 1, out)
            results.append(float(out.numpy()[0]))
            names.add((kernel.fingerprint, kernel.text.digest))
    assert results == [121.0, 221.0, 112.0, 212.0]
    assert len(names) == 4
