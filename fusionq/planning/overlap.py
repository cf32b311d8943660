"""The launches of a list in which halos are computed anew (overlapped tiles).

Holewinski, Pouchet, Sadayappan: "High-performance code generation for stencil computations on GPU
architectures", 2012; Halide's ``compute_at`` is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Literal

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import ScalarPlace, Validity
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.planning.inlined_kernels import InlinedKernels
from fusionq.planning.layout import promoted
from fusionq.planning.overlap_choice import (
    INLINED_TAKES_LONGER,
    Taken,
    inlined_takes_longer,
    taken,
)
from fusionq.planning.overlapped_list import overlapped_list, unchanged_list
from fusionq.planning.overlapped_tiles import TiledStages
from fusionq.planning.plan import PromotionDecision, Recomputation, StagePlan
from fusionq.planning.profitability import wanted_by
from fusionq.planning.promotion import PROMOTE_NONE, Promotions, flagged
from fusionq.planning.recomputing import RecomputedTemporaries, Temporary, temporaries
from fusionq.planning.renamed_list import NotDivided, RenamedList, renamed_list
from fusionq.planning.rows_list import RowsList, rows_list
from fusionq.planning.stage_kernels import StageKernels
from fusionq.planning.stages import SplitOptions, split
from fusionq.planning.users_list import UsersList
from fusionq.planning.versions import Key, Versions, versions

WAYS: tuple[Literal["inlined", "tiled"], ...] = ("tiled", "inlined")
"""How temporaries are computed anew where there are several ways: by each work-item that reads
them, or by work-groups in local memory.  Tests leave one out."""

DEPTHS = (3, 5, 9)
"""Submissions that depend on each other and that a launch does at most, in the order in which they
are tried (the depth of temporal blocking), beside all of a chain that is not longer than the last;
all but one only where all are not one launch.  Odd ones: of two buffers that take turns, one is
then read, and the other written."""

NOTHING_EXCHANGED = (
    "nothing has to be computed anew: no work-item reads what another one has written before it"
)


@dataclass(frozen=True)
class Overlap:
    """The launches of a list whose temporaries ``recomputed`` are computed anew, with what
    planning found out about them, all in the numbers of the user's list."""

    found: tuple[PairScope, ...]
    layout: Promotions
    plans: tuple[StagePlan, ...]
    recomputed: tuple[Recomputation, ...]
    validity: Validity
    """For which lists of the same structure that is right."""


def with_overlap(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    options: FusionOptions,
    target: Target,
    fixed: Mapping[ScalarPlace, int],
    varying: Collection[ScalarPlace],
    barrierless: str | None,
    decisions: Sequence[PromotionDecision],
    most: Taken,
) -> Steps[Overlap | str]:
    """The list with temporaries computed anew of which that is proved, in the way that takes least
    on ``target``; or why there are none.  ``decisions``: what is promoted without that.  Ways that
    certainly take longer than ``most`` are not looked at."""
    rows = rows_list(questions, varying)
    questions = rows.questions
    found = yield from versions(questions, dependences, options)
    found = found.needed()
    if not found.found:
        return _nothing(questions, found.refused, dependences)
    finder = _Ways(questions, rows, options, target, fixed, varying, barrierless, decisions)
    grouped = barrierless is None and options.barriers == "auto"
    deepest = max(found.steps().values()) + 1
    depths = [depth for depth in DEPTHS if depth < deepest]
    if deepest <= DEPTHS[-1]:
        depths.append(deepest)
    depths.sort(key=lambda depth: depth == deepest - 1)
    best: tuple[Taken, Overlap] | None = None
    why: str | None = None
    for depth in depths:
        if best is not None and depth == deepest - 1 and len(best[1].plans) == 1:
            break
        bounds = [most] if best is None else [most, best[0]]
        made = yield from finder.best(found.of_depth(depth), grouped, bounds)
        if isinstance(made, str):
            why = why or made
            continue
        if best is not None and made[0] >= best[0]:
            break
        best = made
    if best is None:
        assert why is not None
        return why
    rows.rests_on(best[1].validity)
    return best[1]


