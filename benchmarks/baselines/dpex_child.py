"""A script for an environment with numba-dpex: runs a chain of its kernels on request.

Argument: a file as large as the largest array, through which arrays travel.  Every line of
standard input is a request as JSON, every line of standard output the answer:

    {"device": null, "size": 1000, "arrays": ["x", "out"], "steps": [["mul", ["x", 2.0, "out"]]]}
    {"put": "x"}     the file's contents become the array's
    {"sample": 100}  the seconds that so many runs take, one after the other, with one wait
    {"get": "out"}   the array's contents go to the file
"""

import json
import sys
import time

import numpy as np


def load():
    """numba_dpex, with the libraries that its wheels need where fusionq is there to find them."""
    try:
        from fusionq.backends.dpex import load_numba_dpex
    except ImportError:
        import numba_dpex

        return numba_dpex
    return load_numba_dpex()


class Chain:
    """Float32 arrays of one size in USM, and kernels over them in order."""

    def __init__(self, numba_dpex, device, size, arrays, steps):
        import dpctl
        import dpctl.tensor
        import dpex_kernels

        queue = dpctl.SyclQueue(device) if device else dpctl.SyclQueue()
        self.arrays = {n: dpctl.tensor.empty(size, dtype="f4", sycl_queue=queue) for n in arrays}
        self._submit = numba_dpex.call_kernel_async
        self._range = numba_dpex.Range(size)
        self._calls = [
            (
                getattr(dpex_kernels, kernel),
                [self.arrays[a] if isinstance(a, str) else np.float32(a) for a in arguments],
            )
            for kernel, arguments in steps
        ]

    def sample(self, runs):
        """Seconds for so many runs; each launch waits for the one before, the host for the last."""
        host, before = None, ()
        began = time.perf_counter()
        for _ in range(runs):
            for kernel, arguments in self._calls:
                host, event = self._submit(kernel, self._range, before, *arguments)
                before = (event,)
        event.wait()
        seconds = time.perf_counter() - began
        host.wait()  # for what keeps the arguments alive
        return seconds


def main():
    """Answer requests until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    shared = np.memmap(sys.argv[1], np.float32, "r+")
    chain = None
    for line in sys.stdin:
        request = json.loads(line)
        answer = None
        if "steps" in request:
            chain = Chain(load(), **request)
        elif "sample" in request:
            answer = chain.sample(request["sample"])
        elif "put" in request:
            array = chain.arrays[request["put"]]
            array[...] = shared[: array.size]
        else:
            import dpctl.tensor

            array = chain.arrays[request["get"]]
            shared[: array.size] = dpctl.tensor.asnumpy(array)
        print(json.dumps(answer), file=answers, flush=True)


main()
