"""A script: submit one long list and wait for its result; print the seconds as a line of JSON.

Arguments: the family, the length, ``auto`` or another strategy, or ``plain`` for submissions
outside fusion mode; and optionally the device.
"""

import hashlib
import json
import resource
import sys
import time

import fusionq as fq
from fusionq.benchmarks.planning_lists import FAMILIES


def main() -> None:
    """Run the list once."""
    family, length, strategy = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    queue = fq.FusionQueue(sys.argv[4] if len(sys.argv) > 4 else None)
    calls = list(FAMILIES[family](length))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: dict[str, object] = {}
    start = time.perf_counter()
    if strategy == "plain":
        for kernel, range_, arguments in calls:
            queue.submit(kernel, range_, *arguments)
        queue.wait()
        found["first_result"] = time.perf_counter() - start
    else:
        with fq.fusion(queue, strategy=strategy) as fusion:  # type: ignore[arg-type]
            for kernel, range_, arguments in calls:
                queue.submit(kernel, range_, *arguments)
            found["submit"] = time.perf_counter() - start
        fusion.event.wait()
        found["first_result"] = time.perf_counter() - start
        start = time.perf_counter()
        report = fusion.report
        found |= report.timings
        found["strategy"] = report.strategy
        found["kernels"] = len(report.plan.stages)
        str(report)
        found["report"] = time.perf_counter() - start
        found["reason"] = report.fallback or ""
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["memory_bytes"] = (after - before) * 1024
    state = hashlib.sha256()
    for buffer in {id(a): a for _, _, args in calls for a in args}.values():
        if isinstance(buffer, fq.Buffer):
            state.update(buffer.numpy().tobytes())
    found["result"] = state.hexdigest()
    print(json.dumps(found))


main()
