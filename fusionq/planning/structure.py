"""What lists of submissions have in common that one plan can serve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias
from weakref import WeakValueDictionary

from fusionq.analysis.aliasing import Place, has_unit_stride, is_contiguous, places
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import ArrayArgument, Sized, Submission, SubmissionForm
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target

Structure: TypeAlias = tuple[tuple[Hashable, ...], Hashable, Hashable, Hashable, Hashable]


def structure_key(submissions: Sequence[Submission], options: FusionOptions) -> Structure:
    """What a plan depends on beside its validity and its target: kernels, types, aliasing, flags,
    the order of all sizes, and options; not the sizes themselves.

    For tables of this process; ``structure_text`` is for others.
    """
    arrays = [a for s in submissions for a in s.arguments if isinstance(a, ArrayArgument)]
    return structure_of(submissions, places(arrays), options)


def structure_of(
    submissions: Sequence[Sized], aliasing: tuple[Place, ...], options: FusionOptions
) -> Structure:
    """``structure_key``, where the places of all array arguments are known."""
    forms: list[SubmissionForm] = []
    sizes: list[int] = []
    for submission in submissions:
        form = submission.form
        if form is None:
            assert isinstance(submission, Submission)
            form = form_of(submission)
        forms.append(form)
        sizes += global_range(submission)
        for shape in submission.shapes():
            sizes += shape
    if sizes.count(sizes[0]) == len(sizes):  # as below, of one size
        return (*forms, *[0] * len(sizes)), aliasing, (0,), None if sizes[0] else 0, options.of_plan
    numbers: dict[int, int] = {}  # each size gets a number where it first appears
    number = numbers.setdefault
    parts = *forms, *[number(size, len(numbers)) for size in sizes]
    order = tuple([numbers[size] for size in sorted(numbers)])
    return parts, aliasing, order, numbers.get(0), options.of_plan


def structure_text(submissions: Sequence[Submission], target: Target) -> Hashable:
    """The same with the target in place of options, and with the forms' contents, once each, which
    mean the same in every process."""
    parts, *others, _ = structure_key(submissions, FusionOptions())
    forms: dict[SubmissionForm, str] = {}
    named = [
        forms.setdefault(p, f"form {len(forms)}") if isinstance(p, SubmissionForm) else p
        for p in parts
    ]
    return tuple([form.parts for form in forms]), tuple(named), *others, target


_forms: WeakValueDictionary[Hashable, SubmissionForm] = WeakValueDictionary()


def form_of(submission: Submission) -> SubmissionForm:
    """The form of a submission; the same object for equal ones."""
    arrays = [a for a in submission.arguments if isinstance(a, ArrayArgument)]
    flags: list[Hashable] = []
    for array in arrays:
        flags += (
            is_contiguous(array),
            has_unit_stride(array),
            array.buffer_flag,
            array.access_flag,
            array.internal,
            array.alignment,
        )
    parts = submission.fingerprint, submission.signature, local_range(submission), tuple(flags)
    form = _forms.get(parts)
    if form is None:
        dtypes, contiguous = tuple([a.dtype for a in arrays]), all(map(is_contiguous, arrays))
        units = tuple([a.alignment or a.dtype.nbytes for a in arrays])
        form = SubmissionForm(parts, _positions(submission), dtypes, units, contiguous)
        form = _forms.setdefault(parts, form)
    return form


def _positions(submission: Submission) -> tuple[int, ...]:
    """For each argument how many of its kind come before it."""
    kinds = [type(a) for a in submission.arguments]
    return tuple([kinds[:k].count(kind) for k, kind in enumerate(kinds)])