@dataclass(frozen=True)
class _Ways:
    """Ways to compute versions of a list's memories anew."""

    questions: Questions
    rows: RowsList
    options: FusionOptions
    target: Target
    fixed: Mapping[ScalarPlace, int]
    varying: Collection[ScalarPlace]
    barrierless: str | None
    decisions: Sequence[PromotionDecision]
    known: dict[frozenset[Key], _Way | _Stay] = field(default_factory=dict)
    """What became of versions whose ways have been looked for."""
    inlined: InlinedKernels = field(default_factory=InlinedKernels)

    def best(
        self, found: Versions, grouped: bool, bounds: Sequence[Taken]
    ) -> Steps[tuple[Taken, Overlap] | str]:
        """The list with the versions ``found`` computed anew, in the way that takes least, with
        what it takes; or why there is none.  ``grouped``: work-groups may do it together;
        ``bounds``: who certainly takes longer than one is not looked at."""
        made: list[tuple[Taken, Overlap]] = []
        why: str | None = None
        for way in WAYS:
            if way == "tiled" and not grouped:
                continue
            if way == "inlined" and inlined_takes_longer(
                self.questions, found, [*bounds, *(each[0] for each in made)], self.target
            ):
                why = INLINED_TAKES_LONGER
                continue
            one = yield from self._way(found, way == "tiled")
            if isinstance(one, str):
                why = one
            elif one is not None:
                made.append(one)
        if not made and "inlined" not in WAYS:  # nothing is exchanged between work-items
            one = yield from self._way(found, False)
            if isinstance(one, tuple):
                made.append(one)
            elif one is not None:
                why = one
        if not made:
            assert why is not None
            return why
        return min(made, key=lambda each: each[0])

    def _way(self, found: Versions, tiled: bool) -> Steps[tuple[Taken, Overlap] | str | None]:
        """One way, with what it takes, with as many of the versions as can be computed so; or why
        there is none.  None where work-groups have nothing to do."""
        while (found := found.needed()).found:
            made: Overlap | _Stay | str | None
            keys = frozenset(found.found)
            if keys not in self.known:
                self.known[keys] = yield from self._renamed(found)
            one = self.known[keys]
            made = one if isinstance(one, _Stay) else (yield from one.overlap(tiled))
            if isinstance(made, Overlap):
                return self.cost(made), made
            if not isinstance(made, _Stay):
                return made
            found = found.without(made.reasons)
            for (_, group), reason in made.reasons.items():
                found.refused.setdefault(group, reason)
            yield "analysis"
        return _nothing(self.questions, found.refused)

    def _renamed(self, found: Versions) -> Steps[_Way | _Stay]:
        """The list in which the versions ``found`` have memories of their own, or which of them
        stay where they are."""
        try:
            renamed = renamed_list(self.questions, found, self.options)
        except NotDivided as stay:
            return _Stay(dict.fromkeys(stay.keys, str(stay)))
        yield "passes"
        varying = _places(renamed, self.varying)
        answers = self.questions.answers
        asked = Questions(renamed.submissions, varying, renamed.numbers, answers=answers)
        group_of = {asked.place[at].group: key for at, key in renamed.versions.items()}
        anew = yield from temporaries(asked, group_of)
        if anew.refused:
            return _Stay({group_of[g]: reason for g, reason in anew.refused.items()})
        return _Way(self, found, renamed, asked, anew)

    def cost(self, overlap: Overlap) -> Taken:
        """What launches take."""
        return taken(self.rows.users, overlap.plans, self.target)


@dataclass(frozen=True)
class _Stay:
    """Versions that stay in memory, each with the reason."""

    reasons: Mapping[Key, str]


