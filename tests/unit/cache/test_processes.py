"""Real processes: what a second one need not import, and many at once in one directory."""

from __future__ import annotations

import json
import linecache
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusionq.cache.disk import DiskStore
from tests.in_turn import is_whole
from tests.unit.cache.conftest import forget
from tests.unit.runtime.conftest import has_sycl

SCRIPT = """
import json, sys, time
import numpy as np
import fusionq as fq

C = {constant}


def helper(x):
    return x * C


@fq.kernel
def mul(item, a, b, out):
    i = item.get_id(0)
    out[i] = helper(a[i] * b[i])


@fq.kernel
def sub(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i + {offset}]


def main():
    target, n, rounds = (None if sys.argv[1] == "sycl" else sys.argv[1]), *map(int, sys.argv[2:4])
    queue = fq.FusionQueue(target)
    found = []
    for r in range(rounds):
        dtype = ("f4", "i8", "i2")[r % 3]
        a, b = (fq.Buffer(np.arange(n).astype(dtype) + k) for k in (1, 2))
        tmp, out = fq.Buffer(n, dtype, promote_private=True), fq.Buffer(np.zeros(n, dtype))
        try:
            with fq.fusion(queue) as f:
                queue.submit(mul, n, a, b, tmp)
                queue.submit(sub, n - 1, tmp, a, out)
        except fq.ArgumentError as error:
            found.append("ArgumentError: " + str(error).splitlines()[0])
            continue
        f.event.wait()
        x = np.arange(n).astype(dtype)
        right = ((x + 1) * (x + 2) * C).astype(dtype) - (x + 1 + {offset})
        assert np.array_equal(out.numpy()[:-1], right[:-1]), (dtype, out.numpy(), right)
        found.append(f.report.cache)
    modules = sorted(name for name in sys.modules if name.startswith(("fusionq", "islpy")))
    report = f.report.to_dict()
    del report["cache"], report["timings_seconds"]
    print(json.dumps([found, modules, report]))


main()
"""

NOT_NEEDED = {
    "islpy",
    "fusionq.analysis.access",
    "fusionq.analysis.dependence",
    "fusionq.analysis.list_analysis",
    "fusionq.codegen.kernel_source",
    "fusionq.codegen.expressions",
    "fusionq.codegen.opencl",
    "fusionq.frontend.expressions",
    "fusionq.frontend.lowering",
    "fusionq.frontend.statements",
    "fusionq.passes.fuse",
    "fusionq.passes.pipeline",
    "fusionq.planning.planner",
    "fusionq.planning.submission_check",
    "fusionq.planning.stages",
}
"""What parses, analyses, plans and generates code."""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write_script(tmp_path / "script.py")


def write_script(path: Path, constant: object = 2, offset: int = 0) -> Path:
    text = SCRIPT.replace("{constant}", repr(constant)).replace("{offset}", str(offset))
    path.write_text(text)
    return path


