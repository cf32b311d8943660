"""A script for an environment with numba-dpex: runs a chain of its kernels on request.

Argument: a file as large as an array, through which arrays travel.  Every line of standard input
is a request as JSON, every line of standard output the answer, ``{"error": "…"}`` or

    {"device": null, "size": 1000, "arrays": ["x", "out"], "steps": [["mul", ["x", 2.0, "out"]]]}
        null: the chain is there
    {"put": "x"}
        null: the file's contents are the array's
    {"sample": 100}
        the seconds that so many runs take, one after the other, with one wait
    {"get": "out"}
        null: the array's contents are in the file
"""

import json
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np


def load() -> Any:
    """numba_dpex, with the libraries that its wheels need where fusionq is there to find them."""
    try:
        from fusionq.dpex import load_numba_dpex
    except ImportError:
        return import_module("numba_dpex")
    return load_numba_dpex()


class Chain:
    """Float32 arrays of one size in USM, and kernels over them in order."""

    def __init__(
        self, device: str | None, size: int, arrays: list[str], steps: list[tuple[str, list[Any]]]
    ) -> None:
        numba_dpex = load()
        kernels = import_module("dpex_kernels")
        self._tensor: Any = import_module("dpctl.tensor")
        queue = import_module("dpctl").SyclQueue(*([device] if device else []))
        self._arrays = {
            name: self._tensor.empty(size, dtype="f4", sycl_queue=queue) for name in arrays
        }
        self._submit = numba_dpex.call_kernel_async
        self._range = numba_dpex.Range(size)
        self._calls = [
            (
                getattr(kernels, kernel),
                [self._arrays[a] if isinstance(a, str) else np.float32(a) for a in arguments],
            )
            for kernel, arguments in steps
        ]

    def put(self, name: str, values: Any) -> None:
        """Give an array its values."""
        self._arrays[name][...] = values

    def get(self, name: str) -> Any:
        """An array's values."""
        return self._tensor.asnumpy(self._arrays[name])

    def sample(self, runs: int) -> float:
        """Seconds for so many runs; each launch waits for the one before, the host for the last."""
        host: Any = None
        before: tuple[Any, ...] = ()
        began = time.perf_counter()
        for _ in range(runs):
            for kernel, arguments in self._calls:
                host, event = self._submit(kernel, self._range, before, *arguments)
                before = (event,)
        before[0].wait()
        seconds = time.perf_counter() - began
        host.wait()  # for what keeps the arguments alive
        return seconds


def main() -> None:
    """Answer requests until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    shared = np.memmap(sys.argv[1], np.float32, "r+")
    chain: Any = None
    for line in sys.stdin:
        request, answer = json.loads(line), None
        try:
            if "steps" in request:
                chain = Chain(**request)
            elif "sample" in request:
                answer = chain.sample(request["sample"])
            elif "put" in request:
                chain.put(request["put"], shared)
            else:
                shared[:] = chain.get(request["get"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
