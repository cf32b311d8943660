"""The slow path of ``submit``: check a submission that has not been seen before."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fusionq.analysis.item_space import local_range
from fusionq.analysis.kernel_facts import KernelFacts, facts_of
from fusionq.analysis.submission import (
    ArrayArgument,
    DeferredKernel,
    ScalarArgument,
    ScalarValue,
    Submission,
)
from fusionq.analysis.validity import Validity
from fusionq.backends.base import Backend
from fusionq.base.call_site import located, user_span
from fusionq.base.errors import ArgumentError, DeviceError, KernelLanguageError
from fusionq.base.interned import interned_by_identity
from fusionq.base.options import DEFAULT, ErrorModel
from fusionq.base.phases import timed
from fusionq.base.recursion import room_for_recursion
from fusionq.base.span import Span
from fusionq.base.target import Target
from fusionq.cache.entries import MOST_VARIANTS, keep_check, kept_check
from fusionq.frontend.dialect import counterpart, dialect_kernel
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import (
    Signature,
)
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.planning.structure import form_of, structure_key
from fusionq.submission.arguments import describe_arguments
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import DeferredSubmission, KnownSubmission
from fusionq.submission.pending import SubmissionList
from fusionq.submission.requirements import (
    check_atomics,
    check_broadcasts,
    check_local_memory,
    check_private_memory,
    check_sub_groups,
    check_work_group,
    check_writable,
    sub_group_size,
)
from fusionq.submission.value_checks import check_apart, check_bounds

if TYPE_CHECKING:
    from fusionq.analysis.stored_whole import WholeStores


def admit(
    backend: Backend,
    kernel: object,
    range: object,
    args: Sequence[object],
    timings: dict[str, float],
    error_model: ErrorModel,
) -> KnownSubmission:
    """Check a submission and type its kernel; adds the seconds by phase to ``timings``.

    Raises ArgumentError (kernel, range, argument count, types, layouts, read-only arrays,
    indices that provably exceed an extent), DeviceError (memory that the device cannot reach)
    and KernelLanguageError; each with file and line.
    """
    span = user_span()
    with _told_where(span), room_for_recursion("the kernel"):
        with timed(timings, "frontend"):
            function = _kernel_function(kernel).under(error_model)
            submission = _submission(backend, span, function, range, args)
            submission = replace(submission, form=form_of(submission))
        checked = _checked_kernel(submission, backend.target, timings)
        with timed(timings, "frontend"):
            entry = _entry(backend, submission, checked, args)
        _check(entry, checked.facts, backend.target, timings)
    return entry


def _submission(
    backend: Backend, span: Span, function: KernelFunction, range: object, args: Sequence[object]
) -> Submission:
    """Kernel, range and arguments by their types; the kernel is not yet typed."""
    index_space = _index_space(function, counterpart(range))
    args = [counterpart(value) for value in args]
    arguments, types = describe_arguments(backend, function, span, args)
    signature = Signature(
        "nd_item" if isinstance(index_space, NdRange) else "item",
        index_space.ndim,
        types,
        sub_group_size(backend, function),
    )
    check_work_group(function, index_space, backend.info)
    return Submission(
        0,
        DeferredKernel(function.name, partial(function.specialise, signature)),
        signature,
        function.fingerprint,
        index_space,
        arguments,
        span,
        function.text,
        partial(function.specialise, signature, True),
    )


def _checked_kernel(
    submission: Submission, target: Target, timings: dict[str, float]
) -> _CheckedKernel:
    """What is known of the kernel of ``submission`` and its structure: in this process, from an
    earlier one, or else by specialising the kernel now."""
    places = () if submission.text is None else submission.text.places
    key = places, structure_key((submission,), DEFAULT), interned_by_identity(target)
    known = _checked.get(key)
    if known is None:
        with timed(timings, "disk"):
            kept = kept_check(submission, target)
        if kept is None:
            with timed(timings, "import"):
                from fusionq.submission.waiting_loops import refuse_waiting_loops

            with timed(timings, "frontend"):
                refuse_waiting_loops(submission.ir)
                known = _CheckedKernel(_facts(submission, target), [])
        else:
            known = _CheckedKernel(kept.facts, list(kept.passed))
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked[key] = known
    return known


def _facts(submission: Submission, target: Target) -> KernelFacts:
    """The facts of the kernel of ``submission``, with the local memory of its work-groups."""
    facts = facts_of(submission.ir, submission.arguments)
    if not facts.ordered_functions:
        return facts
    from fusionq.passes.local_memory import launched_bytes  # few kernels need it

    taken = launched_bytes(submission.ir, local_range(submission), target.device)
    return replace(facts, local_bytes=taken)


def _entry(
    backend: Backend, submission: Submission, checked: _CheckedKernel, args: Sequence[object]
) -> KnownSubmission:
    """The submission with what its kernel does to its arguments, checked."""
    facts = checked.facts
    if facts.notes:
        submission = replace(submission, notes=facts.notes)
    arguments, space = submission.arguments, submission.range
    if facts.ndim != space.ndim:
        raise ArgumentError(
            f"kernel {facts.name!r} runs over {facts.ndim} dimensions, not over the "
            f"{space.ndim} of {space!r}"
        )
    check_local_memory(backend, submission, facts)
    check_private_memory(backend.info, submission, facts)
    check_sub_groups(facts, space)
    check_broadcasts(facts, space)
    check_apart(facts.name, facts.apart, arguments)
    check_atomics(facts, arguments)
    check_writable(facts, arguments, [counterpart(value) for value in args])
    entry = KnownSubmission(
        DeferredSubmission(submission),
        tuple(a.name in facts.stored for a in arguments if isinstance(a, ArrayArgument)),
        sum(isinstance(a, ScalarArgument) for a in arguments),
        facts.bounds,
        check_again,
        checks=checked.passed,
        whole_stores=checked.whole_stores,
        apart=facts.apart,
    )
    check_bounds(entry, entry.deferred.operands.values)
    return entry


def check_again(entry: KnownSubmission, values: Sequence[ScalarValue]) -> None:
    """Check a known submission with integer ``values`` that it has not been seen with; raises as
    ``admit`` does."""
    alone = SubmissionList.of([entry], CallArguments.of((), (), values))
    (operands,), span = alone.operands(), user_span()
    with _told_where(span):
        if not entry.passes(operands):
            from fusionq.planning.submission_check import check_submission

            submission = replace(alone.submissions()[0], span=span)
            entry.checks.insert(0, check_submission(submission, entry.checks))
            del entry.checks[MOST_VARIANTS:]
            entry.passes(operands)


def _check(
    entry: KnownSubmission, facts: KernelFacts, target: Target, timings: dict[str, float]
) -> None:
    """Prove that no access certainly leaves its array and no barrier is certainly missed, unless
    what was proved before, here or in an earlier process, says so for these sizes and integers
    too; remember it."""
    submission, operands = entry.submission, entry.deferred.operands
    if entry.passes(operands):
        return
    with timed(timings, "import"):
        from fusionq.planning.submission_check import check_submission

    with timed(timings, "analysis"):
        validity = check_submission(submission, entry.checks)
    entry.checks.insert(0, validity)
    del entry.checks[MOST_VARIANTS:]
    entry.passes(operands)
    with timed(timings, "disk"):
        keep_check(submission, target, facts, entry.checks)


@dataclass(slots=True)
class _CheckedKernel:
    """A kernel that submissions of one structure use, and for which sizes and integers
    ``check_submission`` has let it pass."""

    facts: KernelFacts
    passed: list[Validity]
    whole_stores: list[WholeStores] = field(default_factory=list)


_MOST_CHECKED = 4096

_checked: dict[Hashable, _CheckedKernel] = {}
"""By where the kernel's source stands and the structure of the submission."""


