"""The slow path of ``submit``: check a submission that has not been seen before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fusionq.analysis.kernel_facts import KernelFacts, facts_of
from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    DeclaredArgument,
    DeferredKernel,
    FieldPath,
    Promotion,
    ScalarArgument,
    ScalarValue,
    Submission,
    parameter_of,
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
from fusionq.frontend.constants import tuple_type
from fusionq.frontend.dialect import counterpart, dialect_kernel
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.record_arrays import field_arrays
from fusionq.frontend.signature import (
    ArgumentType,
    ArrayType,
    LocalType,
    Signature,
    part_names,
)
from fusionq.ir.nodes import Kernel
from fusionq.ir.record_types import Member, RecordType, members, record_type
from fusionq.ir.types import (
    COMPLEX64,
    COMPLEX128,
    ELEMENT_TYPES,
    FLOAT32,
    ScalarType,
    complex_type_of,
    component_type,
    element_type,
    type_of_scalar,
)
from fusionq.ir.waiting_loops import loops_that_wait_for_other_items, retries_that_wait
from fusionq.language.local_memory import LocalAccessor
from fusionq.language.ranges import NdRange, Range, as_range
from fusionq.memory.buffer import AccessorArgument, Buffer, RecordBuffer
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray, components
from fusionq.memory.storage import check_reachable
from fusionq.planning.structure import form_of, structure_key
from fusionq.submission.pending import (
    DeferredSubmission,
    KnownSubmission,
    SubmissionList,
    check_apart,
    check_bounds,
)
from fusionq.submission.run import CallArguments


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
    names = function.names_of(len(args))
    if len(args) != len(names):
        raise ArgumentError(
            f"kernel {function.name!r} takes {len(names)} arguments after its item "
            f"({', '.join(names) or 'none'}), not {len(args)}"
        )
    labels = function.labels(span, names)
    given: list[Argument | _Records] = []
    types: list[ArgumentType] = []
    for name, label, value in zip(names, labels, args, strict=True):
        whole = complex_type_of(value)
        if whole is None:
            given.append(_argument(backend, name, label, value))
            types.append(_argument_type(given[-1]))
        else:
            given += _parts(name, part_names(name, names), label, value)
            types.append(whole)
    arguments = _named(given, types, function)
    signature = Signature(
        "nd_item" if isinstance(index_space, NdRange) else "item",
        index_space.ndim,
        tuple(types),
        _sub_group_size(backend, function),
    )
    _check_work_group(function, index_space)
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
            with timed(timings, "frontend"):
                _refuse_waiting_loops(submission.ir)
                known = _CheckedKernel(facts_of(submission.ir, submission.arguments), [])
        else:
            known = _CheckedKernel(kept.facts, list(kept.passed))
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked[key] = known
    return known


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
    _check_local_memory(backend, submission, facts)
    _check_sub_groups(facts, space)
    check_apart(facts.name, facts.apart, arguments)
    _check_writable(facts, arguments, [counterpart(value) for value in args])
    entry = KnownSubmission(
        DeferredSubmission(submission),
        tuple(a.name in facts.stored for a in arguments if isinstance(a, ArrayArgument)),
        sum(isinstance(a, ScalarArgument) for a in arguments),
        facts.bounds,
        check_again,
        checks=checked.passed,
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
            from fusionq.planning.planner import check_submission

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
        from fusionq.planning.planner import check_submission

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
    space = range if isinstance(range, NdRange) else as_range(range)
    annotation = function.item_annotation
    if annotation == "nd_item" and isinstance(space, Range):
        raise ArgumentError(
            f"kernel {function.name!r} runs over an NdItem, which an NdRange gives, not "
            f"{space!r}; submit it with NdRange(global_range, local_range)"
        )
    return space


# --------------------------------------------------------------------------- arguments
@dataclass(frozen=True, slots=True)
class _Records:
    """An array of records: an argument for each member, none with the name of its array yet."""

    type: ArrayType
    members: tuple[ArrayArgument, ...]


def _named(
    given: Sequence[Argument | _Records],
    types: Sequence[ArgumentType],
    function: KernelFunction,
) -> tuple[Argument, ...]:
    """The arguments, those of records with the names that the kernel has for them."""
    if not any(isinstance(one, _Records) for one in given):
        return tuple([one for one in given if not isinstance(one, _Records)])
    names = function.field_names(types)
    found: list[Argument] = []
    for one in given:
        if isinstance(one, _Records):
            assert isinstance(one.type.dtype, RecordType)
            (parameter,) = {m.field.parameter for m in one.members if m.field is not None}
            arrays = field_arrays(parameter, one.type.dtype, names)
            pairs = zip(one.members, arrays, strict=True)
            found += [replace(member, name=array.name) for member, array in pairs]
        else:
            found.append(one)
    return tuple(found)


def _argument(backend: Backend, name: str, label: str, value: object) -> Argument | _Records:
    if isinstance(value, Buffer):
        return _buffer_arguments(name, label, value, None)
    promote: Promotion | None = None
    if isinstance(value, AccessorArgument):
        promote = value.promote
        value = value.buffer
        if isinstance(value, Buffer):
            return _buffer_arguments(name, label, value, promote)
    if isinstance(value, (bool, int, float, np.generic)):
        return _scalar_argument(name, label, value)
    if isinstance(value, LocalAccessor):
        kind = LocalType(record_type(value.dtype) or _element_type(value.dtype), value.shape)
        return DeclaredArgument(name, label, kind)
    if isinstance(value, (tuple, list)):
        return _tuple_argument(name, label, value)
    try:
        foreign = describe(value)
        if foreign is not None:
            check_reachable(backend, foreign.usm_interface, "this array", foreign.home)
            if foreign.dtype.names is None:
                return _foreign_argument(name, label, foreign, promote)
            return _records(
                name,
                foreign.dtype,
                foreign.shape,
                lambda member: _foreign_argument(name, label, foreign.member(member), promote),
            )
    except (ArgumentError, DeviceError) as error:
        raise type(error)(f"argument {name!r}: {error}") from None
    raise ArgumentError(
        f"argument {name!r} is of type {type(value).__name__}; a kernel takes Buffers, "
        "arrays (NumPy's, and what has __sycl_usm_array_interface__, __cuda_array_interface__, "
        "__dlpack__, __array_interface__ or the buffer protocol), numbers and tuples of numbers; "
        "wrap others with numpy.asarray or fusionq.Buffer"
    )


def _element_type(dtype: np.dtype[Any]) -> ScalarType:
    found = element_type(dtype)
    assert found is not None
    return found


def _component_type(dtype: np.dtype[Any]) -> ScalarType:
    return component_type(_element_type(dtype))


def _buffer_arguments(
    name: str, label: str, buffer: Buffer, promote: Promotion | None
) -> Argument | _Records:
    if not isinstance(buffer, RecordBuffer):
        return _buffer_argument(name, label, buffer, promote)
    return _records(
        name,
        buffer.dtype,
        buffer.shape,
        lambda member: _buffer_argument(name, label, buffer.member(member), promote),
    )


def _records(
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    argument: Callable[[Member], ArrayArgument],
) -> _Records:
    type = record_type(dtype)
    assert type is not None
    found = [(member, argument(member)) for member in members(dtype)]
    fields = [replace(a, field=FieldPath(name, member.path)) for member, a in found]
    return _Records(ArrayType(type, len(shape)), tuple(fields))


def _buffer_argument(
    name: str, label: str, buffer: Buffer, promote: Promotion | None
) -> ArrayArgument:
    storage = buffer._storage
    shape, strides = components(buffer.shape, buffer.strides, buffer.dtype)
    return ArrayArgument(
        name=name,
        label=label,
        dtype=_component_type(buffer.dtype),
        shape=shape,
        strides=strides,
        storage=storage.token,
        offset=buffer._offset,
        address=None if storage.address is None else storage.address + buffer._offset,
        owned=storage.owned,
        buffer_flag=buffer._promotion,
        access_flag=promote,
        internal=buffer.internal,
        is_complex=buffer.dtype.kind == "c",
    )


def _foreign_argument(
    name: str, label: str, array: ForeignArray, promote: Promotion | None
) -> ArrayArgument:
    shape, strides = components(array.shape, array.strides, array.dtype)
    return ArrayArgument(
        name=name,
        label=label,
        dtype=_component_type(array.dtype),
        shape=shape,
        strides=strides,
        storage=-array.address,  # storages' tokens are positive
        offset=0,
        address=array.address,
        owned=False,
        access_flag=promote,
        is_complex=array.dtype.kind == "c",
    )


def _scalar_argument(name: str, label: str, value: Any) -> ScalarArgument:
    found = type_of_scalar(value)
    if isinstance(value, np.void):
        raise ArgumentError(
            f"argument {name!r} is a single record; pass an array of one, records[i:i + 1], or its "
            "fields"
        )
    if found is None:
        raise ArgumentError(
            f"argument {name!r} is a {type(value).__name__}; scalars are Python's bool, int, float "
            f"and complex, and NumPy's and ml_dtypes' {', '.join(ELEMENT_TYPES)}"
        )
    return ScalarArgument(name, label, found, value)


def _parts(
    name: str, names: Sequence[str], label: str, value: Any
) -> tuple[ScalarArgument, ScalarArgument]:
    """The real and the imaginary part of a complex scalar, with their ``names``."""
    real, imag = names
    return (
        _scalar_argument(real, f"{label}.real", value.real),
        _scalar_argument(imag, f"{label}.imag", value.imag),
    )


def _tuple_argument(
    name: str, label: str, value: tuple[object, ...] | list[object]
) -> DeclaredArgument:
    kind = tuple_type(value)
    if kind is None:
        raise ArgumentError(
            f"argument {name!r} is a {type(value).__name__} that has something else than numbers "
            "in it; a tuple or list of numbers is constant in the kernel, which is compiled for "
            "its values. Pass arrays as arguments of their own"
        )
    return DeclaredArgument(name, label, kind)


def _argument_type(argument: Argument | _Records) -> ArgumentType:
    if isinstance(argument, _Records):
        return argument.type
    if isinstance(argument, ArrayArgument):
        if argument.is_complex:
            whole = COMPLEX64 if argument.dtype == FLOAT32 else COMPLEX128
            return ArrayType(whole, len(argument.shape) - 1)
        return ArrayType(argument.dtype, len(argument.shape))
    return argument.type


# ------------------------------------------------------------------------------ checks
def _sub_group_size(backend: Backend, function: KernelFunction) -> int | None:
    """Work-items of the kernel's sub-groups, if it asks for them."""
    sizes, wanted = backend.info.sub_group_sizes, function.sub_group_size
    if wanted is None:
        usual = backend.target.sub_group_size
        return usual if usual in sizes else max(sizes, default=None)
    if wanted not in sizes:
        known = f"has {', '.join(map(str, sizes))}" if sizes else "has none"
        raise ArgumentError(
            f"kernel {function.name!r} wants sub-groups of {wanted} work-items; "
            f"{backend.info.name} {known} (device.sub_group_sizes)"
        )
    return wanted


