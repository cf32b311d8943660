"""Objects that stand for a device's work or a queue: they are neither copied nor pickled."""

from __future__ import annotations

from typing import Any, NoReturn

from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError


class NotCopied:
    """``copy.copy``, ``copy.deepcopy`` and ``pickle`` raise ArgumentError."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        name = type(self).__name__
        article = "an" if name[0] in "AEIO" else "a"
        raise ArgumentError(
            f"{user_span()}: {article} {name} cannot be copied or pickled, since it belongs to "
            "a queue of this process; hand on the object itself, or the results as NumPy arrays"
        )
