"""What has to be seen on a real NVIDIA GPU, in one command; CI has none.

    python tools/gpu_check.py tests                    # conformance and random programs
    python tools/gpu_check.py sanitize                 # conformance under compute-sanitizer
    python tools/gpu_check.py bench --json out.json    # README's example against what else there is

``bench`` times by CUDA events, variants interleaved, and prints medians with the device and the
driver.  CuPy and PyTorch are baselines where they are installed, and said to be missing where not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.backends.cuda.compiler import compiled
from fusionq.backends.cuda.devices import device
from fusionq.backends.cuda.runtime import checked, load_driver

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
WARM_UP, RUNS = 3, 15
BLOCK = 256

BY_HAND = """
extern "C" __global__ void fused(
    const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c,
    const float* __restrict__ d, float* __restrict__ out, int n
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * b[i] - (a[i] - c[i]) * d[i];
}
"""


@fq.kernel
def mul(item: fq.Item, x, y, out):
    i = item.get_id(0)
    out[i] = x[i] * y[i]


@fq.kernel
def sub(item: fq.Item, x, y, out):
    i = item.get_id(0)
    out[i] = x[i] - y[i]


class Example:
    """``a * b - (a - c) * d`` over ``size`` float32, in all its variants, on one stream."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.driver = load_driver()
        device(0).make_current()
        self.native = checked("a stream", self.driver.cuStreamCreate(1))
        self.queue = fq.FusionQueue(_Stream(int(self.native)))
        draw = np.random.default_rng(1)
        self.inputs = [draw.random(size, dtype=np.float32) for _ in range(4)]
        a, b, c, d = self.inputs
        self.expected = a * b - (a - c) * d
        self.arrays = [fq.Buffer(x) for x in self.inputs]
        self.temporaries = [fq.Buffer(size, np.float32) for _ in range(3)]
        self.internal = [fq.Buffer(size, np.float32, internal=True) for _ in range(3)]
        self.out = fq.Buffer(size, np.float32)
        self.missing: dict[str, str] = {}

    def chain(self, temporaries: list[fq.Buffer]) -> None:
        """The four submissions."""
        (a, b, c, d), (t1, t2, t3) = self.arrays, temporaries
        for kernel, x, y, out in (
            (mul, a, b, t1), (sub, a, c, t2), (mul, t2, d, t3), (sub, t1, t3, self.out)
        ):  # fmt: skip
            self.queue.submit(kernel, self.size, x, y, out)

    def variants(self) -> dict[str, Callable[[], object]]:
        """What to time, by name."""
        found: dict[str, Callable[[], object]] = {
            "unfused": lambda: self.chain(self.temporaries)
        }
        with fq.fusion(self.queue, strategy="unfused") as unfused:
            self.chain(self.temporaries)
        found["unfused, replayed"] = unfused.replay
        found["unfused, CUDA graph"] = self._graph(unfused.replay)
        with fq.fusion(self.queue, require=True) as kept:
            self.chain(self.temporaries)
        found["fused"] = kept.replay
        with fq.fusion(self.queue, require=True, promote="internal") as fused:
            self.chain(self.internal)
        found["fused and promoted"] = fused.replay
        found["fused by hand"] = self._by_hand()
        found["device copy of the same bytes"] = self._copy()
        self._torch(found)
        return found

    def _graph(self, submit: Callable[[], object]) -> Callable[[], object]:
        """``submit``, captured."""
        driver = self.driver
        self.queue.wait()
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked("a capture", driver.cuStreamBeginCapture(self.native, mode))
        submit()
        graph = checked("a capture", driver.cuStreamEndCapture(self.native))
        executable = checked("a graph", driver.cuGraphInstantiate(graph, 0))
        return lambda: checked("a graph", driver.cuGraphLaunch(executable, self.native))

    def _by_hand(self) -> Callable[[], object]:
        """One kernel of CUDA C++, launched with prepared arguments."""
        import ctypes

        driver = self.driver
        options = ("--std=c++17", "--fmad=false")
        code = compiled(BY_HAND, device(0).architecture, options).code
        module = checked("a cubin", driver.cuModuleLoadData(code))
        function = checked("a kernel", driver.cuModuleGetFunction(module, b"fused"))
        pointers = [b._storage.address for b in (*self.arrays, self.out)]
        values = [*map(ctypes.c_uint64, pointers), ctypes.c_int32(self.size)]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        grid = -(-self.size // BLOCK)

        def launch() -> object:
            assert values
            return checked(
                "the kernel by hand",
                driver.cuLaunchKernel(
                    function, grid, 1, 1, BLOCK, 1, 1, 0, self.native, ctypes.addressof(addresses),
                    0,
                ),
            )  # fmt: skip

        return launch

    def _copy(self) -> Callable[[], object]:
        """As many bytes as the fused kernel reads and writes, by the driver's copy: half of them
        read."""
        nbytes = self.size * 4 * 5 // 2
        first, second = (fq.Buffer(nbytes, np.uint8) for _ in range(2))
        with fq.fusion(self.queue):
            self.queue.submit(_touch, 1, first, second)
        source, target = first._storage.address, second._storage.address

        def copy() -> object:
            assert first is not second
            return checked(
                "a copy", self.driver.cuMemcpyDtoDAsync(target, source, nbytes, self.native)
            )

        return copy

    def _torch(self, found: dict[str, Callable[[], object]]) -> None:
        try:
            import torch
        except ImportError as error:
            self.missing["PyTorch"] = str(error)
            return
        stream = torch.cuda.ExternalStream(int(self.native))
        tensors = [torch.from_numpy(x).cuda() for x in self.inputs]
        out = torch.empty_like(tensors[0])

        def eager(a: Any, b: Any, c: Any, d: Any) -> Any:
            return a * b - (a - c) * d

        def on_stream(function: Callable[..., Any]) -> Callable[[], object]:
            def run() -> object:
                with torch.cuda.stream(stream):
                    return function(*tensors)

            return run

        assert out is not None
        found["PyTorch, eager"] = on_stream(eager)
        try:
            fast = torch.compile(eager)
            on_stream(fast)()
        except Exception as error:
            self.missing["torch.compile"] = f"{type(error).__name__}: {error}"[:200]
            return
        found["torch.compile"] = on_stream(fast)

    def check(self) -> None:
        """The output is right to the last bit."""
        np.testing.assert_array_equal(self.out.numpy(), self.expected)

    def times(self, variants: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
        """Microseconds of each run of each variant, by the stream's events, interleaved."""
        driver = self.driver
        found: dict[str, list[float]] = {name: [] for name in variants}
        start, end = (checked("an event", driver.cuEventCreate(0)) for _ in range(2))
        for turn in range(WARM_UP + RUNS):
            for name, run in variants.items():
                checked("an event", driver.cuEventRecord(start, self.native))
                run()
                checked("an event", driver.cuEventRecord(end, self.native))
                checked("the end", driver.cuStreamSynchronize(self.native))
                if turn >= WARM_UP:
                    found[name].append(
                        1e3 * checked("a time", driver.cuEventElapsedTime(start, end))
                    )
        return found


@fq.kernel
def _touch(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i]


class _Stream:
    """A stream of the driver, as other libraries pass theirs on."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def host_cost(example: Example, variants: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds that a call takes on the host, with little on the GPU."""
    found = {}
    for name, run in variants.items():
        run()
        checked("the end", example.driver.cuStreamSynchronize(example.native))
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(200):
                run()
            times.append((time.perf_counter() - start) / 200 * 1e6)
            checked("the end", example.driver.cuStreamSynchronize(example.native))
        found[name] = statistics.median(times)
    return found


def bench(path: Path | None) -> int:
    """Time README's example at 100 million float32, and at 1,000 what the host spends."""
    info = device(0).info
    print(f"{info.name}, {info.driver}, {time.strftime('%Y-%m-%d')}")
    result: dict[str, Any] = {
        "device": info.name, "driver": info.driver, "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip
    large = Example(100_000_000)
    variants = large.variants()
    for name, run in variants.items():
        run()
        if "PyTorch" not in name and "torch" not in name and "copy" not in name:
            large.check()
    times = large.times(variants)
    result["microseconds"] = times
    base = statistics.median(times["fused and promoted"])
    for name, runs in times.items():
        median = statistics.median(runs)
        print(
            f"{name:32} {median:9.1f} us  (from {min(runs):.1f} to {max(runs):.1f}; "
            f"{median / base:.3f} of fused and promoted)"
        )
    print(f"fused and promoted moves {large.size * 20 / base / 1e6:.2f} TB/s")
    small = Example(1000)
    costs = host_cost(small, small.variants())
    result["host_microseconds"] = costs
    print("1,000 elements, on the host, for each call:")
    for name, cost in costs.items():
        print(f"{name:32} {cost:9.2f} us")
    result["missing"] = {**large.missing, **small.missing}
    for name, reason in result["missing"].items():
        print(f"no {name}: {reason}")
    if path is not None:
        path.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def tests(more: list[str]) -> int:
    """The tests that run on the default device, the GPU where there is no other, and those of all
    backends."""
    places = ["tests/conformance", "tests/property", "tests/unit/cuda", "tests/unit/kernels"]
    command = [sys.executable, "-m", "pytest", "-q", *places, *more]
    return subprocess.run(command, cwd=ROOT).returncode


def sanitize(more: list[str]) -> int:
    """The conformance suite under each tool of compute-sanitizer; 0 if none finds anything."""
    codes = []
    for tool in SANITIZERS:
        print(f"compute-sanitizer --tool {tool}", flush=True)
        command = [
            "compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--target-processes",
            "all", sys.executable, "-m", "pytest", "-q", "-k", "cuda", "tests/conformance", *more,
        ]  # fmt: skip
        codes.append(subprocess.run(command, cwd=ROOT).returncode)
    return max(codes)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("tests", "sanitize", "bench"))
    parser.add_argument("--json", type=Path, help="where bench writes every time")
    given, more = parser.parse_known_args()
    if given.command == "bench":
        return bench(given.json)
    return tests(more) if given.command == "tests" else sanitize(more)


if __name__ == "__main__":
    sys.exit(main())
