"""Cases where the host does not see the device's memory; kernels by hand for a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.benchmarks.baselines.cuda import OPTIONS, as_cuda
from fusionq.benchmarks.case import Workload
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.gpu import is_gpu
from fusionq.benchmarks.runner import run_case
from fusionq.benchmarks.variants import Variant, own_variants
from tests.conformance.far_memory import PLATFORM

SIZE = 300
WITH_EXPRESSIONS = [name for name, case in CASES.items() if case.expression is not None]
WITH_RAW = [name for name, case in CASES.items() if any(b.raw for b in case.baselines)]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> fq.FusionQueue:
    """A queue whose memory the host does not see."""
    monkeypatch.setattr(registry, "backend_for", lambda target, profiling=False: far)
    far = PLATFORM.open(None, False)
    return fq.FusionQueue()


@pytest.mark.parametrize("name", ["seeds", "bias_gelu", "rms_norm"])
def test_variants_are_checked_where_the_host_does_not_see_memory(
    name: str, queue: fq.FusionQueue
) -> None:
    workload = Workload(CASES[name], SIZE, queue)
    assert not workload.shares_memory and not is_gpu(queue)
    for variant in own_variants(workload):
        if isinstance(variant, Variant):
            workload.spoil()
            with pytest.raises(AssertionError, match="wrong elements"):
                workload.check(bit_for_bit=False)
            workload.bits = None if CASES[name].tolerance else workload.expected
            variant.run()
            assert "NumPy" in workload.check(bit_for_bit=True)


@pytest.mark.parametrize("name", WITH_EXPRESSIONS)
def test_arithmetic_of_arrays_is_the_case(name: str, queue: fq.FusionQueue) -> None:
    workload = Workload(CASES[name], SIZE, queue)
    case = CASES[name]
    assert case.expression is not None
    with np.errstate(all="ignore"):
        found = case.expression(np, workload.host)
    np.testing.assert_allclose(found, workload.expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WITH_RAW)
def test_kernels_by_hand_compile_as_cuda(name: str) -> None:
    pytest.importorskip("cuda.bindings", reason="the extra cuda is not installed")
    from fusionq.backends.cuda.compiler import compiled

    for baseline in CASES[name].baselines:
        if baseline.raw is not None:
            code = compiled(as_cuda(baseline.raw.source), "sm_90", OPTIONS).code
            for kernel, _ in baseline.raw.launches:
                assert kernel.encode() in code


def test_a_case_runs_to_its_table(queue: fq.FusionQueue) -> None:
    case = CASES["seeds"]
    result = run_case(case, SIZE, queue, 1, lambda what, done, total: None)
    missing = {v.name for v in result.variants if v.timing is None}
    assert missing >= {baseline.name for baseline in case.baselines}
    assert {v.name for v in result.variants} - missing >= {"unfused", "fused, promoted"}
