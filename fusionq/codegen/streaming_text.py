"""Non-temporal stores as text, each beside an ordinary one for memory that vectors do not fit."""

from __future__ import annotations

from fusionq.codegen.array_access import Memory
from fusionq.codegen.device_source import ExtentArgument, Pointer, Stride
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.ir.nodes import ArrayParam, Kernel, Store

_FITS = "fq_streams"


class StreamingText:
    """The non-temporal stores of ``kernel`` in ``dialect``; ordinary ones where that has none."""

    def __init__(
        self, kernel: Kernel, dialect: Dialect, expressions: ExpressionPrinter, memory: Memory
    ) -> None:
        self._kernel = kernel
        self._dialect = dialect
        self._expressions = expressions
        self._memory = memory
        self._arrays: dict[str, ArrayParam] = {}

    def store(self, stmt: Store) -> list[str]:
        """The lines of a store."""
        target = self._expressions.subscript(stmt.array, stmt.indices)
        value = self._expressions.to_store(stmt.value)
        words = self._dialect.streaming
        if words is None or not stmt.nontemporal:
            return [f"{target} = {value};"]
        array = self._kernel.param(stmt.array)
        assert isinstance(array, ArrayParam)
        self._arrays[stmt.array] = array
        scalars = self._dialect.scalars
        pointer = scalars.pointer(words.vector_type(array.dtype)[0], "global")
        place = f"({pointer})&{target}"
        return [
            "{",
            f"    const {scalars.storage_name(array.dtype)} fq_value = {value};",
            f"    if ({_FITS}) {{",
            *(f"        {line}" for line in words.store(place, "fq_value", array.dtype)),
            "    } else",
            f"        {target} = fq_value;",
            "}",
        ]

    def typedefs(self) -> list[str]:
        """The types of the elements."""
        words = self._dialect.streaming
        return [words.vector_type(a.dtype)[1] for a in self._arrays.values()] if words else []

    def condition(self) -> list[str]:
        """The line that says whether all vectors begin where they have to: arrays, their rows, and
        work-groups in a row."""
        words, memory = self._dialect.streaming, self._memory
        if words is None or not self._arrays:
            return []
        last = self._kernel.ndim - 1
        group = self._dialect.items.query("local_range", last, self._kernel.ndim)
        whole = [f"{group} % {words.lanes} == 0"]
        for name, array in self._arrays.items():
            rows = (
                [ExtentArgument(name, array.ndim - 1)][: array.ndim - 1]
                if array.contiguous
                else [Stride(name, dim) for dim in range(array.ndim - 1)]
            )
            nbytes = words.lanes * array.dtype.nbytes
            whole.append(f"{memory.identifier(Pointer(name))} % {nbytes} == 0")
            whole += [f"{memory.identifier(row)} % {words.lanes} == 0" for row in rows]
        return [f"const bool {_FITS} = {' && '.join(whole)};"]
