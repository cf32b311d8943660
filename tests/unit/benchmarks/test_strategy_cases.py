"""The cases with dependences between work-groups: each strategy gives what the unfused run does,
bit for bit, and what NumPy does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import Strategy
from fusionq.benchmarks.case import ArraySpec, Case, HostArrays, Step, Workload
from fusionq.benchmarks.cases import CASES, stencils
from fusionq.benchmarks.runner import run_case
from fusionq.benchmarks.table import case_notes
from fusionq.benchmarks.variants import (
    STRATEGIES,
    MissingVariant,
    Variant,
    submit_chain,
    variants,
)
from fusionq.kernels import heat_1d, heat_2d, heat_3d
from tests.in_turn import one_in

STRATEGY_CASES = [name for name, case in CASES.items() if case.compare == "strategies"]
DEVICE_SIZE = 9001
"""Several work-groups, slabs and rows, none of them whole."""
DEVICE_SIZES = {"mlp": 7 * 512, "mlp_vector": 100, "transformer_block": 130}
DEVICE_CASES = [
    name for name in STRATEGY_CASES if not name.endswith("_in_cache") and name != "launch_bound"
]
"""Those in the cache differ from the others in their size and number of steps only; the one bound
by launches is 64 steps of a wave, which the corpus has on the device with fewer."""
LONGEST = 11
"""Steps of a stencil there: more than the deepest launch does."""
FEWER_STEPS = {
    "stencil_1d": stencils.heat("stencil_1d", heat_1d, stencils.heat_step_1d, (4096,), LONGEST),
    "stencil_2d": stencils.heat("stencil_2d", heat_2d, stencils.heat_step_2d, (64, 64), LONGEST),
    "stencil_3d": stencils.heat("stencil_3d", heat_3d, stencils.heat_step_3d, (16,) * 3, LONGEST),
}
SMALL: dict[str, tuple[Case, int]] = {
    "heat_1d": (stencils.heat("heat_1d", heat_1d, stencils.heat_step_1d, (40,), 5), 40),
    "heat_2d": (stencils.heat("heat_2d", heat_2d, stencils.heat_step_2d, (6, 6), 4), 36),
    "heat_3d": (stencils.heat("heat_3d", heat_3d, stencils.heat_step_3d, (4, 4, 4), 3), 64),
    **{
        name: (CASES[name], 40)
        for name in STRATEGY_CASES
        if CASES[name] not in stencils.CASES and name not in DEVICE_SIZES
    },
    "mlp": (CASES["mlp"], 6),
    "mlp_vector": (CASES["mlp_vector"], 6),
    "transformer_block": (CASES["transformer_block"], 4),
}
"""Cases and sizes for the interpreter."""


def check(
    case: Case, size: int, queue: fq.FusionQueue, strategies: Sequence[Strategy]
) -> None:
    """The unfused run, whose kernels the device's compiler takes as one program, and each
    strategy's, each against NumPy and all against the first; and each strategy ran, or the report
    says why it did not."""
    workload = Workload(case, size, queue)
    workload.spoil()
    chain = submit_chain(workload, workload.buffers)
    unfused = fq.fusion(queue, strategy="unfused")
    with unfused if queue.device.kind != "reference" else nullcontext():
        chain()
    queue.wait()
    workload.check(bit_for_bit=True)
    for strategy in strategies:
        fused = submit_chain(workload, workload.internal_buffers())
        workload.spoil()
        with fq.fusion(queue, strategy=strategy, promote="internal") as fusion:
            fused()
        fusion.event.wait()
        workload.check(bit_for_bit=True)
        workload.spoil()
        fusion.replay().wait()
        workload.check(bit_for_bit=True)
        report = fusion.report
        if strategy == "megakernel":
            assert report.strategy == "megakernel" or report.fallback
        if strategy == "sequence":
            assert report.strategy != "megakernel"


@pytest.mark.in_turn
@pytest.mark.parametrize("strategy", ["megakernel", "auto"])
@pytest.mark.parametrize("name", one_in(2, DEVICE_CASES))
def test_a_strategy_changes_nothing_on_the_device(name: str, strategy: Strategy) -> None:
    try:
        queue = fq.FusionQueue()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")
    # test_corpus_programs.py has launches of several kernels on the device.
    size = DEVICE_SIZES.get(name, DEVICE_SIZE)
    case = FEWER_STEPS.get(name, CASES[name])
    check(case, size, queue, [strategy])


@pytest.mark.in_turn
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SMALL)
def test_a_strategy_changes_nothing_on_the_interpreter(name: str, strategy: Strategy) -> None:
    check(*SMALL[name], fq.FusionQueue("reference"), [strategy])


def test_every_strategy_of_the_cases_is_tried() -> None:
    assert STRATEGIES == ("sequence", "megakernel", "auto")


def test_the_variants_of_a_case() -> None:
    """What did not run as asked is said, in the results and in their notes."""
    case, size = SMALL["reverse"]
    result = run_case(
        replace(case, baselines=()), size, fq.FusionQueue("reference"), 1, lambda *_: None
    )
    by_name = {variant.name: variant for variant in result.variants}
    assert list(by_name) == ["unfused", "sequence", "megakernel", "auto", "auto, replay"]
    assert by_name["unfused"].launches == 3
    assert by_name["auto"].strategy == by_name["auto, replay"].strategy
    megakernel = by_name["megakernel"]
    if megakernel.timing is None:
        assert megakernel.unavailable
        assert f"megakernel did not run: {megakernel.unavailable}" in case_notes(result)
    else:
        assert megakernel.strategy == "megakernel"
        assert megakernel.launches == 1
    assert f"auto ran as {by_name['auto'].strategy}" in case_notes(result)


@fq.kernel
def swap_ends(item: fq.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = x[x.shape[0] - 1 - i]


@fq.kernel(sub_group_size=4)
def swap_in_group(item: fq.NdItem, x: Any, out: Any) -> None:
    i, at = item.get_global_id(0), item.get_local_id(0)
    out[i] = x[i]
    fq.group_barrier(item.get_group())
    other = out[i - at + item.get_local_range(0) - 1 - at]
    if fq.all_of_group(item.get_sub_group(), i >= 0):  # sub-groups take a launch of their own
        out[i] = other + x[i]


def reversed_in_parts(arrays: HostArrays) -> None:
    x = arrays["x"]
    arrays["out"][:] = x + x.reshape(-1, GROUP)[:, ::-1].reshape(-1)


GROUP = 4
PARTLY_PERSISTENT = Case(
    name="partly_persistent",
    description="persistent kernels before and after a launch with sub-groups",
    sizes=(64,),
    extents=lambda size: (size,),
    arrays=(
        ArraySpec("x", "input"),
        *(ArraySpec(name, "temporary") for name in ("a", "b", "c", "d")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(swap_ends, ("x", "a")),
        Step(swap_ends, ("a", "b")),
        Step(swap_in_group, ("b", "c")),
        Step(swap_ends, ("c", "d")),
        Step(swap_ends, ("d", "out")),
    ),
    numpy=reversed_in_parts,
    baselines=(),
    compare="strategies",
    local_range=(GROUP,),
)


def test_a_result_has_the_launches_that_there_were() -> None:
    """A list of strategy ``megakernel`` may have several launches."""
    queue = fq.FusionQueue("reference")
    workload = Workload(PARTLY_PERSISTENT, 64, queue)
    found = {v.name: v for v in variants(workload) if isinstance(v, Variant)}
    for variant in found.values():
        with fq.profile(queue, compare=False) as profile:
            variant.run()
        assert variant.launches() == len(profile.timeline.launches), variant.name
    assert found["megakernel"].strategy == "megakernel"
    assert found["megakernel"].launches() == 3


def test_spoiling_spoils_every_temporary_that_has_memory() -> None:
    """A stage that runs too early must not find the results of the run before."""
    case, size = SMALL["heat_1d"]
    workload = Workload(case, size, fq.FusionQueue("reference"))
    own = workload.internal_buffers()
    own["ping"].numpy().fill(3)
    workload.spoil()
    assert np.isnan(own["ping"].numpy()).all()
    assert np.isnan(workload.buffers["ping"].numpy()).all()
    assert np.isnan(workload.out).all()
    assert not own["pong"].is_allocated
    assert not np.isnan(workload.host["x"]).any()


def test_spoiling_gives_the_state_its_first_value() -> None:
    case, size = SMALL["transformer_block"]
    workload = Workload(case, size, fq.FusionQueue("reference"))
    used = workload.host["keys"].copy()
    workload.spoil()
    assert not np.array_equal(workload.host["keys"], used)
    submit_chain(workload, workload.buffers)().wait()
    assert np.allclose(workload.host["keys"], used, rtol=1e-4)


def test_a_step_too_early_is_found() -> None:
    """Running two steps in the wrong order leaves a spoiled result, and the check finds it."""
    case, size = SMALL["reverse"]
    product, reverse, difference = case.steps
    wrong = replace(case, steps=(reverse, product, difference))
    workload = Workload(wrong, size, fq.FusionQueue("reference"))
    for variant in variants(workload):
        if isinstance(variant, MissingVariant):
            continue
        workload.spoil()
        variant.run()
        with pytest.raises(AssertionError, match="wrong elements from element 0"):
            workload.check(bit_for_bit=False)
        break


def test_integers_are_checked_by_their_bits() -> None:
    case, size = SMALL["prefix_sum"]
    workload = Workload(case, size, fq.FusionQueue("reference"))
    assert workload.out.dtype == np.int32
    workload.out[:] = workload.expected
    workload.check(bit_for_bit=True)
    workload.out[5] += 1
    with pytest.raises(AssertionError, match="element 5"):
        workload.check(bit_for_bit=False)


def test_stated_bytes_of_arrays_with_shapes_of_their_own() -> None:
    case = CASES["prefix_sum"]
    n, slabs = 10_000, 3
    unfused = 4 * ((n + 16 * slabs) + (16 * slabs + slabs) + 2 * slabs + (n + slabs + n))
    assert case.stated_bytes("unfused", n) == unfused
    assert case.stated_bytes("promoted", n) == 4 * 2 * n
