"""Buffers and arrays as arguments of one submission, with flags of their own."""

from __future__ import annotations

from typing import Literal, NoReturn

from fusionq.analysis.submission import Promotion
from fusionq.base.call_site import argument_error, user_span
from fusionq.base.errors import ArgumentError, DeviceError, PromotionConflict
from fusionq.base.frozen import dataclass
from fusionq.base.options import check_names, is_one_of
from fusionq.memory.buffer import Buffer
from fusionq.memory.foreign import describe


@dataclass(frozen=True, slots=True)
class AccessorArgument:
    """A Buffer, or an array of another library, with promotion flags for one argument of one
    submission, see ``access``."""

    buffer: Buffer | object
    promote: Promotion | None


def access(
    buf: Buffer | object,
    promote: Literal["private", "local"] | None = None,
    **unknown: NoReturn,
) -> AccessorArgument:
    """``buf``, a Buffer or any array that ``submit`` takes, as an argument of it, wanted in
    private or local memory in this submission.  Raises PromotionConflict where the Buffer's own
    flag says otherwise, ArgumentError for what is no array."""
    if unknown:
        check_names("access", unknown, ("promote",))
    if not is_one_of(promote, (None, "private", "local")):
        raise argument_error(f"access() takes promote='private', 'local' or None, not {promote!r}")
    if isinstance(buf, Buffer):
        if promote is not None and buf._promotion not in (None, promote):
            raise PromotionConflict(
                f"{user_span()}: the Buffer is flagged promote_{buf._promotion}, this access "
                f"{promote}; give one of the two"
            )
    elif isinstance(buf, (int, float, tuple, list)) or not _is_array(buf):
        raise argument_error(
            f"access() takes a Buffer or an array, not {type(buf).__name__}; wrap it: Buffer(x)"
        )
    return AccessorArgument(buf, promote)


def _is_array(value: object) -> bool:
    try:
        return describe(value) is not None
    except (ArgumentError, DeviceError) as error:
        raise argument_error(f"access(): {error}") from None
