"""What a worker process is asked to plan and build: a list, as data.

The kernels are sent as IR and read like those of plans, through the verifier; nothing is executed
but by the device.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from itertools import count

import numpy as np

from fusionq.analysis.submission import (
    Argument,
    ArrayArgument,
    DeclaredArgument,
    ScalarArgument,
    Submission,
)
from fusionq.backends.base import Backend
from fusionq.base.frozen import dataclass
from fusionq.base.options import Barriers, FusionOptions, Promote
from fusionq.base.recursion import room_for_recursion
from fusionq.base.span import Span
from fusionq.cache.disk import DiskStore
from fusionq.cache.keys import digest
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.cache.sharing import packed, unpacked
from fusionq.frontend.signature import Signature
from fusionq.frontend.source import KernelText
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import ScalarType
from fusionq.ir.verifier import VerificationError, verify
from fusionq.language.ranges import NdRange, Range

KIND = "request"
"""Of the entries."""

_numbers = count()
"""Of the requests of this process."""


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A ScalarArgument; ``is_numpy``: its value is a NumPy scalar of its type."""

    name: str
    label: str
    type: ScalarType
    value: bool | int | float
    is_numpy: bool


@dataclass(frozen=True, slots=True)
class _Submission:
    """A Submission whose kernel is lowered."""

    kernel: Kernel
    signature: Signature
    fingerprint: str
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None
    arguments: tuple[ArrayArgument | _Scalar | DeclaredArgument, ...]
    span: Span
    text: KernelText


@dataclass(frozen=True, slots=True)
class _Request:
    device: str
    domain: str
    barriers: Barriers
    promote: Promote
    submissions: tuple[_Submission, ...]


def domain_of(backend: Backend) -> str:
    """Equal for backends, also of different processes, that find each other's plans and programs
    on disk; TypeError where there are none."""
    return digest("domain", backend.keep_domain, backend.target)


@room_for_recursion("a kernel of the list")
def keep_request(
    store: DiskStore, backend: Backend, submissions: Sequence[Submission], options: FusionOptions
) -> str | None:
    """Write down a request, ``options`` but for the strategy; its key, None where the list cannot
    be written."""
    try:
        request = _Request(
            backend.target.device.filter_string,
            domain_of(backend),
            options.barriers,
            options.promote,
            tuple([_sent(s) for s in submissions]),
        )
        contents = json.dumps(packed(encode(request))).encode()
    except (TypeError, ValueError, RecursionError, OSError):
        return None
    number = f"{os.getpid()} {next(_numbers)} "  # whoever reads a request removes it
    key = sha256(number.encode() + contents).hexdigest()
    store.put(key, KIND, contents)
    return None if store.is_broken else key


def _sent(submission: Submission) -> _Submission:
    if submission.text is None:
        raise TypeError("what is found out about the kernel is not to be kept")
    space = submission.range
    whole, local = (
        (space.global_range, tuple(space.local_range))
        if isinstance(space, NdRange)
        else (space, None)
    )
    return _Submission(
        submission.ir,
        submission.signature,
        submission.fingerprint,
        tuple(whole),
        local,
        tuple([_sent_argument(a) for a in submission.arguments]),
        submission.span,
        submission.text,
    )


def _sent_argument(argument: Argument) -> ArrayArgument | _Scalar | DeclaredArgument:
    if not isinstance(argument, ScalarArgument):
        return argument
    value = argument.value
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (bool, int, float)):
        raise TypeError(f"a scalar of type {argument.type}")
    return _Scalar(
        argument.name, argument.label, argument.type, plain, isinstance(value, np.generic)
    )


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A list to be planned and built for ``device`` (a SYCL filter string or a platform's name),
    where the backend's domain is ``domain``, by ``options`` and any strategy."""

    device: str
    domain: str
    options: FusionOptions
    submissions: tuple[Submission, ...]


@room_for_recursion("a kernel of the list")
def kept_request(store: DiskStore, key: str) -> BuildRequest | None:
    """The request under ``key``; None where it is none."""
    contents = store.get(key, KIND)
    if contents is None:
        return None
    try:
        sent = decode(_Request, unpacked(json.loads(contents)))
        options = FusionOptions(barriers=sent.barriers, promote=sent.promote)
        submissions = tuple(_received(k, s) for k, s in enumerate(sent.submissions))
    except (ValueError, MalformedData, VerificationError, RecursionError):
        return None
    return BuildRequest(sent.device, sent.domain, options, submissions)


def _received(index: int, sent: _Submission) -> Submission:
    verify(sent.kernel)
    whole = Range(*sent.global_range)
    space = whole if sent.local_range is None else NdRange(whole, Range(*sent.local_range))
    arguments = tuple([_received_argument(a) for a in sent.arguments])
    return Submission(
        index, sent.kernel, sent.signature, sent.fingerprint, space, arguments, sent.span, sent.text
    )


def _received_argument(argument: ArrayArgument | _Scalar | DeclaredArgument) -> Argument:
    if not isinstance(argument, _Scalar):
        return argument
    value = argument.type.dtype.type(argument.value) if argument.is_numpy else argument.value
    return ScalarArgument(argument.name, argument.label, argument.type, value)
