"""``Reduction``: an argument of ``submit`` in which all work-items of a range combine values."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn, cast

import numpy as np

from fusionq.base.articles import with_article
from fusionq.base.call_site import argument_error
from fusionq.base.dtypes import is_bfloat16, is_floating
from fusionq.base.errors import ArgumentError, DeviceError
from fusionq.base.options import check_flags, check_names
from fusionq.ir.nodes import GroupOp
from fusionq.language.groups import op_name
from fusionq.memory.accessor import AccessorArgument
from fusionq.memory.buffer import Buffer, RecordBuffer
from fusionq.memory.foreign import describe
from fusionq.memory.foreign_array import ForeignArray

OPERATIONS: dict[str, GroupOp] = {
    "add": "add", "mul": "mul", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor",
    "multiply": "mul", "minimum": "min", "maximum": "max",
    "bit_and": "and", "bit_or": "or", "bit_xor": "xor",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "logical_and": "and", "logical_or": "or",
}  # fmt: skip
"""By name, what they are to group functions; the ``logical`` ones combine truth values."""


class Reduction:
    """An argument of ``submit``: in the kernel its parameter ``r`` combines values of all
    work-items, ``r.combine(x)`` or ``r += x``, and when the kernel has run the result is in
    ``buffer``.

    ``buffer``: a Buffer, a view of one, or an array that ``submit`` takes, with one element of any
    dtype that has the operation.  ``op``: ``"add"``, ``"multiply"`` (``"mul"``), ``"minimum"``
    (``"min"``) and ``"maximum"`` (``"max"``) of numbers, ``"bit_and"``, ``"bit_or"`` and
    ``"bit_xor"`` of integers and bools, ``"logical_and"`` and ``"logical_or"``, of which the
    result is 1 or 0, of all dtypes; Python's ``min`` and ``max`` and NumPy's functions (``np.add``)
    stand for their names.  What was in ``buffer`` takes part, as the left operand; not with
    ``initialize=True``.

    A work-item may combine any number of values, also none.  ``r`` has no value in the kernel.
    ``+=``, ``*=``, ``&=``, ``|=`` and ``^=`` combine where they are the operation.  The order of
    operations depends on the range alone, for an NdRange also on its local range
    (docs/semantics.md, Reductions), so that the result is bit for bit the same, however the kernel
    is launched or fused, on every device.

    Raises ArgumentError for what is no array of one element, an operation that there is not or
    that the dtype has not, and for read-only memory.  Source: SYCL 2020, section 4.9.2.
    """

    __slots__ = ("buffer", "dtype", "initialize", "is_logical", "op")

    def __init__(
        self,
        buffer: Buffer | object,
        op: object,
        *,
        initialize: bool = False,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            check_names("Reduction", unknown, ("initialize",))
        check_flags("Reduction", {"initialize": initialize})
        name = _operation(op)
        self.op = OPERATIONS[name]
        self.is_logical = name.startswith("logical")
        self.initialize = bool(initialize)
        self.buffer = _one_element(buffer)
        array = self.array
        self.dtype: np.dtype[Any] = array.dtype
        self._check_dtype(name)
        writable = array._storage.writable if isinstance(array, Buffer) else array.writable
        if not writable:
            raise _refuse("its array is read-only; give a writable one")

    @property
    def array(self) -> Buffer | ForeignArray:
        """Where the result goes, of shape (1,)."""
        if isinstance(self.buffer, Buffer):
            return self.buffer
        found = describe(self.buffer)
        assert found is not None
        return found

    def _check_dtype(self, name: str) -> None:
        dtype = self.dtype
        remedy = None
        if dtype.names is not None:
            remedy = f"combine one of its fields, such as buffer[{dtype.names[0]!r}]"
        elif dtype.kind == "c":
            remedy = "combine real and imaginary parts in two reductions"
        elif not self.is_logical and is_floating(dtype) and self.op in ("and", "or", "xor"):
            remedy = "it takes integers and bools"
        elif dtype.kind == "b" and self.op not in ("and", "or", "xor"):
            remedy = "combine in an integer, or with 'logical_and' or 'logical_or'"
        elif is_bfloat16(dtype) and self.op in ("add", "mul"):
            remedy = "each step would round to 8 binary digits; combine in float32"
        if remedy is not None:
            kind = "records" if dtype.names is not None else str(dtype)
            raise _refuse(f"there is no {name!r} of {kind}: {remedy}")

    def __repr__(self) -> str:
        how = ", initialize=True" if self.initialize else ""
        return f"<Reduction of {self.dtype} by {self.op!r}{how}>"


def _refuse(message: str) -> ArgumentError:
    return argument_error(f"Reduction: {message}")


def _operation(op: object) -> str:
    """The name of an operation in ``OPERATIONS``."""
    name = op.__name__ if isinstance(op, np.ufunc) else op
    if isinstance(name, str) and name in OPERATIONS:
        return name
    known = op_name(op)
    if known is not None:
        return known
    from difflib import get_close_matches

    near = get_close_matches(name, OPERATIONS, 1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise _refuse(
        f"there is no operation {name!r}{hint} There are add, multiply, minimum, maximum, bit_and, "
        "bit_or, bit_xor, logical_and and logical_or; for others, store a value for each work-item "
        "and combine these in a kernel of your own"
    )


def _one_element(buffer: object) -> object:
    """The array in the shape (1,)."""
    if isinstance(buffer, (Reduction, AccessorArgument)):
        raise _refuse(f"takes a Buffer or an array, not {with_article(type(buffer).__name__)}")
    if isinstance(buffer, Buffer):
        _check_size(buffer.shape)
        if isinstance(buffer, RecordBuffer) or buffer.ndim == 1:
            return buffer
        return buffer[(0,) * (buffer.ndim - 1)]
    shape = None if isinstance(buffer, np.generic) else getattr(buffer, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1 and prod(shape) == 1:
        reshape = getattr(buffer, "reshape", None)
        if callable(reshape):
            buffer = cast(object, reshape(1))  # shares the memory: one element always does
    try:
        found = None if isinstance(buffer, np.generic) else describe(buffer)
    except (ArgumentError, DeviceError) as error:
        raise _refuse(str(error)) from None
    if found is None:
        raise _refuse(
            f"takes a Buffer or an array of one element, not {type(buffer).__name__}; make one: "
            "fq.Buffer(1, np.float32)"
        )
    _check_size(found.shape)
    return buffer


def _check_size(shape: tuple[int, ...]) -> None:
    if prod(shape) != 1:
        raise _refuse(
            f"takes an array of one element, not of shape {shape}; give a view such as "
            "buffer[k:k + 1]"
        )
