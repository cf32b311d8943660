"""The arguments of one call of ``submit``."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.submission import ScalarValue
from fusionq.backends.base import DeviceEvent


class CallArguments:
    """The arguments of one call of ``submit``, by kind.

    ``memory``: for each array argument its Storage, or the foreign array itself, which this keeps
    alive; ``foreign`` are the latter.  ``values``: the scalar arguments.  ``depends``: the events
    of others to wait for.

    ``submit`` makes one each time, and sets what there is; a constructor would cost it more.
    """

    memory: Sequence[object] = ()
    foreign: Sequence[object] = ()
    values: Sequence[ScalarValue] = ()
    depends: Sequence[DeviceEvent] = ()

    @classmethod
    def of(
        cls,
        memory: Sequence[object],
        foreign: Sequence[object],
        values: Sequence[ScalarValue],
    ) -> CallArguments:
        """Those of memory and scalars that are known."""
        call = cls()
        call.memory, call.foreign, call.values = memory, foreign, values
        return call
