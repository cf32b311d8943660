"""Kernels that begin before the one in front has ended: they wait themselves, first of all."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda import graph
from fusionq.backends.cuda.compiler import compiled
from fusionq.backends.cuda.program import CudaProgram, generated
from fusionq.codegen.cuda import CUDA_CPP
from fusionq.codegen.cuda.unit import IN_TURN
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir.loops_alone import loops_alone
from tests.unit.codegen.built_kernels import GOLDEN_KERNELS
from tests.unit.cuda.compile_only import TARGET, compiling_queue
from tests.unit.cuda.test_compiles import intermediate_text

bindings = pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings is not installed")
RANGES = [build for build in GOLDEN_KERNELS if build.__name__ != "persistent"]
EARLY = bindings.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value


def program(text: str, dependent_launches: bool) -> CudaProgram:
    device: Any = SimpleNamespace(has_dependent_launches=dependent_launches)
    source = DeviceSource(text, "k", (), frozenset())
    return CudaProgram(RANGES[0](), device, "strict", source, b"", 0.0, None, 1024)


@pytest.mark.parametrize("build", RANGES, ids=lambda build: build.__name__)
def test_kernels_wait_before_they_touch_memory(build: Any) -> None:
    text = generated(build(), "strict", TARGET).text
    _, _, body = text.partition(CUDA_CPP.unit.kernel_qualifier)
    _, _, statements = body.partition(") {\n")
    before, wait, _ = statements.partition(IN_TURN)
    assert wait and "=" not in before.replace("= {", "")
    assert program(text, True).waits_itself
    assert not program(text, False).waits_itself


def test_a_program_that_does_not_wait_is_waited_for() -> None:
    text = generated(RANGES[0](), "strict", TARGET).text.replace(IN_TURN, "")
    assert "griddepcontrol.wait" in text
    assert not program(text, True).waits_itself


@pytest.mark.usefixtures("nvrtc")
def test_older_gpus_have_no_such_wait() -> None:
    text = generated(RANGES[0](), "strict", TARGET).text
    options = CUDA_CPP.unit.build_options("strict")
    old, new = (compiled(text, a, options).code for a in ("sm_80", "sm_90"))
    without = text.replace(IN_TURN, "")
    assert compiled(without, "sm_80", options).code == old
    assert compiled(without, "sm_90", options).code != new


@fq.kernel
def chain(item: fq.Item, a, b, first, second):
    i = item.get_id(0)
    first[i] = a[i] * b[i]
    second[i] = first[i] - a[i]


@pytest.mark.usefixtures("nvrtc")
def test_accesses_stay_behind_the_wait_and_are_what_they_are_without() -> None:
    with compiling_queue(["sm_90"]) as (queue, backend):
        queue.submit(chain, 64, *(fq.Buffer(64, np.float32) for _ in range(4)))
    text = generated(backend.kernels[0], "strict", TARGET).text
    found = []
    for one in (text, text.replace(IN_TURN, "")):
        before, wait, after = intermediate_text(one).partition("griddepcontrol.wait;")
        assert not wait or "ld.global" not in before
        found.append(Counter(re.findall(r"(?:ld|st)\.global\.[\w.]+", after or before)))
    assert found[0] == found[1] and found[0]["ld.global.nc.f32"] == 2


class Driver:
    """Takes note of a graph's edges."""

    CUgraphEdgeData = bindings.CUgraphEdgeData
    CUkernelNodeAttrID = bindings.CUkernelNodeAttrID
    CUkernelNodeAttrValue = bindings.CUkernelNodeAttrValue
    CUgraphDependencyType = bindings.CUgraphDependencyType
    CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER = bindings.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = bindings.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    ok = SimpleNamespace(value=0)

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.edges: list[tuple[object, object, int, int]] = []
        self.cooperative: dict[object, int] = {}

    def cuGraphCreate(self, flags: int) -> tuple[Any, ...]:
        return self.ok, "graph"

    def cuGraphAddKernelNode(self, *given: Any) -> tuple[Any, ...]:
        assert given[1:3] == ([], 0)
        self.nodes.append(given[3])
        return self.ok, f"node {given[3]}"

    def cuGraphKernelNodeSetAttribute(self, node: object, attribute: Any, value: Any) -> Any:
        assert attribute == bindings.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        self.cooperative[node] = value.cooperative
        return (self.ok,)

    def cuGraphAddDependencies(self, graph: Any, from_: Any, to: Any, edges: Any, n: int) -> Any:
        assert n == len(from_) == len(to) == len(edges) == 1
        self.edges.append((from_[0], to[0], edges[0].type, edges[0].from_port))
        return (self.ok,)

    def cuGraphInstantiate(self, graph: object, flags: int) -> tuple[Any, ...]:
        return self.ok, 7

    def cuGraphExecDestroy(self, executable: object) -> None: ...

    def cuGraphDestroy(self, graph: object) -> None: ...