@dataclass(frozen=True)
class _Way:
    """A list in which versions have memories of their own (``asked``, ``renamed``), all of which
    are computed ``anew``."""

    ways: _Ways
    versions: Versions
    renamed: RenamedList
    asked: Questions
    anew: RecomputedTemporaries

    def overlap(self, tiled: bool) -> Steps[Overlap | _Stay | str | None]:
        """The launches; where they are ``tiled``, work-groups compute what their work-items
        exchange, in local memory."""
        exchanged = frozenset(
            t.producer
            for t in self.anew.found.values()
            if any(prod(items) > 1 for items in t.halo.values())
        )
        if not tiled:
            return (yield from self._with(frozenset()))
        return (yield from self._with(exchanged)) if exchanged else None

    def _with(self, tiled: frozenset[int]) -> Steps[Overlap | _Stay | str]:
        """The launches in which the work of the producers ``tiled`` is done for a tile and its halo
        by work-groups, and that of the others by each work-item that reads it."""
        questions, ways, all_found = self.asked, self.ways, self.anew.found
        rest = RecomputedTemporaries(
            {g: t for g, t in all_found.items() if t.producer not in tiled}
        )
        apart = [t for t in all_found.values() if t.producer in tiled]
        made = yield from overlapped_list(questions, rest, ways.inlined)
        if rest.refused and tiled:
            return (yield from self._with(tiled | {all_found[g].producer for g in rest.refused}))
        if rest.refused:
            return _Stay({self._key(all_found[g]): reason for g, reason in rest.refused.items()})
        if made is None:
            made = unchanged_list(questions)
        origin = {place: self.renamed.origins[o] for place, o in made.origins.items()}
        varies = [place for place, o in origin.items() if o in ways.varying]
        values = {place: ways.fixed[o] for place, o in origin.items() if o in ways.fixed}
        asked = questions
        if rest.found:
            answers = questions.answers
            asked = Questions(made.submissions, varies, questions.numbers, answers=answers)
        raw = yield from direct_dependences(asked)
        decided = {
            asked.place[t.producer, t.argument].group: self._decision(t, t.producer in tiled)
            for t in all_found.values()
        }
        options = ways.options
        if options.promote == "none":
            options = options._replace(promote="flagged")
            decided |= self._kept(asked, options)
        producers: dict[int, tuple[int, ...]] = {}
        for t in apart:
            producers[t.producer] = (*producers.get(t.producer, ()), t.argument)
        tiles = TiledStages(asked, producers, ways.target)
        decided |= tiles.kept()
        absent = {*made.absent, *producers}
        split_options = SplitOptions(
            ways.barrierless, wanted_by(options), ways.target, lambda: ways.target, absent,
            tiles.consumers,
        )  # fmt: skip
        stages = yield from split(asked, tiles.dependences(raw), split_options)
        scopes, layout = yield from promoted(asked, raw, stages, options, ways.target, decided)
        unfit = tiles.unfit(layout.stages, layout.moved)
        if unfit is not None:
            return unfit
        kernels = StageKernels(asked, options, ways.target, values, made.absent)
        plans: list[StagePlan] = []
        for stage, moved in zip(layout.stages, layout.moved, strict=True):
            if tiles.of_stage(stage):
                plan = yield from tiles.launch(stage, moved, kernels)
                if isinstance(plan, str):
                    return plan
            else:
                plan = kernels.plan(stage, kernels.fused(stage, moved))
                yield "passes"
            plans.append(plan)
        users = ways.rows.users_list(self.renamed.numbers, origin, self.renamed.ranges)
        decisions = self._decisions(layout, users)
        return Overlap(
            found=users.scopes(map(tiles.explained, scopes)),
            layout=replace(layout, decisions=decisions),
            plans=users.launches(plans),
            recomputed=tuple(self._recomputation(t) for t in all_found.values()),
            validity=users.validity(asked.validity, questions.validity),
        )

    def _key(self, t: Temporary) -> Key:
        return self.renamed.versions[t.producer, t.argument]

    def _decision(self, t: Temporary, tiled: bool) -> PromotionDecision:
        label = self.asked.buffer_name(t.producer, t.argument)
        if tiled:
            return PromotionDecision(
                label, t.producer, t.argument, "local",
                "a work-group computes what its tile reads, its halo too",
            )  # fmt: skip
        return PromotionDecision(
            label, t.producer, t.argument, "private",
            "nothing is stored: who reads an element computes it anew",
        )  # fmt: skip

    def _kept(self, asked: Questions, options: FusionOptions) -> dict[int, PromotionDecision]:
        """The user's flagged memory, by alias group, which stays where it is."""
        own = {asked.place[at].group for at in self.renamed.versions}
        return {
            group: PromotionDecision(
                asked.buffer_name(*places[0]), *places[0], "global", PROMOTE_NONE
            )
            for group, places in flagged(asked, options)
            if group not in own
        }

    def _decisions(self, layout: Promotions, users: UsersList) -> tuple[PromotionDecision, ...]:
        """What became of each flagged buffer, and why it is not computed anew where it is not."""
        questions = self.ways.questions
        if self.ways.options.promote == "none":
            return tuple(self.ways.decisions)
        wanted = {questions.place[d.submission, d.argument].group for d in self.ways.decisions}
        found: dict[int, PromotionDecision] = {}
        for decision in layout.decisions:
            submission, argument = users.origins[decision.submission, decision.argument]
            group = questions.place[submission, argument].group
            if group not in wanted or (
                group in found and (found[group].scope == "global" or decision.scope != "global")
            ):
                continue
            reason = decision.reason
            refused = self.versions.refused.get(group)
            if decision.scope == "global" and refused is not None and refused not in reason:
                reason = f"{reason}; it is not computed anew: {refused}"
            found[group] = replace(
                decision,
                buffer=questions.buffer_name(submission, argument),
                submission=submission,
                argument=argument,
                reason=reason,
            )
        return tuple(found[group] for group in sorted(found))

    def _recomputation(self, t: Temporary) -> Recomputation:
        numbers = self.renamed.numbers
        producer, group = self._key(t)
        argument = self.versions.found[producer, group].argument
        halos = {numbers[s]: halo for s, halo in t.halo.items() if numbers[s] != producer}
        return Recomputation(
            self.ways.questions.buffer_name(producer, argument),
            producer,
            argument,
            tuple(halos),
            tuple(halos.values()),
            (producer, group) in self.renamed.stored,
        )


def _places(renamed: RenamedList, places: Collection[ScalarPlace]) -> list[ScalarPlace]:
    """The arguments of the renamed list that are those at ``places`` of the user's."""
    return [place for place, origin in renamed.origins.items() if origin in places]


def _nothing(
    questions: Questions,
    refused: Mapping[int, str],
    dependences: Sequence[Sequence[PairScope]] = (),
) -> str:
    """Why nothing is computed anew in a list with these ``dependences``."""
    if not refused:
        reads = (d for needed in dependences for d in needed if d.kind == "RAW")
        unknown = next((d for d in reads if d.scope == "UNKNOWN"), None)
        if unknown is None:
            return NOTHING_EXCHANGED
        consumer, producer = (questions.numbers[s] for s in (unknown.consumer, unknown.producer))
        return (
            f"nothing is computed anew: what submission {consumer} reads of submission {producer} "
            f"is not known ({unknown.reason})"
        )
    label = {lies.group: place for place, lies in reversed(questions.place.items())}
    reasons = dict.fromkeys(
        f"`{questions.buffer_name(*label[group])}`: {reason}" for group, reason in refused.items()
    )
    return f"no temporary is computed anew: {'; '.join(reasons)}"
