"""Runs a kernel's Python function as plain Python, one work-item at a time.

``patched(function)`` is a copy that sees ``math``, NumPy and the built-in functions with their
meaning in kernels, and so do the functions that it calls:

* ``math.f`` means ``numpy.f`` on NumPy scalars (``language.scalar_functions``);
* conversions to integers saturate and give 0 for NaN (``language.casts``);
* array elements are NumPy scalars; an index that is too large, or too far from the end, raises
  IndexError.

With NumPy scalars for numbers the copy computes what the compiled kernel does, with two
exceptions: where a Python number and a NumPy scalar meet on two paths (``y = 0.5`` in one branch
and ``y = x[i]`` in the other), the compiled kernel gives both the NumPy type, and Python keeps
them apart; and beside a Python float a bfloat16 becomes a float32 (NumPy 2.4 with ml_dtypes 0.6),
where the compiled kernel keeps its type, as of any other floating type.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from fusionq.base.dtypes import is_bfloat16
from fusionq.base.errors import DeviceError
from fusionq.language.array_functions import ARRAY_FUNCTIONS, ARRAY_METHODS, combined
from fusionq.language.casts import cast
from fusionq.language.scalar_functions import (
    BUILTIN_FUNCTIONS,
    MATH_FUNCTIONS,
    math_module,
    nextafter,
    power,
    where,
)


class ScalarConstructor:
    """Stands for ``np.int32`` and its like, and for ``array.dtype``: converts as kernels do."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    @property
    def type(self) -> ScalarConstructor:
        """``array.dtype.type``."""
        return self

    def __call__(self, value: Any) -> Any:
        if isinstance(value, KernelArray):
            return _elementwise(self, value)
        return cast(value, self.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarConstructor):
            return self.dtype == other.dtype
        return bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)


def _elementwise(function: Callable[..., Any], *operands: Any) -> KernelArray:
    """``function`` of each element, as of a NumPy scalar: loops of NumPy's over arrays may round
    otherwise.  A result without elements has the type that others have."""
    arrays = [x._array if isinstance(x, KernelArray) else x for x in operands]
    shape = np.broadcast_shapes(*[np.shape(x) for x in arrays])
    if 0 in shape:
        ones = [x.dtype.type(1) if isinstance(x, np.ndarray) else x for x in arrays]
        return KernelArray(np.empty(shape, np.asarray(function(*ones)).dtype))
    parts = [np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x for x in arrays]
    results = [
        function(*[x[index] if isinstance(x, np.ndarray) else x for x in parts])
        for index in np.ndindex(shape)
    ]
    return KernelArray(np.array(results).reshape(shape))


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: _elementwise(function, self, *others)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: _elementwise(function, other, self)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: KernelArray, other: Any) -> KernelArray:
        result = _elementwise(function, self, other)
        if not np.can_cast(result._array.dtype, self._array.dtype, "same_kind"):
            raise TypeError(f"{result._array.dtype} in place in {self._array.dtype}")
        self[:] = result
        return self

    return method