def _check_work_group(function: KernelFunction, space: Range | NdRange) -> None:
    wanted = function.work_group_size
    local = tuple(space.local_range) if isinstance(space, NdRange) else None
    if wanted is not None and wanted != local:
        raise ArgumentError(
            f"kernel {function.name!r} is made with work_group_size={wanted}, and submitted over "
            f"{space!r}; submit it with NdRange(global_range, {wanted})"
        )


def _check_sub_groups(facts: KernelFacts, space: Range | NdRange) -> None:
    size = facts.sub_group_size
    if size is None:
        return
    local = space.local_range if isinstance(space, NdRange) else None
    if local is None or local[-1] % size:
        raise ArgumentError(
            f"kernel {facts.name!r} has sub-groups of {size} work-items, which fill its "
            f"work-groups' last dimension, and is submitted over {space!r}; submit it with an "
            f"NdRange whose last local extent is a multiple of {size}, or make the kernel with "
            "another sub_group_size"
        )


def _refuse_waiting_loops(kernel: Kernel) -> None:
    for loop, array in loops_that_wait_for_other_items(kernel):
        raise KernelLanguageError(
            f"{loop.span}: in {kernel.name!r}: this loop ends only when another work-item has "
            f"changed {array!r}\n    {loop.span.text}\n  SYCL does not promise that a work-item "
            "makes progress while others wait for it, so it need never end.  Submit two kernels, "
            "of which the first writes and the second reads, or meet at a group_barrier."
        )


    for loop, array in retries_that_wait(kernel):
        raise KernelLanguageError(
            f"{loop.span}: in {kernel.name!r}: this loop repeats a compare_exchange on {array!r} "
            "until another work-item has stored what it expects\n"
            f"    {loop.span.text}\n  SYCL does not promise that a work-item makes progress while "
            "others wait for it, so it need never end.  Try again with the value that was seen, "
            "which compare_exchange leaves in its PrivateArray; or submit two kernels."
        )


