"""New memory with its first contents, by the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusionq.backends.base import Allocation


def fill_now(memory: Allocation, contents: npt.NDArray[np.uint8] | None = None) -> None:
    """Give it ``contents``, zeros for None; when this returns it has them."""
    if contents is None:
        memory.zero()
    else:
        memory.write(contents)
