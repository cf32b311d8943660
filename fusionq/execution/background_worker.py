"""The worker process: plans and builds lists, one after the other, into the disk cache.

``execution.background`` starts it.  Each line of standard input has the key of a request, the cache
that has it, and a strategy; each line of standard output is an answer.  It ends with its parent,
when standard input does, or when it has had nothing to do for a while.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TextIO, TypedDict

from fusionq.backends.base import Backend
from fusionq.backends.registry import builder_for
from fusionq.base.config import disk_cache_settings, set_disk_cache
from fusionq.base.errors import FusionqError
from fusionq.cache.build_requests import KIND, BuildRequest, domain_of, kept_request
from fusionq.cache.disk import disk_store
from fusionq.cache.plan_cache import PLANS
from fusionq.execution.background import BuildAnswer
from fusionq.execution.candidates import superfluous
from fusionq.execution.compile import built_plan, planned
from fusionq.execution.contender import Candidate
from fusionq.execution.device_costs import in_worker, measured_target
from fusionq.execution.planning_time import PlanningStopped
from fusionq.execution.standing import MOST_SLOWDOWN
from fusionq.planning.predicted import predicted_seconds

IDLE_SECONDS = 60.0
"""Without a request, after which the process ends."""

MEASURES_AFTER = 1.0
"""After so many seconds without one, again and again, devices are measured whose costs nobody
knows, if the machine is quiet."""

NICENESS = 5
"""What the worker's processor time counts a third of (Linux, ``sched(7)``).  Linux may share
processors out between sessions first (autogroups), and then this one's says nothing.  Where it does
not, as in containers, a program whose kernels keep all processors busy would leave a worker at 19
less than a fiftieth of one: 16 steps of a stencil over 2,500 × 2,500 floats had learned after 34 s,
at 5 after 10, and ran as fast until then (two cores)."""

MOST_PLANNING = 10.0
"""Seconds of processor time that planning a candidate may take: the program has so much less of the
machine meanwhile.  Lists of 16 to 32 time steps take 0.2 to 2."""

MOST_DATA = 8 << 30
"""Bytes of memory of its own."""


def main() -> None:
    """Serve until the parent ends."""
    answers = _prepared()
    requests: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            requests.put(line)
        os._exit(0)  # also in the middle of a build

    threading.Thread(target=read, daemon=True).start()
    idle = 0.0
    while idle < IDLE_SECONDS:
        try:
            line = requests.get(timeout=MEASURES_AFTER)
        except Empty:
            idle += MEASURES_AFTER
            for backend in _backends.values():
                measured_target(backend)
            continue
        idle = 0.0
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()
    os._exit(0)


def _prepared() -> TextIO:
    """At a low priority, within bounds, silent; where answers go."""
    in_worker()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA, MOST_DATA))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # the first to go where memory runs out
    return answers


class BuildRequestLine(TypedDict):
    """A line of standard input."""

    key: str
    strategy: Candidate
    beside: list[Candidate]
    directory: str
    max_bytes: int


def answer(told: BuildRequestLine) -> BuildAnswer:
    """Plan and build a list by a strategy; the answer's reason says why that is not possible, or
    not worth a trial."""
    if Path(told["directory"]) != disk_cache_settings().directory:
        PLANS.clear()  # the caches of memory hide that a directory lacks something
    set_disk_cache(enabled=True, directory=told["directory"], max_bytes=told["max_bytes"])
    store = disk_store()
    request = None if store is None else kept_request(store, told["key"])
    if store is None or request is None:
        return BuildAnswer("the disk cache cannot be written", is_unserved=True)
    store.remove(told["key"], KIND)
    try:
        return _build(request, told["strategy"], told["beside"])
    except PlanningStopped:
        return BuildAnswer(f"it is not planned after {MOST_PLANNING:g} s of processor time")
    except FusionqError as error:
        return BuildAnswer(next(iter(str(error).splitlines()), type(error).__name__))
    except Exception as error:  # the parent goes on without this candidate
        return BuildAnswer(f"{type(error).__name__}: {error}")


def _build(request: BuildRequest, strategy: Candidate, beside: Sequence[Candidate]) -> BuildAnswer:
    backend = _backend(request.device)
    if domain_of(backend) != request.domain:
        reason = f"the device {request.device} is another one in a worker process"
        return BuildAnswer(reason, is_unserved=True)
    submissions = request.submissions
    options = request.options.of_candidate(strategy)
    plan = planned(backend, submissions, options, MOST_PLANNING)
    if options.strategy in ("megakernel", "overlap") and plan.strategy != options.strategy:
        reason = f"it does not become what strategy={options.strategy!r} makes"
        return BuildAnswer(plan.fallback or reason)
    others = {
        name: planned(backend, submissions, request.options.of_candidate(name), MOST_PLANNING)
        for name in beside
    }
    slowdown = None
    if beside:
        same = superfluous(plan, others, beside[0])
        if same is not None:
            return BuildAnswer(same)
        target = measured_target(backend)
        own, first = (predicted_seconds(submissions, p, target) for p in (plan, others[beside[0]]))
        slowdown = own / first if first > 0 else None
        if slowdown is not None and slowdown > MOST_SLOWDOWN:
            return BuildAnswer(f"{slowdown:.1f} times as long by the cost model", slowdown)
    built_plan(backend, submissions, options, {}, may_fall_back=False)
    return BuildAnswer(None, slowdown)


_backends: dict[str, Backend] = {}
"""By device."""


def _backend(device: str) -> Backend:
    if device not in _backends:
        _backends[device] = builder_for(device)
    return _backends[device]
