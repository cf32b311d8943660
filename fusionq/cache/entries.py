"""What is kept on disk: checks of submissions, plans of lists, programs of kernels.

Everything is looked up by what it depends on (``fusionq.cache.keys``) and read as data: checks and
plans as JSON by their types, their conditions by a grammar, their kernels through the verifier.
What does not pass is as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from fusionq.analysis.kernel_facts import KernelFacts
from fusionq.analysis.submission import ScalarArgument, Submission
from fusionq.analysis.validity import Validity
from fusionq.backends.base import Backend, KeptProgram
from fusionq.base.config import debug_level
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.target import FloatMode, Target
from fusionq.cache.disk import disk_store
from fusionq.cache.kept_plan import KeptPlan, kept_plan, plan_of
from fusionq.cache.keys import digest
from fusionq.cache.list_keys import structure_digest
from fusionq.cache.relocation import Place, absolute, relative
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.cache.sharing import packed, unpacked
from fusionq.cache.validation import check_plan, check_validity
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir.nodes import Kernel
from fusionq.ir.verifier import VerificationError
from fusionq.planning.plan import Plan

T = TypeVar("T")

MOST_VARIANTS = 16
"""Answers for different sizes that one entry holds, the latest first."""

_NOT_TO_BE_HAD = (
    ValueError, TypeError, KeyError, IndexError, RecursionError, VerificationError,
    OSError,  # from looking at fusionq's own files, for the key
)  # fmt: skip
"""What data can raise that this version of fusionq has not written, or that cannot be kept."""


@dataclass(frozen=True, slots=True)
class CheckedKernel:
    """A kernel that submissions of one structure use: what ``submit`` has to know of it, and for
    which sizes its accesses and barriers have been checked."""

    facts: KernelFacts
    passed: tuple[Validity, ...]


# ------------------------------------------------------------------------------- checks
def kept_check(submission: Submission, target: Target) -> CheckedKernel | None:
    """What is known of the kernel of ``submission`` and its structure."""
    contents = _read(_structure("check", (submission,), FusionOptions(), target), "check")
    if contents is None:
        return None

    def checked() -> CheckedKernel:
        found = decode(CheckedKernel, absolute(json.loads(contents), functions_of((submission,))))
        for validity in found.passed:
            check_validity(validity, (submission,))
        scalars = sum(isinstance(a, ScalarArgument) for a in submission.arguments)
        if any(not 0 <= position < scalars for position, _, _ in found.facts.bounds):
            raise MalformedData("bounds of a scalar that there is not")
        if found.facts.sub_group_size not in (None, submission.signature.sub_group_size):
            raise MalformedData("sub-groups of another size")
        return found

    return _if_right(checked)


def keep_check(
    submission: Submission, target: Target, facts: KernelFacts, passed: Sequence[Validity]
) -> None:
    """Remember what was found out about ``submission``, the latest first."""
    checked = CheckedKernel(facts, tuple(dict.fromkeys(passed))[:MOST_VARIANTS])
    key = _structure("check", (submission,), FusionOptions(), target)

    def contents() -> bytes:
        return json.dumps(relative(encode(checked), functions_of((submission,)))).encode()

    _write(key, "check", contents)


# -------------------------------------------------------------------------------- plans
def kept_plans(
    submissions: Sequence[Submission], options: FusionOptions, target: Target
) -> tuple[Plan, ...]:
    """The plans for lists of the structure of ``submissions``."""
    contents = _read(_structure("plan", submissions, options, target), "plan")
    if contents is None:
        return ()

    def plans() -> tuple[Plan, ...]:
        data = absolute(unpacked(json.loads(contents)), functions_of(submissions))
        if type(data) is not list:
            raise MalformedData("a list of plans is expected")
        found = tuple(plan_of(decode(KeptPlan, plan)) for plan in data)
        for plan in found:
            check_plan(plan, submissions)
        return found

    return _if_right(plans) or ()


def keep_plans(
    plans: Sequence[Plan],
    submissions: Sequence[Submission],
    options: FusionOptions,
    target: Target,
) -> None:
    """Remember ``plans``, the latest first."""

    def contents() -> bytes:
        kept = [encode(kept_plan(plan)) for plan in plans[:MOST_VARIANTS]]
        data = relative(kept, functions_of(submissions))
        return json.dumps(packed(data)).encode()

    _write(_structure("plan", submissions, options, target), "plan", contents)


# ----------------------------------------------------------------------------- programs
def kept_program(backend: Backend, kernel: Kernel, fp: FloatMode) -> KeptProgram | None:
    """What is kept of the program of ``kernel``."""
    contents = _read(_program(backend, kernel, fp), "program")
    if contents is None:
        return None

    def program() -> KeptProgram:
        head, _, binary = contents.partition(b"\n")
        data = json.loads(head)
        shared = data if type(data) is dict else None  # its binary is one of several kernels
        source = decode(DeviceSource, data if shared is None else shared["source"])
        names = {param.name for param in kernel.params}
        if any(slot.param not in names for slot in source.slots):
            raise MalformedData("an argument of a parameter that there is not")
        _, found, rest = source.text.partition(f" {source.entry_point}(")
        arguments = 1 if source.is_packed else len(source.slots)
        if not found or sum(map(bool, rest.partition(")")[0].split(","))) != arguments:
            raise MalformedData("a kernel that its source does not have")
        if shared is None:
            return KeptProgram(source, binary or None)
        found_there = _shared_binary(shared["binary"])
        if found_there is None or type(shared["entry_point"]) is not str:
            raise MalformedData("a binary that is gone, or a kernel without a name")
        return KeptProgram(source, found_there or None, shared["entry_point"])

    return _if_right(program)


def keep_program(
    backend: Backend, kernel: Kernel, fp: FloatMode, program: Callable[[], KeptProgram | None]
) -> None:
    """Remember the program of ``kernel``; ``program`` is only asked for where it is kept."""

    def contents() -> bytes | None:
        kept = program()
        if kept is None:
            return None
        data, binary = encode(kept.source), kept.binary or b""
        if kept.entry_point is not None:
            shared = _share_binary(binary)
            data = {"source": data, "entry_point": kept.entry_point, "binary": shared}
            binary = b""
        return json.dumps(data).encode() + b"\n" + binary

    _write(_program(backend, kernel, fp), "program", contents)


def _share_binary(binary: bytes) -> str:
    """Keep the binary of several kernels once; under what."""
    store, name = disk_store(), hashlib.sha256(binary).hexdigest()
    if store is not None and store.get(name, "binary") is None:
        store.put(name, "binary", binary)
    return name


def _shared_binary(name: object) -> bytes | None:
    """What is kept so, nothing where the device gave no binary; None where it is gone."""
    store = disk_store()
    if store is None or type(name) is not str or not re.fullmatch("[0-9a-f]{64}", name):
        return None
    return store.get(name, "binary")


# --------------------------------------------------------------------------- the files
def _structure(
    kind: str, submissions: Sequence[Submission], options: FusionOptions, target: Target
) -> Callable[[], str | None]:
    def key() -> str | None:
        structure = structure_digest(submissions, target)
        return None if structure is None else digest(kind, structure, options.of_plan)

    return key


def _program(backend: Backend, kernel: Kernel, fp: FloatMode) -> Callable[[], str | None]:
    return lambda: digest("program", backend.keep_domain, kernel, fp)


def _read(key: Callable[[], str | None], kind: str) -> bytes | None:
    # Who wants to see the passes at work is not helped by what they did before.
    store = disk_store() if debug_level() < 2 else None
    name = None if store is None else _if_right(key)
    return None if store is None or name is None else store.get(name, kind)


def _write(key: Callable[[], str | None], kind: str, contents: Callable[[], bytes | None]) -> None:
    store = disk_store()
    if store is None or (name := _if_right(key)) is None:
        return
    data = _if_right(contents)
    if data is not None:
        store.put(name, kind, data)


def _if_right(make: Callable[[], T]) -> T | None:
    """What ``make`` gives, or None where the data is not what it takes."""
    try:
        return make()
    except _NOT_TO_BE_HAD:
        return None


def functions_of(submissions: Sequence[Submission]) -> tuple[Place, ...]:
    """Where the functions stand that the kernels of ``submissions`` are made of."""
    return tuple(place for s in submissions if s.text is not None for place in s.text.places)
