"""Which plans are candidates beside others of the same list, and how they are named to users."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from fusionq.base.options import SLOT_BYTES
from fusionq.execution.contender import Candidate, Contender
from fusionq.execution.trials import Trials
from fusionq.planning.plan import UNFUSED_ASKED, Plan


def launches_of(plan: Plan) -> Hashable:
    """What makes two plans the same to the device."""
    return tuple((s.submissions, s.kernel, s.mode, s.local_range) for s in plan.stages)


def superfluous(plan: Plan, others: Mapping[Candidate, Plan], first: Candidate) -> str | None:
    """Why ``plan`` is not tried where there are ``others``, of which one runs ``first``; None if it
    is."""
    launches = launches_of(plan)
    for name, other in others.items():
        if launches_of(other) == launches:
            return f"it is the same launches as {name}"
    if first in others and not _promoted(others[first]) <= _promoted(plan):
        return "buffers would stay in global memory that need not even be allocated"
    return None


def _promoted(plan: Plan) -> frozenset[tuple[int, int]]:
    return frozenset((p.submission, p.argument) for p in plan.promotions if p.scope != "global")


def variants_of(plan: Plan) -> tuple[Candidate, ...]:
    """The candidates that differ from that of ``plan`` in the slots of its kernels' rings."""
    return tuple(name for name, nbytes in SLOT_BYTES.items() if nbytes in plan.other_slots)


def need_not_be_made(name: Candidate, first: Candidate, plan: Plan) -> str | None:
    """Why candidate ``name`` is not even planned where ``plan`` is what runs ``first``; None if it
    is."""
    if name == first:
        return None
    if name in ("sequence", "unfused") and plan.strategy == "unfused":
        return "nothing joins"
    if name != "unfused" and _is_one_launch(plan):
        return "all joins"
    return None


def _is_one_launch(plan: Plan) -> bool:
    """Whether all submissions run one behind the other in each work-item, and nothing is computed
    twice: no other launches can save more.  Dependences between the work-items of a group fix its
    shape, and cost barriers; without them the same list may be several times as fast."""
    return (
        len(plan.stages) == 1
        and plan.strategy in ("fused", "sequence")
        and not plan.recomputed
        and all(found.scope in ("NONE", "ITEM") for found in plan.dependences)
    )


def as_auto(plan: Plan) -> Plan:
    """``plan``, made by a strategy's name, in the words of a list that asked for none."""
    stages = tuple(
        stage if stage.boundary != UNFUSED_ASKED else replace(stage, boundary=_BY_ITSELF)
        for stage in plan.stages
    )
    if plan.strategy != "sequence":
        return replace(plan, stages=stages)
    if len(stages) == 1:
        return replace(plan, strategy="fused")
    boundary = next((s.boundary for s in stages if s.boundary is not None), None)
    return replace(plan, stages=stages, fallback=boundary)


_BY_ITSELF = "strategy 'auto' takes each submission by itself, see its choice"

_AS: dict[Candidate, str] = {
    "auto": "what the cost model chooses",
    "sequence": "joined launches",
    "unfused": "each submission by itself",
    "fused": "as few launches as are legal",
    "overlap": "launches that compute halos anew",
    "megakernel": "a persistent kernel",
    **{name: f"a persistent kernel with slots of {n:,} bytes" for name, n in SLOT_BYTES.items()},
}


def choice_text(trials: Trials, name: Candidate, is_learning: bool) -> str:
    """On what grounds candidate ``name`` ran, and what is known of the others; ``is_learning``:
    others are made in the background and tried by now."""
    if trials.chosen == name:
        why = f"auto runs {_AS[name]}"
        if any(contender.seconds for contender in trials.contenders.values()):
            why += ", by the times of real runs"
    elif trials.chosen is not None:
        why = f"auto ran {_AS[name]} in a trial, and runs {_AS[trials.chosen]} from now on"
    elif not trials.waits:
        why = f"auto runs {_AS[name]} in a trial"
    elif is_learning:
        missing = ", ".join(trials.awaited)
        why = f"auto runs {_AS[name]} so far; {missing}: made in the background, then tried"
    else:
        why = f"auto runs {_AS[name]} first"
        others = [o for o, c in trials.contenders.items() if o != name and c.state != "left out"]
        if others:
            why += (
                f"; {_and(others)} {'are' if len(others) > 1 else 'is'} tried when such lists "
                "have run for some tenths of a second"
            )
    known = [_text(*named) for named in trials.contenders.items()]
    cost = f"trials took {trials.costs.total * 1e6:,.0f} µs more" if trials.costs.total else None
    return "; ".join(filter(None, [why, *known, cost, _later_text(trials)]))


def _later_text(trials: Trials) -> str | None:
    """How often what was chosen has been compared since, and with what result."""
    later = trials.later
    if not (later.count or later.changes):
        return None
    changed = f"changed {later.changes} times" if later.changes != 1 else "changed once"
    times = "once" if later.count == 1 else f"{later.count} times"
    kept = changed if later.changes else "and kept"
    return f"compared again {times} since, {kept}, which took {later.cost * 1e6:,.0f} µs more"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _text(name: Candidate, contender: Contender) -> str | None:
    if contender.state == "left out":
        return f"{name} is left out: {contender.reason}"
    if not contender.seconds:
        return f"{name} was not tried: {contender.reason}" if contender.reason else None
    runs = len(contender.seconds)
    dropped = ", dropped" if contender.state == "slower" else ""
    if dropped and contender.behind is not None:
        dropped += f", {contender.behind:.2f} times as long in the latest of {contender.compared}"
    return f"{name} {contender.shortest * 1e6:,.0f} µs ({runs} run{'s' * (runs != 1)}{dropped})"