@contextmanager
def _told_where(span: Span) -> Iterator[None]:
    """Errors inside the block name the call of ``submit``."""
    try:
        yield
    except (ArgumentError, DeviceError) as error:
        raise type(error)(located(span, str(error))) from None
    except KernelLanguageError as error:
        raise KernelLanguageError(f"{error}\n  Submitted at {span}.") from None


def _kernel_function(kernel: object) -> KernelFunction:
    if isinstance(kernel, KernelFunction):
        return kernel
    found = dialect_kernel(kernel)
    if found is not None:
        return found
    hint = (
        "decorate the function with @fusionq.kernel"
        if callable(kernel)
        else ("the order is submit(kernel, range, *args)")
    )
    raise ArgumentError(f"submit takes a kernel first, not {type(kernel).__name__}; {hint}")


def _index_space(function: KernelFunction, range: Any) -> Range | NdRange:
    shape = getattr(range, "shape", None)
    if isinstance(shape, tuple) and shape:  # an array's
        size = shape if len(shape) > 1 else shape[0]
        raise ArgumentError(
            f"submit takes a range second, not {type(range).__name__} of shape {shape}; the "
            f"order is submit(kernel, range, *args), such as submit({function.name}, {size}, …)"
        )
    space = range if isinstance(range, NdRange) else as_range(range)
    annotation = function.item_annotation
    if annotation == "nd_item" and isinstance(space, Range):
        raise ArgumentError(
            f"kernel {function.name!r} runs over an NdItem, which an NdRange gives, not "
            f"{space!r}; submit it with NdRange(global_range, local_range)"
        )
    return space
