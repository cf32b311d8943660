"""The kernel language's types do not depend on the NumPy that runs it.

NumPy before 2.0, which numba-dpex needs, has other rules for Python numbers beside its scalars.
Expectations are written down here, not computed by NumPy; tests/dpex runs this file under 1.26.
"""

import math

import numpy as np
import pytest

from fusionq.backends.reference import run_function
from fusionq.base.errors import DeviceError
from fusionq.ir.nodes import Cast, Const, Select, Store
from fusionq.ir.types import SCALAR_TYPES, WEAK_FLOAT, WEAK_INT, promote
from fusionq.language import Range
from tests.unit.frontend.running import define, specialised

BEFORE_2 = np.lib.NumpyVersion(np.__version__) < "2.0.0"
NAMES = {
    f"{kind}{bits}": np.dtype(f"{name}{bits}").type
    for kind, name, sizes in (
        ("I", "int", (8, 16, 32, 64)), ("U", "uint", (8, 16, 32, 64)), ("F", "float", (16, 32, 64)),
    )
    for bits in sizes
}  # fmt: skip


def value_of(text, **arrays):
    """The IR of an expression over the elements of arrays, before it is stored as a float64."""
    parameters = "".join(f", {name}_" for name in arrays)
    setup = "".join(f"    {name} = {name}_[i]\n" for name in arrays)
    function = define(
        f"def k(item, out{parameters}):\n    i = item.get_id(0)\n{setup}    out[i] = {text}\n",
        math=math,
        **NAMES,
    )
    store = specialised(function, 1, np.zeros(1), *arrays.values()).body[-1]
    assert isinstance(store, Store)
    return store.value.operand if isinstance(store.value, Cast) else store.value


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_a_python_number_takes_the_type_beside_it(name):
    strong = SCALAR_TYPES[name]
    of_int = SCALAR_TYPES["int64"] if name == "bool" else strong
    of_float = strong if strong.is_float else SCALAR_TYPES["float64"]
    assert promote(strong, WEAK_INT) == promote(WEAK_INT, strong) == of_int
    assert promote(strong, WEAK_FLOAT) == promote(WEAK_FLOAT, strong) == of_float


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("f * 0.5", "float32"), ("f + 100000", "float32"), ("h * 2.5", "float16"),
        ("u * 0.5", "float64"), ("u + 1", "uint8"), ("f / 3", "float32"), ("u / 2", "float64"),
        ("np.maximum(f, 2.5)", "float32"), ("np.hypot(f, 4)", "float32"),
        ("np.arctan2(1.0, h)", "float16"), ("np.clip(u, 1, 7)", "uint8"),
        ("np.fmin(u, 3)", "uint8"), ("np.where(f > 0, f, 2.0)", "float32"),
        ("np.where(f > 0, u, 2)", "uint8"), ("np.where(f, 1, 2)", "int64"),
        ("math.pow(f, 0.5)", "float32"), ("np.floor(u)", "uint8"), ("np.ceil(i32)", "int32"),
        ("np.trunc(f)", "float32"), ("np.exp(u)", "float16"), ("np.sqrt(i32)", "float64"),
    ],
)  # fmt: skip
def test_types_at_run_time(text, dtype):
    arrays = {"f": "float32", "h": "float16", "u": "uint8", "i32": "int32"}
    used = {name: np.ones(1, of) for name, of in arrays.items()}
    assert value_of(text, **used).type.name == dtype


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("F32(3) * 0.1", "float32", float(np.float32(3) * np.float32(0.1))),
        ("U8(3) + 1", "uint8", 4), ("I8(100) + 100", "int8", -56), ("I32(2) * 0.5", "float64", 1.0),
        ("F16(1) * 70000.0", "float16", math.inf), ("F32(16777217) == 16777217", "bool", True),
        ("U8(3) < 300", "bool", True), ("U64(9) > -1", "bool", True),
        ("I32(3) == 1099511627776", "bool", False), ("F32(0.1) == 0.1", "bool", True),
        ("np.floor(I32(4))", "int32", 4), ("np.where(True, F32(1), 2.0)", "float32", 1.0),
        ("np.minimum(F32(1), 0.1)", "float32", float(np.float32(0.1))),
        ("math.hypot(F32(3), 4)", "float32", 5.0), ("F32(2) ** 2", "float32", 4.0),
        ("np.clip(U8(9), 1, 7)", "uint8", 7), ("I16(1) << 3", "int16", 8),
    ],
)  # fmt: skip
def test_constants(text, dtype, value):
    chosen = value_of(f"np.where(f > 0, {text}, {text})", f=np.ones(1))
    assert isinstance(chosen, Select)
    assert chosen.then == chosen.orelse == Const(SCALAR_TYPES[dtype], value)


def test_plain_python_needs_numpy_2():
    """There NumPy itself computes."""

    def half(item, a):
        a[item.get_id(0)] = a[item.get_id(0)] * 0.5

    a = np.ones(3, np.float32)
    if BEFORE_2:
        with pytest.raises(DeviceError, match=r"(?s)needs NumPy 2.*FusionQueue\('reference'\)"):
            run_function(half, Range(3), [a])
    else:
        run_function(half, Range(3), [a])
        assert (a == 0.5).all()
