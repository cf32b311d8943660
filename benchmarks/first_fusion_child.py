"""A script: fuse the four-kernel example once, print the seconds by phase as a line of JSON.

Arguments: the time (seconds since the epoch) when the process was started, and optionally the
device.  Nothing is imported before the first lap.
"""

import sys
import time

phases = {"interpreter": time.time() - float(sys.argv[1])}
start = time.perf_counter()


def lap(phase: str) -> None:
    """The time since the lap before belongs to ``phase``."""
    global start
    now = time.perf_counter()
    phases[phase] = now - start
    start = now


import numpy as np  # noqa: E402  # what importing costs is measured

lap("import_numpy")

import fusionq as fq  # noqa: E402

lap("import_fusionq")

N = 1_000


@fq.kernel
def mul(item, a, b, out):  # type: ignore[no-untyped-def]  # as users write it
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def sub(item, a, b, out):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    out[i] = a[i] - b[i]


def main() -> None:
    """Fuse once."""
    global start
    start = time.perf_counter()
    queue = fq.FusionQueue(sys.argv[2] if len(sys.argv) > 2 else None)
    lap("open_device")
    arrays = [np.random.default_rng(k).random(N, dtype=np.float32) for k in range(4)]
    in1, in2, in3, in4 = (fq.Buffer(array) for array in arrays)
    tmp1, tmp2, tmp3 = (fq.Buffer(N, np.float32, promote_private=True) for _ in range(3))
    out = fq.Buffer(N, np.float32)
    lap("make_buffers")
    with fq.fusion(queue) as fusion:
        queue.submit(mul, N, in1, in2, tmp1)
        queue.submit(sub, N, in1, in3, tmp2)
        queue.submit(mul, N, tmp2, in4, tmp3)
        queue.submit(sub, N, tmp1, tmp3, out)
    lap("other")
    assert fusion.event is not None
    fusion.event.wait()
    lap("run")
    timings = fusion.report.timings
    phases["other"] -= sum(timings.values())
    known = ("interpreter", "import_numpy", "import_fusionq", "open_device", "make_buffers")
    ordered = {phase: phases[phase] for phase in known}
    ordered |= {**timings, "other": phases["other"], "run": phases["run"]}
    ordered["total"] = sum(ordered.values())

    a, b, c, d = arrays
    if not np.array_equal(out.numpy(), a * b - (a - c) * d):
        raise SystemExit("the fused result is wrong")

    import json

    print(json.dumps(ordered))


main()