def test_edges_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(graph, "load_driver", lambda: driver)
    enqueued: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        graph, "driver_function", lambda name: lambda *given: enqueued.append(given) or 0
    )
    device: Any = SimpleNamespace(
        graphs=0, make_current=lambda: None, info=SimpleNamespace(compute_units=132)
    )
    launches: list[Any] = [
        SimpleNamespace(
            waits_itself=waits, loads_early=early, runs_at_once=not waits, blocks=blocks,
            loops_alone=alone, node_parameters=lambda n=n: n,
        )
        for n, (waits, early, blocks, alone) in enumerate([
            (True, True, 500, False), (True, False, 500, False), (False, False, 20, False),
            (True, False, 34, False), (True, True, 500, False), (True, False, 33, False),
            (True, False, 33, False), (True, False, 34, False), (False, False, 3, False),
            (True, False, 2, True), (True, False, 1, True),
        ])
    ]  # fmt: skip
    made = graph.DriverGraph(device, 9, launches)
    assert driver.nodes == list(range(11)) and device.graphs == 1
    begun = 2  # once all blocks of the one before have begun
    assert driver.edges == [
        ("node 0", "node 1", EARLY, 1), ("node 1", "node 2", 0, 0), ("node 2", "node 3", EARLY, 1),
        ("node 3", "node 4", EARLY, begun),
        ("node 4", "node 5", EARLY, begun),  # a quarter of the multiprocessors, and fewer
        ("node 5", "node 6", EARLY, 1), ("node 6", "node 7", EARLY, 1), ("node 7", "node 8", 0, 0),
        ("node 8", "node 9", EARLY, 1),  # two blocks whose threads go through rows
        ("node 9", "node 10", EARLY, begun),  # one block lies where it lies
    ]  # fmt: skip
    assert driver.cooperative == {"node 2": 1, "node 8": 1}
    assert made.enqueue() == 0 and len(enqueued[0]) == 2
    del made
    assert device.graphs == 0


@fq.kernel
def by_rows(item: fq.Item, a, b):
    i = item.get_id(0)
    for k in range(a.shape[1]):
        b[i] += a[i, k]


@fq.kernel
def by_groups(item: fq.NdItem, a, b):
    i, k = item.get_group().get_group_id(0), item.get_local_id(0)
    total = a[0, 0]
    for j in range(k, a.shape[1], item.get_local_range(0)):
        total += a[i, j]
    for j in range(3):
        total += a[i, j]
    b[item.get_global_id(0)] = total


def test_who_goes_through_memory_alone() -> None:
    """Not the work-items of a work-group that share a row, nor who does a fixed number of turns."""
    with compiling_queue([]) as (queue, backend):
        a, b = fq.Buffer((64, 64), np.float32), fq.Buffer(64, np.float32)
        queue.submit(by_rows, 64, a, b)
        queue.submit(by_groups, fq.NdRange(64, 32), a, b)
    assert [loops_alone(kernel) for kernel in backend.kernels] == [True, False]
