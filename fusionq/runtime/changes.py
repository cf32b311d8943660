"""Other arguments for a list that has been submitted: scalars, and Buffers of equal sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    ArrayPlace,
    ScalarArgument,
    ScalarValue,
    parameter_of,
)
from fusionq.base.articles import with_article
from fusionq.base.call_site import ambiguous_labels, user_span
from fusionq.base.errors import ArgumentError
from fusionq.ir.record_types import members
from fusionq.ir.types import complex_type_of
from fusionq.memory.buffer import Buffer, RecordBuffer
from fusionq.memory.foreign_array import alignment, components
from fusionq.memory.storage import Storage
from fusionq.submission.call_arguments import CallArguments
from fusionq.submission.known import KnownSubmission, array_arguments
from fusionq.submission.pending import SubmissionList
from fusionq.submission.value_checks import check_apart, check_values

_OF_ARRAYS = {
    "replay": "To change a Buffer, submit the list again",
    "update": "Arrays are changed by giving a Buffer",
}
"""What else one can do, by the method called."""


def changed_values(
    ended: SubmissionList, changed: Mapping[str, ScalarValue], method: str = "replay"
) -> list[ScalarValue]:
    """The list's scalar values with those of ``changed`` put in; ArgumentError, which names the
    ``method`` called, for a name or value that does not fit."""
    scalars = ended.scalars.arguments
    values = list(ended.values)
    given: set[int] = set()
    remedy = "put variables into the submit calls and use their names"
    for name, whole in changed.items():
        _check_told(ended, name, method)
        for part, value in _parts(name, whole):
            places = _places_of(scalars, part, method, remedy)
            if not places and not _places_of(scalars, _other_kind(name, whole), method, remedy):
                raise ArgumentError(
                    f"{user_span()}: the list has no scalar argument {name!r} to {method} with; it "
                    f"has {_names_of(scalars)}. {_OF_ARRAYS[method]}"
                )
            if not places or any(type(value) is not type(values[k]) for k in places):
                other = _places_of(scalars, _other_kind(name, whole), method, remedy)
                k = (places or other)[0]
                raise ArgumentError(
                    f"{user_span()}: {method}({name}=…) takes "
                    f"{with_article(_kind(scalars[k][1], values[k]))}, as "
                    f"in the list, not {type(whole).__name__}; for another type submit the list "
                    "again"
                )
            for k in places:
                values[k] = value
                given.add(scalars[k][0])
    for s in sorted(given):
        entry, first = ended.entries[s], ended.scalars.first[s]
        check_values(entry, values[first : first + entry.scalars])
    return values


def _parts(name: str, value: ScalarValue) -> list[tuple[str, ScalarValue]]:
    """The scalar, or the parts of a complex one, which are arguments of their own."""
    if complex_type_of(value) is None:
        return [(name, value)]
    return [(f"{name}.real", value.real), (f"{name}.imag", value.imag)]


def _other_kind(name: str, value: ScalarValue) -> str:
    """What is called so if the number in the list is real where ``value`` is complex, or the other
    way round."""
    return f"{name}.real" if complex_type_of(value) is None else name


def _kind(argument: Argument, value: ScalarValue) -> str:
    """The type of number that the list has, of which ``value`` may be a part."""
    if not isinstance(argument, ScalarArgument) or argument.part is None:
        return type(value).__name__
    return "complex" if type(value) is float else f"complex{2 * argument.type.bits}"


def changed_arrays(recorded: SubmissionList, changed: Mapping[str, Buffer]) -> SubmissionList:
    """The list with other Buffers, of the same sizes, layouts and flags, as arguments; raises as
    ``changed_values`` does."""
    arrays = [
        (s, argument, stores)
        for s, entry in enumerate(recorded.entries)
        for argument, stores in array_arguments(entry)
    ]
    memory = list(recorded.memory)
    moved: dict[int, dict[int, ArrayPlace]] = {}
    first = [0]
    for entry in recorded.entries:
        first.append(first[-1] + len(entry.stores))
    named = [(s, argument) for s, argument, _ in arrays]
    for name, buffer in changed.items():
        _check_told(recorded, name, "update")
        places = _places_of(
            named, name, "update", "put the Buffers into variables and use their names"
        )
        if not places:
            raise ArgumentError(
                f"{user_span()}: no array argument is called {name!r}; there are {_names_of(named)}"
            )
        for k in places:
            s, argument, stores = arrays[k]
            part = _field_of(name, buffer, argument)
            _check_alike(name, argument, part, stores)
            memory[k] = buffer._storage
            moved.setdefault(s, {})[k - first[s]] = _place_of(part)
    call = CallArguments.of(memory, [m for m in memory if not isinstance(m, Storage)], ())
    entries, call.values = list(recorded.entries), recorded.values
    for s, (entry, own) in enumerate(recorded.calls()):
        if s in moved:
            entries[s] = _elsewhere(entry, moved[s], own.values)
    return SubmissionList.of(entries, call)


def _check_told(submitted: SubmissionList, name: str, method: str) -> None:
    """ArgumentError if it cannot be told what is called ``name``: several calls stand on one line,
    and Python does not say which is which."""
    for s, entry in enumerate(submitted.entries):
        if s in submitted.calls_elsewhere:
            continue
        like = entry.deferred.like
        names = ambiguous_labels(like.span)
        if name in names or (names and name in map(parameter_of, like.arguments)):
            raise ArgumentError(
                f"{user_span()}: {method}({name}=…): what {name!r} means is ambiguous, since "
                f"several calls stand at {like.span}, with other arguments each; write each on a "
                "line of its own"
            )


def _places_of(
    arguments: Sequence[tuple[int, Argument]], name: str, method: str, remedy: str
) -> list[int]:
    """Which of the arguments, each with its submission, have that name, in the ``submit`` calls or
    else as parameters; ArgumentError where several are meant."""
    places = [k for k, (_, a) in enumerate(arguments) if a.label == name]
    if places:
        return places
    places = [k for k, (_, a) in enumerate(arguments) if parameter_of(a) == name]
    if len({arguments[k][1].label for k in places}) > 1:
        meant = [f"{arguments[k][1].label} of submission {arguments[k][0]}" for k in places]
        raise ArgumentError(
            f"{user_span()}: {method}({name}=…) could mean {', '.join(meant)}; {remedy}"
        )
    return places


def _names_of(arguments: Sequence[tuple[int, Argument]]) -> str:
    """All names that ``_places_of`` finds; not the text of numbers and sums, such as ``0``."""
    names = {a.label for _, a in arguments} | {parameter_of(a) for _, a in arguments}
    parts = {
        n for _, a in arguments if getattr(a, "part", None) for n in (a.label, parameter_of(a))
    }
    whole = {n.rpartition(".")[0] for n in parts}
    called = (n for n in (names - parts) | whole if n.replace(".", "_").isidentifier())
    return ", ".join(sorted(called)) or "none"


def _field_of(name: str, buffer: Buffer, argument: ArrayArgument) -> Buffer:
    """What of a Buffer takes the place of the argument: of records the same field."""
    if argument.field is None:
        return buffer
    if isinstance(buffer, RecordBuffer):
        for member in members(buffer.dtype):
            if member.path == argument.field.path:
                return buffer.member(member)
    raise ArgumentError(
        f"{user_span()}: update({name}=…) takes a Buffer like the one that was recorded, whose "
        f"records have a field {argument.parameter_text}; this one's elements are {buffer.dtype}"
    )


def _check_alike(name: str, argument: ArrayArgument, buffer: Buffer, stores: bool) -> None:
    """ArgumentError unless what was proved with ``argument`` holds with ``buffer``."""
    dims = len(argument.shape) - argument.is_complex
    bits = argument.dtype.bits
    had = {
        "dtype": f"complex{2 * bits}" if argument.is_complex else str(argument.dtype),
        "shape": argument.shape[:dims], "strides": argument.strides[:dims],
        "promotion": argument.buffer_flag, "internal": argument.internal,
        "memory of its own": argument.owned, "alignment": argument.alignment,
    }  # fmt: skip
    has = {
        "dtype": str(buffer.dtype), "shape": buffer.shape, "strides": buffer.strides,
        "promotion": buffer._promotion, "internal": buffer.internal,
        "memory of its own": buffer._storage.owned,
        "alignment": alignment(buffer.dtype, buffer._start, buffer.strides),
    }  # fmt: skip
    for what, value in had.items():
        if has[what] != value:
            raise ArgumentError(
                f"{user_span()}: update({name}=…) takes a Buffer like the one that was recorded, "
                f"whose {what} is {value}, not {has[what]}; record a graph with the other one, and "
                "give that to update(graph)"
            )
    if stores and not buffer._storage.writable:
        raise ArgumentError(
            f"{user_span()}: update({name}=…): a kernel stores to it, and this Buffer is around a "
            "read-only array"
        )


def _place_of(buffer: Buffer) -> ArrayPlace:
    storage = buffer._storage
    address = None if storage.address is None else storage.address + buffer._offset
    shape, strides = components(buffer.shape, buffer.strides, buffer.dtype)
    return shape, strides, storage.token, buffer._offset, address


def _elsewhere(
    entry: KnownSubmission, moved: Mapping[int, ArrayPlace], values: Sequence[ScalarValue]
) -> KnownSubmission:
    """The submission with some of its arrays at other places."""
    known = entry.sized or entry
    places = [moved.get(k, place) for k, place in enumerate(entry.deferred.operands.places)]
    check_values(known, values)
    found = known.elsewhere(places, values)
    assert found is not None
    if known.apart:
        check_apart(found.submission.name, known.apart, found.submission.arguments)
    return found
