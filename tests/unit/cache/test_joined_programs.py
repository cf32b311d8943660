"""Kernels of one list as one program: they are built at once, compute what they compute alone, and
come back from disk with one binary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.sycl import binary, program
from fusionq.codegen.joined_source import joined, may_be_joined
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from tests.unit.cache.conftest import forget
from tests.unit.runtime.conftest import has_sycl

N = 4096


@fq.kernel
def clamped(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[max(i - 1, 0)] + a[min(i + 1, a.shape[0] - 1)]


@fq.kernel
def rounded(item: fq.Item, a, out):
    i = item.get_id(0)
    clamped = np.exp(a[i]) // 3
    clamped_0 = max(i - 2, 0)
    out[i] = clamped + a[clamped_0]


@fq.kernel
def summed(item: fq.NdItem, a, out):
    total = fq.reduce_over_group(item.get_group(), a[item.get_global_id(0)], "add")
    out[item.get_global_id(0)] = total


def others() -> Any:
    """A kernel of the same name as one of those above, that computes something else."""

    @fq.kernel
    def clamped(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[max(i - 3, 0)] * 2

    return clamped


STEPS = ((clamped, N), (rounded, N), (others(), N), (summed, fq.NdRange(N, 64)))


@pytest.fixture
def sycl(monkeypatch: pytest.MonkeyPatch) -> Iterator[fq.FusionQueue]:
    if not has_sycl():
        pytest.skip("no SYCL device")
    monkeypatch.setenv("FUSIONQ_ADAPT", "0")
    with fq.FusionQueue() as queue:
        yield queue


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the device's compiler got."""
    found: list[str] = []
    real = program.load_dpctl

    def load() -> Any:
        native = real().program

        def create(queue: Any, text: str, options: str) -> Any:
            found.append(text)
            return native.create_program_from_source(queue, text, options)

        refused = native.SyclProgramCompilationError
        return SimpleNamespace(
            program=SimpleNamespace(
                create_program_from_source=create, SyclProgramCompilationError=refused
            )
        )

    monkeypatch.setattr(program, "load_dpctl", load)
    return found


def results(queue: fq.FusionQueue, strategy: Any = "auto") -> list[np.ndarray]:
    """What the steps make of the same numbers, each by itself."""
    a = fq.Buffer(np.random.default_rng(1).random(N, dtype=np.float32) * 7)
    outs = [fq.Buffer(N, np.float32) for _ in STEPS]

    def submit() -> None:
        for (kernel, space), out in zip(STEPS, outs, strict=True):
            queue.submit(kernel, space, a, out)

    if strategy is None:
        submit()
    else:
        with fq.fusion(queue, strategy=strategy):
            submit()
    return [out.numpy().copy() for out in outs]


def equal(some: list[np.ndarray], others: list[np.ndarray]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(some, others, strict=True))


def test_kernels_of_a_list_are_one_program(
    sycl: fq.FusionQueue, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = results(sycl, "unfused")
    assert [text.count("__kernel") for text in texts] == [3, 1]  # with a barrier: by itself
    forget()
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    assert equal(found, results(sycl, None))
    assert [text.count("__kernel") for text in texts[2:]] == [1, 1, 1, 1]


def test_a_list_that_there_is_no_time_to_plan_for_is_built_at_once(
    sycl: fq.FusionQueue, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0")
    found = results(sycl)
    report = sycl.last_report
    assert report is not None and report.strategy == "unfused"
    assert [text.count("__kernel") for text in texts] == [3, 1]
    forget()
    assert equal(found, results(sycl))
    assert len(texts) == 2


def test_one_binary_serves_all(
    sycl: fq.FusionQueue, texts: list[str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = results(sycl, "unfused")
    assert len(list(directory.glob("v2/*/*.binary"))) == 1
    assert len(list(directory.glob("v2/*/*.program"))) == 4
    forget()
    binary._latest.clear()
    made = []
    real = program.kernel_from_binary

    def counted(*arguments: Any) -> Any:
        before = list(binary._latest)
        kernel = real(*arguments)
        made.append(binary._latest != before or not before)
        return kernel

    monkeypatch.setattr(program, "kernel_from_binary", counted)
    assert equal(found, results(sycl, "unfused"))
    assert len(texts) == 2 and made.count(True) <= 2 and len(made) == 4


@pytest.mark.parametrize("what", ["gone", "damaged"])
def test_without_their_binary_they_are_built_again(
    sycl: fq.FusionQueue, texts: list[str], directory: Path, what: str
) -> None:
    found = results(sycl, "unfused")
    (path,) = directory.glob("v2/*/*.binary")
    path.unlink() if what == "gone" else path.write_bytes(b"no entry")
    binary._latest.clear()
    forget()
    assert equal(found, results(sycl, "unfused"))
    assert [text.count("__kernel") for text in texts] == [3, 1, 3]
    forget()
    assert equal(found, results(sycl, "unfused"))
    assert len(texts) == 3


def test_one_that_cannot_be_built_leaves_the_others(
    sycl: fq.FusionQueue, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = results(sycl, "unfused")
    forget()
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    del texts[:]
    real = joined

    def broken(sources: Any) -> Any:
        text, names = real(sources)
        return text + "\nan error", names

    monkeypatch.setattr("fusionq.codegen.joined_source.joined", broken)
    assert equal(expected, results(sycl, "unfused"))
    assert [text.count("__kernel") for text in texts] == [3, 1, 1, 1, 1]


def test_names_of_one_text(queue: fq.FusionQueue) -> None:
    """A local variable may have the name of another kernel, helpers of two kernels are two."""
    a, out = (fq.Buffer(N, np.float32) for _ in range(2))
    kernels = []
    for kernel, space in STEPS:
        with fq.fusion(queue, strategy="unfused") as fusion:
            queue.submit(kernel, space, a, out)
        (stage,) = fusion.report.plan.stages
        kernels.append(stage.kernel)
    assert [may_be_joined(kernel) for kernel in kernels] == [True, True, True, False]
    target = queue._state.launcher.backend.target
    sources = [generate(kernel, "strict", target, OPENCL_C) for kernel in kernels[:3]]
    text, names = joined(sources)
    assert names == ("fq_0_clamped", "fq_1_rounded", "fq_2_clamped")
    for number in range(3):
        assert f"fq_pymax_i64_{number}(long" in text
    assert "fq_pymax_i64(" not in text