class KernelArray:
    """An array as a kernel sees it: elements and parts.

    Wraps a NumPy array and shares its memory.  ``a[i][j]`` means ``a[i, j]``.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """For ``np.float32(array)`` and its like."""
        return np.array(self._array, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any) -> Any:
        if ufunc is np.matmul:
            return _combined("dot", *operands)
        return _elementwise(ufunc, *operands)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = None if kwargs else ARRAY_FUNCTIONS.get(function)
        if name is None:
            return function._implementation(*args, **kwargs)
        return _combined(name, *args)

    def __matmul__(self, other: KernelArray) -> Any:
        return _combined("dot", self, other)

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        self.shape = array.shape
        self.ndim = array.ndim
        self.size = array.size
        self.dtype = ScalarConstructor(array.dtype)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return KernelArray(self._array[index])
        checked = self._checked(index)
        element = self._array[checked]
        is_element = len(checked) == self.ndim and not any(isinstance(i, slice) for i in checked)
        if is_element and isinstance(element, np.void):
            return KernelRecord(element)
        return element if is_element else KernelArray(element)

    def __getattr__(self, name: str) -> Any:
        """A field of the records, or what combines the elements."""
        if name in ARRAY_METHODS and self._array.dtype.names is None:
            return partial(_combined, name, self)
        if name.startswith("_") or name not in (self._array.dtype.names or ()):
            raise AttributeError(name)
        return self[name]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            self[index][:] = value
            return
        checked = self._checked(index)
        dtype = self._array.dtype
        if len(checked) == self.ndim and not any(isinstance(i, slice) for i in checked):
            if dtype.names is not None:
                self[index]._assign(value)
                return
            self._array[checked] = cast(value, dtype)
            return
        part = self._array[checked]
        given = value._array if isinstance(value, KernelArray) else np.asarray(value)
        elements = [cast(x, dtype) for x in np.broadcast_to(given, part.shape).reshape(-1)]
        part[...] = np.array(elements, dtype).reshape(part.shape)

    def _checked(self, index: Any) -> tuple[Any, ...]:
        given = list(index) if isinstance(index, tuple) else [index]
        if ... in given:
            place = given.index(...)
            given[place : place + 1] = [slice(None)] * (self.ndim - len(given) + 1)
        indices = tuple(_slice(i) if isinstance(i, slice) else int(i) for i in given)
        if len(indices) > self.ndim:
            raise IndexError(f"{len(indices)} indices for a {self.ndim}-d array")
        for i, extent in zip(indices, self.shape, strict=False):
            if not isinstance(i, slice) and not -extent <= i < extent:
                raise IndexError(f"the index {indices} is outside the shape {self.shape}")
        return indices


def _combined(name: str, *arrays: KernelArray) -> Any:
    return combined(name, *[array._array for array in arrays])


class KernelRecord:
    """A record as a kernel sees it: a view, whose fields are items and attributes."""

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "_record", record)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The record's dtype."""
        record: np.void = self._record
        return record.dtype

    def __getitem__(self, name: str) -> Any:
        value = self._record[name]
        if isinstance(value, np.void):
            return KernelRecord(value)
        return KernelArray(value) if isinstance(value, np.ndarray) else value

    def __setitem__(self, name: str, value: Any) -> None:
        present = self[name]
        if isinstance(present, KernelRecord):
            present._assign(value)
        elif isinstance(present, KernelArray) and present.dtype.dtype.names is not None:
            for k in range(len(present)):
                present[k] = value[k]
        elif isinstance(present, KernelArray):
            present[:] = value
        else:
            self._record[name] = cast(value, present.dtype)

    def __getattr__(self, name: str) -> Any:
        """A field."""
        if name.startswith("_") or name not in (self.dtype.names or ()):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def _assign(self, value: Any) -> None:
        """All fields, of another record or of a tuple, by position."""
        if isinstance(value, KernelRecord):
            copy = KernelRecord(value._record.copy())
            value = tuple(copy[name] for name in value.dtype.names or ())
        for name, item in zip(self.dtype.names or (), value, strict=True):
            self[name] = item


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift",
    "rshift", "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert",
):  # fmt: skip
    _function, _stem = getattr(operator, _name), _name.rstrip("_")
    setattr(KernelArray, f"__{_stem}__", _operator(_function))
    if _stem not in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert"):
        setattr(KernelArray, f"__r{_stem}__", _reflected(_function))
        setattr(KernelArray, f"__i{_stem}__", _in_place(_function))


def _slice(given: slice) -> slice:
    """The slice with Python's integers."""
    return slice(*(None if b is None else int(b) for b in (given.start, given.stop, given.step)))


def _making(function: Callable[..., Any]) -> Callable[..., KernelArray]:
    """One of NumPy's functions that make arrays, with the types that kernels see."""

    def dtype(value: Any) -> Any:
        if isinstance(value, ScalarConstructor):
            return value.dtype
        return int if value is BUILTIN_FUNCTIONS["int"] else value

    def made(*arguments: Any, **keywords: Any) -> KernelArray:
        named = {name: dtype(value) for name, value in keywords.items()}
        return KernelArray(function(*map(dtype, arguments), **named))

    return made


