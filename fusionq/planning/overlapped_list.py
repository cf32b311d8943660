"""A list without the submissions whose results others compute anew.

Submissions keep their numbers and their arguments their positions.  Those that are computed anew
do nothing any more; the others have their statements, and after their own arguments those of the
inlined kernels.  All that planning asks of a list is then asked of this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from fusionq.analysis.item_space import global_range
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import Argument, ArrayArgument, Submission
from fusionq.base.frozen import dataclass
from fusionq.base.steps import Steps
from fusionq.ir.nodes import Expr, Extent, ItemQuery
from fusionq.ir.walk import expressions, rewrite_body
from fusionq.passes.inline_producer import NotInlined, Producer
from fusionq.planning.inlined_kernels import InlinedKernels
from fusionq.planning.recomputing import RecomputedTemporaries, Temporary
from fusionq.planning.writing_items import writing_items

Place = tuple[int, int]
"""A submission and the position of one of its arguments."""


@dataclass(frozen=True)
class OverlappedList:
    """``submissions`` that do what those of a list do; ``absent``: those of them that do nothing,
    each with the first of those that do its work; ``origins``: whose each argument is."""

    submissions: tuple[Submission, ...]
    absent: Mapping[int, int]
    origins: Mapping[Place, Place]


def overlapped_list(
    questions: Questions, found: RecomputedTemporaries, inlined: InlinedKernels
) -> Steps[OverlappedList | None]:
    """The list in which the temporaries ``found`` are computed anew; what cannot be inlined is
    refused there.  None if nothing is left.  ``inlined``: what has been inlined before."""
    while found.found:
        made = yield from _made(questions, found, inlined)
        if isinstance(made, OverlappedList):
            return made
        producer, reason = made
        for t in list(found.found.values()):
            if t.producer == producer:
                found.refuse(t.group, reason)
    return None


def unchanged_list(questions: Questions) -> OverlappedList:
    """The list as it is."""
    return OverlappedList(questions.submissions, {}, _own_places(questions))


def _own_places(questions: Questions) -> dict[Place, Place]:
    return {
        (s, k): (s, k)
        for s, each in enumerate(questions.submissions)
        for k in range(len(each.arguments))
    }


def _made(
    questions: Questions, found: RecomputedTemporaries, kernels: InlinedKernels
) -> Steps[OverlappedList | tuple[int, str]]:
    """The list, or a producer that cannot be inlined, and why."""
    submissions = questions.submissions
    producers: dict[int, list[Temporary]] = {}
    for t in found.found.values():
        producers.setdefault(t.producer, []).append(t)
    made = list(submissions)
    origins = _own_places(questions)
    absent: dict[int, int] = {}
    numbers: dict[int, int] = {}
    """Of kernels, by identity: equal ones are one object."""
    prepared: dict[int, Producer] = {}
    for p, written in producers.items():
        try:
            prepared[p] = _producer(submissions[p], written, kernels)
        except NotInlined as reason:
            return p, str(reason)
    for s, submission in enumerate(submissions):
        if s in producers:
            empty = replace(submission.ir, variables=(), body=(), arrays=())
            fingerprint = f"{submission.fingerprint} absent"
            made[s] = replace(submission, kernel=empty, fingerprint=fingerprint)
            continue
        own_kernel = kernel = kernels.kernel(submission.ir)
        arguments = list(submission.arguments)
        while True:
            read = _read(kernels.loaded(kernel), questions, s, origins, arguments, found)
            if not read:
                break
            p = max(t.producer for t in read.values())
            absent.setdefault(p, s)
            own = {t.group: _name(submissions[p], t.argument) for t in producers[p]}
            names = {name: own[t.group] for name, t in read.items() if t.producer == p}
            try:
                inlined = kernels.inlined(kernel, names, prepared[p])
            except NotInlined as reason:
                return p, f"{submissions[p].ir.name} is not inlined into {kernel.name}: {reason}"
            kernel = inlined.kernel
            position = {a.name: k for k, a in enumerate(submissions[p].arguments)}
            for name, fresh in inlined.params.items():
                origins[s, len(arguments)] = p, position[name]
                arguments.append(replace(submissions[p].arguments[position[name]], name=fresh))
            yield "passes"
        if kernel is not own_kernel:
            number = numbers.setdefault(id(kernel), len(numbers))
            made[s] = replace(
                submission,
                kernel=kernel,
                arguments=tuple(arguments),
                fingerprint=f"{submission.fingerprint} with producers {number}",
                form=None,
            )
    return OverlappedList(tuple(made), absent, origins)


def _read(
    loaded: Collection[str],
    questions: Questions,
    s: int,
    origins: Mapping[Place, Place],
    arguments: list[Argument],
    found: RecomputedTemporaries,
) -> dict[str, Temporary]:
    """The temporaries among the arrays that submission ``s`` has ``loaded`` from, by parameter."""
    read = {}
    for k, argument in enumerate(arguments):
        if argument.name in loaded and isinstance(argument, ArrayArgument):
            t = found.found.get(questions.place[origins[s, k]].group)
            if t is not None:
                read[argument.name] = t
    return read


def _name(submission: Submission, argument: int) -> str:
    return submission.arguments[argument].name


def _producer(
    submission: Submission, written: list[Temporary], kernels: InlinedKernels
) -> Producer:
    """What is inlined of a submission; NotInlined where it cannot be."""
    extents = global_range(submission)
    kernel = submission.ir
    params = {param.name for param in kernel.params}
    sizes = {
        extent: Extent(argument.name, dim)
        for argument in submission.arguments
        if isinstance(argument, ArrayArgument) and argument.name in params
        for dim, extent in enumerate(argument.shape)
    }
    for e in expressions(kernel.body):
        if isinstance(e, ItemQuery) and e.query == "global_range" and extents[e.dim] not in sizes:
            raise NotInlined(
                f"{kernel.name} asks for its range, which is the extent of none of its arrays"
            )

    def expr(e: Expr) -> Expr:
        if isinstance(e, ItemQuery) and e.query == "global_range":
            return sizes[extents[e.dim]]
        return e

    own = {
        argument.name: writing_items(submission, t.writer)
        for t in written
        for k, argument in enumerate(submission.arguments)
        if k == t.argument
    }
    return kernels.producer(replace(kernel, body=rewrite_body(kernel.body, expr)), own)
