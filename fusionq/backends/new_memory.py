"""New memory with its first contents, by the host."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation

_Memory = TypeVar("_Memory", bound=Allocation)


def filled_now(
    memory: _Memory, contents: npt.NDArray[np.uint8] | None = None
) -> tuple[_Memory, None]:
    """``memory``, which has ``contents``, zeros for None, when this returns; see
    ``Backend.filled``."""
    if contents is None:
        memory.zero()
    else:
        memory.write(contents)
    return memory, None
