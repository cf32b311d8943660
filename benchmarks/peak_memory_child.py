"""A script: run the fused and promoted four-kernel example, print its memory as JSON.

Arguments: the number of elements, and optionally the device.
"""

import json
import resource
import sys

import numpy as np

import fusionq as fq
from fusionq.benchmarks.cases.seeds import mul, sub

CHUNK = 1 << 20


def peak_bytes() -> int:
    """Peak resident memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def fuse(queue: fq.FusionQueue, n: int) -> list[fq.Buffer]:
    """One fusion over ``n`` elements; the inputs, the temporaries, the output."""
    rng = np.random.default_rng(0)
    inputs = [fq.Buffer(n, np.float32) for _ in range(4)]
    for buffer in inputs:
        host = buffer.numpy()
        for at in range(0, n, CHUNK):
            part = host[at : at + CHUNK]
            rng.random(dtype=np.float32, out=part)
    in1, in2, in3, in4 = inputs
    tmp1, tmp2, tmp3 = (fq.Buffer(n, np.float32, promote_private=True) for _ in range(3))
    out = fq.Buffer(n, np.float32)
    with fq.fusion(queue) as fusion:
        queue.submit(mul, n, in1, in2, tmp1)
        queue.submit(sub, n, in1, in3, tmp2)
        queue.submit(mul, n, tmp2, in4, tmp3)
        queue.submit(sub, n, tmp1, tmp3, out)
    assert fusion.event is not None
    fusion.event.wait()
    return [*inputs, tmp1, tmp2, tmp3, out]


def main() -> None:
    """Warm up on little data, so that the compiler's memory does not count; then measure."""
    n = int(sys.argv[1])
    queue = fq.FusionQueue(sys.argv[2] if len(sys.argv) > 2 else None)
    fuse(queue, 1_000)
    before = peak_bytes()
    buffers = fuse(queue, n)
    growth = peak_bytes() - before
    in1, in2, in3, in4, *temporaries, out = buffers
    for at in range(0, n, CHUNK):
        a, b, c, d, e = (x.numpy()[at : at + CHUNK] for x in (in1, in2, in3, in4, out))
        if not np.array_equal(e, a * b - (a - c) * d):
            raise SystemExit("the fused result is wrong")
    allocated = {
        "allocated_bytes": sum(b.nbytes for b in buffers if b.is_allocated),
        "temporaries_bytes": sum(b.nbytes for b in temporaries if b.is_allocated),
        "growth_bytes": growth,
    }
    print(json.dumps(allocated))


main()