def _check_local_memory(backend: Backend, submission: Submission, facts: KernelFacts) -> None:
    taken = facts.local_bytes
    if taken > backend.info.local_memory_bytes:
        arrays = ", ".join(
            f"{a.name}: {a.dtype}{list(a.shape)}"
            for a in submission.ir.arrays
            if a.space == "local"
        )
        raise ArgumentError(
            f"kernel {facts.name!r} takes {taken} bytes of local memory for each work-group "
            f"({arrays}); {backend.info.name} has {backend.info.local_memory_bytes}. Pass "
            "smaller LocalAccessors"
        )


def _check_writable(
    facts: KernelFacts, arguments: tuple[Argument, ...], args: Sequence[object]
) -> None:
    arrays = [a for a in arguments if not isinstance(a, ScalarArgument)]
    parameters = dict.fromkeys(map(parameter_of, arrays))
    given = [v for v in args if not isinstance(v, (bool, int, float, complex, np.generic))]
    values = dict(zip(parameters, given, strict=True))
    for argument in arrays:
        value = values[parameter_of(argument)]
        if argument.name not in facts.stored or not isinstance(argument, ArrayArgument):
            continue
        if isinstance(value, AccessorArgument):
            value = value.buffer
        if isinstance(value, Buffer):
            writable = value._storage.writable
        else:
            foreign = describe(value)
            writable = foreign is None or foreign.writable
        if not writable:
            raise ArgumentError(
                f"kernel {facts.name!r} stores to argument {argument.parameter_text!r} "
                f"({argument.text}), which is a read-only array; pass a writable copy"
            )