def _replacements() -> dict[object, object]:
    table: dict[object, object] = {
        getattr(math, name): function
        for name, function in MATH_FUNCTIONS.items()
        if hasattr(math, name)
    }
    table |= {getattr(builtins, name): function for name, function in BUILTIN_FUNCTIONS.items()}
    table |= {np.dtype(code).type: ScalarConstructor(np.dtype(code)) for code in "bBhHiIqQlL"}
    table |= {
        function: _making(function)
        for function in (np.zeros, np.empty, np.ones, np.full, np.array)
    }
    table |= {np.where: where, np.power: power, np.nextafter: nextafter}
    return table | {math: math_module}


_REPLACEMENTS = _replacements()


class _Patcher:
    """Copies functions; each is copied once."""

    def __init__(self) -> None:
        self._copies: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        if function in self._copies:
            return self._copies[function]
        names: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(
            function.__code__,
            names,
            function.__name__,
            self.value(function.__defaults__),
            cells or None,
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy  # before its names, which may lead back to it
        names.update(BUILTIN_FUNCTIONS)
        for name in _names(function.__code__):
            if name in function.__globals__:
                names[name] = self.value(function.__globals__[name])
        for new, old in zip(cells, function.__closure__ or (), strict=True):
            try:
                new.cell_contents = self.value(old.cell_contents)
            except ValueError:  # empty: assigned later, or never
                continue
        return copy

    def value(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.value(item) for item in value)
        if isinstance(value, type) and issubclass(value, np.generic):
            dtype = np.dtype(value)
            if is_bfloat16(dtype):
                return ScalarConstructor(dtype)
        try:
            if value in _REPLACEMENTS:
                return _REPLACEMENTS[value]
        except TypeError:  # not hashable
            return value
        if isinstance(value, ModuleType):
            return _Module(value, self)
        if isinstance(value, FunctionType) and not _runs_as_it_is(value):
            return self.function(value)
        return value


def _names(code: CodeType) -> set[str]:
    """The names of globals and attributes in a code object and in those of functions and
    comprehensions in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _runs_as_it_is(function: FunctionType) -> bool:
    """Whether the function is NumPy's or the kernel language's own."""
    module = function.__module__ or ""
    return module.split(".")[0] == "numpy" or module.startswith("fusionq.language.")


class _Module:
    """A module whose attributes have their meaning in kernels."""

    def __init__(self, module: ModuleType, patcher: _Patcher) -> None:
        self._module = module
        self._patcher = patcher

    def __getattr__(self, name: str) -> Any:
        return self._patcher.value(getattr(self._module, name))


def patched(function: FunctionType) -> Callable[..., Any]:
    """A copy of the function that runs with the meaning of kernels; see the module.

    Globals and closure variables are read now.  Call it inside ``np.errstate(all="ignore")``,
    with arguments made by ``argument``.  Raises DeviceError with NumPy before 2.0, which computes
    with Python numbers by other rules.
    """
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        raise DeviceError(
            f"to run the kernel {function.__name__!r} as plain Python needs NumPy 2.0 or later: "
            f"NumPy {np.__version__} computes with Python numbers by other rules (NEP 50)\n"
            "  Submit it to FusionQueue('reference'), which brings its own rules, or update NumPy."
        )
    return _Patcher().function(function)


def argument(value: Any) -> Any:
    """A kernel argument as the function must get it: arrays wrapped, bools as NumPy's."""
    if isinstance(value, np.ndarray):
        return KernelArray(value)
    return np.bool_(value) if isinstance(value, bool) else value


def run_function(function: FunctionType, item: object, arguments: Sequence[Any]) -> None:
    """Run a kernel's function for one work-item; arrays are changed in place.

    For many items, call ``patched`` and ``argument`` once.
    """
    with np.errstate(all="ignore"):
        patched(function)(item, *map(argument, arguments))