def start(script: Path, target: str | None, n: int = 50, rounds: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, str(script), target or "sycl", str(n), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[list[str], set[str], dict[str, Any]]:
    """The outcomes, the modules, the last report."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert err == ""
    found, modules, report = json.loads(out)
    return found, set(modules), report


def run_script(
    script: Path, target: str | None, n: int = 50, rounds: int = 1
) -> tuple[list[str], set[str], dict[str, Any]]:
    return finish(start(script, target, n, rounds))


@pytest.mark.slow
@pytest.mark.one_backend
def test_a_second_process_does_not_even_import_the_compiler(
    script: Path, target: str | None
) -> None:
    cold, modules, report = run_script(script, target)
    assert cold == ["miss"]
    needed = {name for name in NOT_NEEDED if target is None or "codegen" not in name}
    assert needed <= modules
    warm, modules, warm_report = run_script(script, target)
    assert warm == ["disk"]
    assert not NOT_NEEDED & modules
    assert warm_report == report
    larger, modules, _ = run_script(script, target, n=70)
    assert larger == ["disk"]
    assert not NOT_NEEDED & modules


SUMS = """
@fq.kernel
def mul(item, a, b, out):
    i = item.get_global_id(0)
    total = fq.reduce_over_group(item.get_group(), a[i] * b[i], "add")
    if item.get_local_id(0) == 0:
        out[i] = total


def main():
    queue = fq.FusionQueue(None if sys.argv[1] == "sycl" else sys.argv[1])
    a, out = fq.Buffer(np.arange(32, dtype="f4")), fq.Buffer(np.zeros(32, "f4"))
    with fq.fusion(queue) as f:
        queue.submit(mul, fq.NdRange(32, 16), a, a, out)
        queue.submit(mul, fq.NdRange(32, 16), out, a, out)
    f.event.wait()
    modules = sorted(name for name in sys.modules if name.startswith(("fusionq", "islpy")))
    print(json.dumps([[f.report.cache, *out.numpy()[::16].tolist()], modules, {}]))


main()
"""


@pytest.mark.slow
@pytest.mark.one_backend
def test_the_local_memory_of_group_functions_is_known_in_a_second_process(
    tmp_path: Path, target: str | None
) -> None:
    """It takes the kernel to find out."""
    script = tmp_path / "sums.py"
    script.write_text(SCRIPT.partition("@fq.kernel")[0].format(constant=2) + SUMS)
    (cold, *values), _, _ = run_script(script, target)
    (warm, *again), modules, _ = run_script(script, target)
    assert (cold, warm) == ("miss", "disk")
    assert again == values
    assert not NOT_NEEDED & modules


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Run a script in this process, which has forgotten all but what is on disk: the outcomes."""

    def run(script: Path, target: str, n: int = 50) -> list[str]:
        forget()
        linecache.clearcache()
        monkeypatch.setattr(sys, "argv", [str(script), target, str(n), "1"])
        runpy.run_path(str(script), run_name="__main__")
        found: list[str] = json.loads(capsys.readouterr().out)[0]
        return found

    return run


def test_what_changed_in_the_file_counts(
    script: Path, run_here: Callable[..., list[str]]
) -> None:
    """Constants, helpers, the kernels themselves; and what did not change is found again."""
    assert run_here(script, "reference") == ["miss"]
    write_script(script, constant=3)
    assert run_here(script, "reference") == ["miss"]
    write_script(script, constant=3.0)
    assert run_here(script, "reference") == ["miss"]
    script.write_text(script.read_text().replace("return x * C", "return C * x"))
    assert run_here(script, "reference") == ["miss"]
    script.write_text("# another line\n\n" + script.read_text().replace("time", "os"))
    assert run_here(script, "reference") == ["disk"]
    write_script(script)
    assert run_here(script, "reference") == ["disk"]
    elsewhere = script.parent / "elsewhere" / "renamed.py"
    elsewhere.parent.mkdir()
    script.rename(elsewhere)
    assert run_here(elsewhere, "reference") == ["disk"]


def test_an_access_outside_is_refused_in_every_process(
    script: Path, run_here: Callable[..., list[str]]
) -> None:
    write_script(script, offset=1)
    assert run_here(script, "reference", n=50) == ["miss"]
    assert run_here(script, "reference", n=51) == ["disk"]
    assert run_here(script, "reference", n=50) == ["disk"]
    write_script(script, offset=2)
    for _ in range(2):
        (outcome,) = run_here(script, "reference")
        assert outcome.startswith("ArgumentError")
        assert str(script) in outcome


PROCESSES = 4 if is_whole() else 3


@pytest.mark.slow
@pytest.mark.one_backend
def test_many_processes_at_once(script: Path, target: str | None, directory: Path) -> None:
    """All begin with nothing, compile the same, write the same entries; all are right."""
    processes = [start(script, target, rounds=6) for _ in range(3 if is_whole() else 2)]
    results = [finish(process) for process in processes]
    for outcomes, _, report in results:
        assert set(outcomes) <= {"miss", "disk", "memory"}
        assert outcomes[3:] == ["memory"] * 3
        assert report == results[0][2]
    assert run_script(script, target, n=99, rounds=3)[0] == ["disk"] * 3
    assert [path for path in directory.rglob(".*") if path.is_file()] == []


HAMMER = """
import hashlib, os, random, sys, warnings
from pathlib import Path
from fusionq.cache.disk import DiskStore

warnings.simplefilter("error")
directory, seed, max_bytes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store, choose = DiskStore(directory, max_bytes), random.Random(seed)
KEYS = [hashlib.sha256(str(k).encode()).hexdigest() for k in range(60)]


def contents(key, number):
    return key.encode() * (1 + int(key[:2], 16) % 8) + str(number).encode()


found = 0
for step in range(int(sys.argv[4])):
    key = choose.choice(KEYS)
    what = choose.random()
    if what < 0.4:
        store.put(key, "plan", contents(key, choose.randrange(5)))
    elif what < 0.9 or seed:
        got = store.get(key, "plan")
        assert got is None or got in [contents(key, k) for k in range(5)], (key, got)
        found += got is not None
    else:  # the first process also spoils files
        path = directory / "v2" / key[0] / f"{key}.plan"
        try:
            data = path.read_bytes()
            spoiled = choose.choice([b"", data[:-1], b"x" * 50, data[:100] + b"\\0" + data[101:]])
            if choose.random() < 0.5:
                path.write_bytes(spoiled)
            elif choose.random() < 0.9:
                path.unlink()
            else:
                store.clear()
        except OSError:
            pass
    if step % 100 == 0:
        store.usage()
print(found)
"""


@pytest.mark.slow
@pytest.mark.parametrize("max_bytes", [16 * 4000, 1 << 22], ids=["with eviction", "without"])
def test_many_processes_hammer_one_directory(directory: Path, max_bytes: int) -> None:
    """They put, get, evict, clear, truncate and remove the same entries: nobody fails, and nobody
    ever reads anything that was not put whole under that key."""
    steps = "700" if is_whole() else "250"
    command = [sys.executable, "-c", HAMMER, str(directory)]
    processes = [
        subprocess.Popen(
            [*command, str(seed), str(max_bytes), steps],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        assert int(out) > int(steps) // 14
    assert [path for path in directory.rglob(".*") if path.is_file()] == []
    held = sum(used.nbytes for used in DiskStore(directory, max_bytes).usage().values())
    assert 0 < held <= max_bytes * (1 + PROCESSES / 8)


KILLED = """
import os, sys
from pathlib import Path
from fusionq.cache.disk import DiskStore

os.replace = lambda *_: os._exit(3)  # the process ends between writing and moving
DiskStore(Path(sys.argv[1]), 1 << 20).put("a" * 64, "plan", b"x")
"""


def test_a_process_that_ends_while_it_writes(directory: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(directory)])
    assert done.returncode == 3
    (left,) = [path for path in directory.rglob("*") if path.is_file()]
    store = DiskStore(directory, 1 << 20)
    assert store.get("a" * 64, "plan") is None
    assert store.usage() == {}
    os.utime(left, (1, 1))
    store.put("a" * 64, "plan", b"again")
    assert store.get("a" * 64, "plan") == b"again"
    assert not left.exists()


def test_processes_of_several_devices_share_a_directory(
    script: Path, run_here: Callable[..., list[str]]
) -> None:
    if not has_sycl():
        pytest.skip("no SYCL device")
    assert run_here(script, "reference") == ["miss"]
    assert run_here(script, "sycl") == ["miss"]
    assert run_here(script, "reference") == ["disk"]
    assert run_here(script, "sycl") == ["disk"]
