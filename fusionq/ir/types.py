"""Scalar types of the kernel language and NumPy's promotion rules (NEP 50)."""

from __future__ import annotations

from functools import cache

import numpy as np

from fusionq.base.dtypes import as_dtype, is_bfloat16
from fusionq.base.frozen import dataclass

_dtype = cache(as_dtype)


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One of NumPy's bool, integer and floating scalar types, or bfloat16.

    ``weak`` marks the type of a Python ``int`` or ``float`` (a literal, a loop
    variable, ``len(a)``, a Python scalar argument): it takes the other
    operand's type (NEP 50) and is held as int64 or float64.  Weak types exist
    in the front end and in kernel signatures; every IR node is concrete.
    """

    name: str
    weak: bool = False

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds a value of this type."""
        return _dtype(self.name)

    @property
    def kind(self) -> str:
        """NumPy's kind letter: ``b`` bool, ``i`` signed, ``u`` unsigned, ``f`` floating."""
        return "f" if self.name == "bfloat16" else self.dtype.kind

    @property
    def bits(self) -> int:
        """Width in bits (8 for bool)."""
        return self.dtype.itemsize * 8

    @property
    def nbytes(self) -> int:
        """Width in bytes."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def strong(self) -> ScalarType:
        """The concrete type that holds a weak value."""
        return ScalarType(self.name) if self.weak else self

    def __str__(self) -> str:
        if self.weak:
            return {"b": "bool", "i": "int", "f": "float", "c": "complex"}[self.kind]
        return self.name


BOOL = ScalarType("bool")
INT8, INT16, INT32, INT64 = (ScalarType(f"int{b}") for b in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (ScalarType(f"uint{b}") for b in (8, 16, 32, 64))
FLOAT16, FLOAT32, FLOAT64 = (ScalarType(f"float{b}") for b in (16, 32, 64))
WEAK_INT = ScalarType("int64", weak=True)
WEAK_FLOAT = ScalarType("float64", weak=True)

SCALAR_TYPES: dict[str, ScalarType] = {
    t.name: t
    for t in (
        BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
        FLOAT16, FLOAT32, FLOAT64,
    )
}  # fmt: skip

BFLOAT16 = ScalarType("bfloat16")
"""What numbers are stored in and converted to and from float32: the IR has no operations on it."""
VALUE_TYPES = SCALAR_TYPES | {BFLOAT16.name: BFLOAT16}
"""What a value in the IR can be."""

COMPLEX64, COMPLEX128 = ScalarType("complex64"), ScalarType("complex128")
"""What arrays and arguments may have too; in the IR these are arrays of the parts, and two
arguments: see ``component_type``."""
WEAK_COMPLEX = ScalarType("complex128", weak=True)
ELEMENT_TYPES = VALUE_TYPES | {t.name: t for t in (COMPLEX64, COMPLEX128)}
"""What an array argument's elements can be."""

_BY_DTYPE = {t.dtype: t for t in SCALAR_TYPES.values()}

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


def scalar_type(dtype: np.dtype[np.generic]) -> ScalarType | None:
    """The scalar type for a NumPy dtype in native byte order, or None if the language has none."""
    found = _BY_DTYPE.get(dtype)
    return BFLOAT16 if found is None and is_bfloat16(dtype) else found


def component_type(element: ScalarType) -> ScalarType:
    """The type of an element's components: of a complex number its real part's, else itself."""
    if not element.is_complex:
        return element
    if element.weak:
        return WEAK_FLOAT
    return FLOAT32 if element.name == COMPLEX64.name else FLOAT64


def element_type(dtype: np.dtype[np.generic]) -> ScalarType | None:
    """The type of the elements of an array of a dtype in native byte order, or None if kernels
    have none."""
    if dtype.kind == "c" and dtype.isnative:
        return ELEMENT_TYPES.get(dtype.name)
    return scalar_type(dtype)


def type_of_scalar(value: object) -> ScalarType | None:
    """The type of a Python or NumPy scalar argument; Python numbers are weak."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, np.generic):
        return scalar_type(value.dtype)
    if isinstance(value, int):
        return WEAK_INT
    if isinstance(value, float):
        return WEAK_FLOAT
    return None


def complex_type_of(value: object) -> ScalarType | None:
    """The type of a complex scalar argument; Python's is weak.  None for anything else."""
    if isinstance(value, np.complexfloating):
        return element_type(value.dtype)
    return WEAK_COMPLEX if isinstance(value, complex) else None


def promote(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type of an arithmetic operation on ``a`` and ``b`` (NEP 50)."""
    if a == b:
        return a
    if a.weak and b.weak:
        return WEAK_FLOAT
    if a.weak or b.weak:
        weak, strong = (a, b) if a.weak else (b, a)  # NumPy itself has these rules from 2.0 on
        return weak.strong if _CATEGORY[weak.kind] > _CATEGORY[strong.kind] else strong
    if BFLOAT16 in (a, b):
        return _promoted_bfloat16(b if a == BFLOAT16 else a)
    return SCALAR_TYPES[np.result_type(a.dtype, b.dtype).name]


def _promoted_bfloat16(other: ScalarType) -> ScalarType:
    """The type of arithmetic of bfloat16 and another: as of float16, but beside that float32.

    So ml_dtypes has it, but for a Python float, of which NumPy (2.4) makes a float32 there.
    """
    if other == FLOAT16:
        return FLOAT32
    common = promote(FLOAT16, other)
    return BFLOAT16 if common == FLOAT16 else common
