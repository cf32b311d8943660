"""The words of the queue protocol's text, spelled in one dialect."""

from __future__ import annotations

from fusionq.base.frozen import dataclass
from fusionq.codegen.dialect import Dialect, Scalars, Workers
from fusionq.ir.nodes import Const
from fusionq.ir.types import INT64, UINT32


@dataclass(frozen=True, slots=True)
class QueueWords:
    """Types, literals, and how the lanes of a worker come to one value."""

    scalars: Scalars
    workers: Workers
    int64: str
    uint32: str
    tables: str
    """Pointer to the schedule."""

    @classmethod
    def of(cls, dialect: Dialect) -> QueueWords:
        """The words in ``dialect``."""
        assert dialect.workers is not None, "the dialect has no persistent kernels"
        scalars = dialect.scalars
        int64, uint32 = scalars.type_name(INT64), scalars.type_name(UINT32)
        tables = scalars.pointer(int64, "global", constant=True)
        return cls(scalars, dialect.workers, int64, uint32, tables)

    @property
    def control(self) -> str:
        """Pointer to the control memory."""
        return self.workers.word_pointer

    def literal(self, value: int) -> str:
        """An int64."""
        return self.scalars.literal(Const(INT64, value)).text

    def minimum(self, a: str, b: str) -> str:
        """Of two int64."""
        return f"{self.scalars.minimum}({a}, {b})"

    def maximum(self, a: str, b: str) -> str:
        """Of two int64."""
        return f"{self.scalars.maximum}({a}, {b})"

    def poll_again(self, statement: str) -> str:
        """The body of a loop that polls by ``statement``."""
        pause = self.workers.pause
        return f"{{ {pause} {statement} }}" if pause else statement
