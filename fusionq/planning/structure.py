"""What lists of submissions have in common that one plan can serve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from weakref import WeakValueDictionary

from fusionq.analysis.aliasing import has_unit_stride, is_contiguous, places
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import ArrayArgument, Form, Submission
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target


def structure_key(
    submissions: Sequence[Submission], options: FusionOptions
) -> tuple[tuple[Hashable, ...], Hashable, Hashable, Hashable, Hashable]:
    """What a plan depends on beside its validity and its target: kernels, types, aliasing, flags,
    the order of all sizes, and options; not the sizes themselves.

    For tables of this process; ``structure_text`` is for others.
    """
    numbers: dict[int, int] = {}  # each size gets a number where it first appears
    number = numbers.setdefault
    arrays: list[ArrayArgument] = []
    parts: list[Hashable] = []
    for submission in submissions:
        parts.append(submission.form or form_of(submission))
        for n in global_range(submission):
            parts.append(number(n, len(numbers)))
        for argument in submission.arguments:
            if isinstance(argument, ArrayArgument):
                arrays.append(argument)
                for n in argument.shape:
                    parts.append(number(n, len(numbers)))
    order = tuple([numbers[size] for size in sorted(numbers)])
    return tuple(parts), places(arrays), order, numbers.get(0), options.of_plan


def structure_text(
    submissions: Sequence[Submission], options: FusionOptions, target: Target
) -> Hashable:
    """The same with the target, and with the forms' contents, once each, which mean the same in
    every process."""
    parts, *others = structure_key(submissions, options)
    forms: dict[Form, str] = {}
    named = [forms.setdefault(p, f"form {len(forms)}") if isinstance(p, Form) else p for p in parts]
    return tuple([form.parts for form in forms]), tuple(named), *others, target


_forms: WeakValueDictionary[Hashable, Form] = WeakValueDictionary()


def form_of(submission: Submission) -> Form:
    """The form of a submission; the same object for equal ones."""
    flags: list[Hashable] = []
    for argument in submission.arguments:
        if isinstance(argument, ArrayArgument):
            flags += (
                is_contiguous(argument),
                has_unit_stride(argument),
                argument.buffer_flag,
                argument.access_flag,
                argument.internal,
            )
    parts = submission.fingerprint, submission.signature, local_range(submission), tuple(flags)
    form = _forms.get(parts)
    if form is None:
        form = _forms.setdefault(parts, Form(parts))
    return form
