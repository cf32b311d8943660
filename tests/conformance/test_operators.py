"""Each operation on each type, on edge values, against NumPy bit for bit; a kernel for a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fusionq.backends.base import Backend
from fusionq.ir.functions import BIT_CAST
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    If,
    Kernel,
    Select,
    Store,
    Unary,
)
from fusionq.ir.types import BOOL, INT64, SCALAR_TYPES, ScalarType
from tests.conformance.running import Array, different, run
from tests.in_turn import one_in
from tests.unit.codegen.built_kernels import IDS, ITEM, const, less, load

ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
DIVISION = {"floordiv": np.floor_divide, "mod": np.remainder}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
SHIFTS = {"shl": np.left_shift, "shr": np.right_shift}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}  # fmt: skip
ORDER = {"minimum": np.minimum, "maximum": np.maximum, "fmin": np.fmin, "fmax": np.fmax,
         "pymin": lambda a, b: np.where(b < a, b, a),
         "pymax": lambda a, b: np.where(b > a, b, a)}  # fmt: skip

UNSIGNED = {t.bits: t for t in SCALAR_TYPES.values() if t.kind == "u"}
Function = Callable[..., Any]


def types_of(backend: Backend, kinds: str = "biuf") -> list[ScalarType]:
    """The types of these kinds that the backend has."""
    lacks = {"float16": not backend.info.has_fp16, "float64": not backend.info.has_fp64}
    found = [t for t in SCALAR_TYPES.values() if t.kind in kinds and not lacks.get(t.name)]
    # numba-dpex takes a second and more to compile what other backends do in a tenth of it.
    return one_in(2, found) if type(backend).__module__.startswith("fusionq.dpex") else found


def fewer(backend: Backend, count: int) -> int:
    """So many values, or far fewer where each costs an interpreter's time."""
    return max(count // 50, 20) if backend.info.kind == "reference" else count


@dataclass
class Table:
    """For one type: operands, and what is to be computed of them: an expression over loads of
    ``inputs``, and NumPy's function of the operands."""

    type: ScalarType
    inputs: dict[str, Array]
    rows: dict[str, tuple[Expr, Function]] = field(default_factory=dict)

    def name(self, array: str) -> str:
        """The kernel's name of an input."""
        return f"{array}_{self.type}"

    @property
    def size(self) -> int:
        """How many operands, or groups of operands, there are: the inputs' last extent."""
        return int(next(iter(self.inputs.values())).shape[-1])

    def load(self, array: str, *rows: int) -> Expr:
        """The work-item's element of an input, or of a row of it."""
        return load(self.name(array), *map(const, rows), ITEM, type=self.type)

    def of_one(self, operations: Mapping[str, Function], make: Callable[..., Expr]) -> None:
        """Rows of operations on ``a``."""
        for op, function in operations.items():
            self.rows[op] = make(self.type, op, self.load("a")), lambda a, *_, f=function: f(a)

    def of_two(self, operations: Mapping[str, Function], make: Callable[..., Expr]) -> None:
        """Rows of operations on ``a`` and ``b``."""
        for op, function in operations.items():
            self.rows[op] = make(self.type, op, self.load("a"), self.load("b")), function


def call(type: ScalarType, function: str, *arguments: Expr) -> Expr:
    return Call(type, function, arguments)


def compare(type: ScalarType, op: Any, lhs: Expr, rhs: Expr) -> Expr:
    return Compare(op, lhs, rhs)


def computed(backend: Backend, tables: Sequence[Table]) -> list[dict[str, Array]]:
    """The rows of all tables, computed by one kernel."""
    arguments: dict[str, Array] = {}
    body, found = [], []
    for table in tables:
        n = table.size
        arguments |= {table.name(array): values for array, values in table.inputs.items()}
        results = {}
        stores = []
        for result in {expr.type for expr, _ in table.rows.values()}:
            names = [name for name, (expr, _) in table.rows.items() if expr.type == result]
            out = f"out_{table.type}_{result}"
            arguments[out] = np.empty((len(names), n), result.dtype)
            results |= {name: (out, row) for row, name in enumerate(names)}
            stores += [
                Store(out, (const(row), ITEM), table.rows[name][0])
                for row, name in enumerate(names)
            ]
        body.append(If(less(ITEM, const(n)), tuple(stores)))
        found.append(results)
    params = tuple(
        ArrayParam(name, SCALAR_TYPES[array.dtype.name], array.ndim, restrict=True)
        for name, array in arguments.items()
    )
    items = max(table.size for table in tables)
    kernel = Kernel("operations", 1, params, (("i", INT64),), (IDS[0], *body))
    run(backend, kernel, *arguments.values(), items=items)
    return [{name: arguments[out][row] for name, (out, row) in rows.items()} for rows in found]


ROWS_OF_A_KERNEL = 150


def check(backend: Backend, tables: Sequence[Table], **how: bool) -> None:
    """Every row of every table is what NumPy computes."""
    for some in in_kernels(tables):
        check_kernel(backend, some, **how)


def in_kernels(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables of each kernel: several if they have few rows, since each kernel costs a build; no
    more, since compilers take twice as long for a kernel of a thousand rows as for eight."""
    kernels: list[list[Table]] = [[]]
    for table in tables:
        if sum(len(other.rows) for other in kernels[-1]) + len(table.rows) > ROWS_OF_A_KERNEL:
            kernels.append([])
        kernels[-1].append(table)
    return [some for some in kernels if some]


def check_kernel(backend: Backend, tables: Sequence[Table], **how: bool) -> None:
    for table, got in zip(tables, computed(backend, tables), strict=True):
        operands = list(table.inputs.values())
        for name, (_, function) in table.rows.items():
            with np.errstate(all="ignore"):
                wanted = np.asarray(function(*operands)).astype(got[name].dtype)
            wrong = different(got[name], wanted, **how)
            shown = [(*(x[k] for x in operands), got[name][k], wanted[k]) for k in wrong[:5]]
            assert not len(wrong), (
                f"{name} of {table.type}: {len(wrong)} differ; (operands, got, NumPy): {shown}"
            )


def nextafter(start: Array, towards: Array) -> Array:
    """C's: the second of two equal numbers.  NumPy's of float16 is that from 2.5 on only."""
    return np.where(start == towards, towards, np.nextafter(start, towards))


# ------------------------------------------------------------------------------- values
def edge_values(type: ScalarType) -> Array:
    """Limits, neighbours of zero, special values and a few random ones."""
    random = np.random.default_rng(7)
    dtype = type.dtype
    if type.is_bool:
        return np.array([False, True])
    if type.is_float:
        limits = np.finfo(dtype)
        plain = [0, 1, 1.5, 2, 3, 2.5, 0.1, 7, 1e3, limits.max, limits.tiny, np.inf,
                 limits.smallest_subnormal, limits.smallest_subnormal * 3, limits.eps]  # fmt: skip
        drawn = random.integers(0, 1 << type.bits, 12, dtype=f"u{type.nbytes}").view(dtype)
        values = np.concatenate([np.array(plain, dtype), drawn, [np.nan]]).astype(dtype)
        return np.concatenate([values, -values])
    limits = np.iinfo(dtype)
    drawn = random.integers(limits.min, limits.max, 8, dtype=dtype, endpoint=True)
    near = np.array([0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100], dtype)
    ends = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1], dtype)
    return np.concatenate([near, ends, drawn] if type.kind == "u" else [near, -near, ends, drawn])


def pairs(backend: Backend, type: ScalarType) -> dict[str, Array]:
    """Pairs of edge values: all, or some where each costs much."""
    values = edge_values(type)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    chosen = np.random.default_rng(1).permutation(len(a))[: fewer(backend, 10_000)]
    return {"a": a[chosen], "b": b[chosen]}


def random_bits(backend: Backend, type: ScalarType, count: int) -> Iterator[Array]:
    """Arrays of floating numbers with any bits."""
    random = np.random.default_rng(5)
    while True:
        bits = random.integers(0, 1 << type.bits, fewer(backend, count), dtype=f"u{type.nbytes}")
        yield bits.view(type.dtype)


# -------------------------------------------------------------------------------- tests
def test_arithmetic(backend: Backend) -> None:
    tables = []
    for type in types_of(backend, "iuf"):
        table = Table(type, pairs(backend, type))
        table.of_two({**ARITHMETIC, **DIVISION}, Binary)
        table.of_one({"neg": np.negative, "pos": lambda a: a}, Unary)
        table.of_one({"abs": np.abs, "sign": np.sign}, call)
        if type.is_float:
            table.of_two({"truediv": np.true_divide}, Binary)
            functions = {"fmod": np.fmod, "copysign": np.copysign, "nextafter": nextafter}
            table.of_two(functions, call)
        else:
            table.of_two({**BITS, **SHIFTS}, Binary)
            table.of_one({"invert": np.invert}, Unary)
        tables.append(table)
    check(backend, tables)


def test_bools(backend: Backend) -> None:
    table = Table(BOOL, pairs(backend, BOOL))
    table.of_two({**BITS, "add": np.add, "mul": np.multiply}, Binary)
    table.of_one({"not": np.logical_not, "invert": np.invert}, Unary)
    check(backend, [table])


def test_exact_functions_of_one_argument(backend: Backend) -> None:
    tables = []
    for type in types_of(backend, "f"):
        drawn = next(random_bits(backend, type, 20_000))
        table = Table(type, {"a": np.concatenate([edge_values(type), drawn])})
        names = ("sqrt", "floor", "ceil", "trunc", "rint")
        table.of_one({f: getattr(np, f) for f in names}, call)
        predicates = ("isnan", "isinf", "isfinite", "signbit")
        table.of_one(
            {f: getattr(np, f) for f in predicates}, lambda _, f, x: Call(BOOL, f, (x,))
        )
        tables.append(table)
    check(backend, tables)


def test_random_bits_round_as_in_numpy(backend: Backend) -> None:
    tables = []
    for type in types_of(backend, "f"):
        source = random_bits(backend, type, 50_000)
        a, b = next(source), next(source)
        factors = np.random.default_rng(6).uniform(0.4, 3, len(a))
        with np.errstate(all="ignore"):
            near = (a * factors).astype(type.dtype)
        table = Table(type, {"a": a, "b": np.where(np.arange(len(b)) % 2, b, near)})
        table.of_two({**ARITHMETIC, **DIVISION, "truediv": np.true_divide}, Binary)
        x, y = table.load("a"), table.load("b")
        chain = Binary(type, "add", Binary(type, "mul", x, y), Binary(type, "mul", x, x))
        table.rows["chain"] = chain, lambda a, b: a * b + a * a
        tables.append(table)
    check(backend, tables)


def test_comparisons(backend: Backend) -> None:
    tables = []
    for type in types_of(backend):
        table = Table(type, pairs(backend, type))
        table.of_two(COMPARISONS, compare)
        x, y = table.load("a"), table.load("b")
        chosen = Select(type, less(x, y), x, y)
        table.rows["select"] = chosen, lambda a, b: np.where(a < b, a, b)
        tables.append(table)
    check(backend, tables)


def test_the_same_bits_as_another_type(target: str, backend: Backend) -> None:
    """NaN apart, whose bits are no part of its value."""
    if target == "dpex":
        pytest.skip("numba-dpex reads no bits as another type")
    tables = []
    for type in types_of(backend, "iuf"):
        drawn = next(random_bits(backend, type, 2_000))
        values = np.concatenate([edge_values(type), drawn])
        table = Table(type, {"a": values[values == values]})
        for other in types_of(backend, "iuf"):
            if other.bits == type.bits:
                there = Call(other, BIT_CAST, (table.load("a"),))
                table.rows[f"as {other}"] = there, lambda a, o=other: a.view(o.dtype)
                if not other.is_float:  # a sum of narrow integers is wider in C
                    back = Binary(other, "add", there, const(1, other))
                    table.rows[f"as {other} and back"] = (
                        Call(UNSIGNED[type.bits], BIT_CAST, (back,)),
                        lambda a, o=other: (a.view(o.dtype) + o.dtype.type(1)).view(f"u{o.nbytes}"),
                    )
        tables.append(table)
    check(backend, tables)


def test_minima_and_maxima(backend: Backend) -> None:
    tables = []
    for type in types_of(backend):
        table = Table(type, pairs(backend, type))
        table.of_two(ORDER, call)
        tables.append(table)
    # NumPy is of two minds about which of 0.0 and -0.0 is smaller.
    check(backend, tables, zeros_by_sign=False)


def test_integer_powers(backend: Backend) -> None:
    tables = []
    for type in types_of(backend, "iu"):
        exponents = np.array([0, 1, 2, 3, 5, 8, 31, 100], f"u{type.nbytes}")
        a, b = (x.ravel() for x in np.meshgrid(edge_values(type), exponents))
        table = Table(type, {"a": a, "b": b})
        y = Cast(type, load(table.name("b"), ITEM, type=SCALAR_TYPES[b.dtype.name]))
        table.rows["pow"] = (
            Binary(type, "pow", table.load("a"), y), lambda a, b: np.power(a, b.astype(a.dtype))
        )  # fmt: skip
        tables.append(table)
    check(backend, tables)


def test_operations_with_constants(backend: Backend) -> None:
    """Constants take other paths: plain division and shifts, wrapping chains.  Types have each
    constant in turn."""
    tables = []
    for number_, type in enumerate(types_of(backend, "iu")):
        table = Table(type, {"a": edge_values(type)})
        x, rows, number = table.load("a"), table.rows, type.dtype.type
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        values = [1, 2, 3, high, low, low + 1] + ([-1, -2] if type.kind == "i" else [])
        for value in one_in(2, values, number_ % 2):
            c, scalar = const(value, type), number(value)
            for op, function in (ARITHMETIC | DIVISION).items():
                rows[f"{op} {value}"] = (
                    Binary(type, op, x, c), lambda a, f=function, s=scalar: f(a, s)
                )  # fmt: skip
                rows[f"{value} {op}"] = (
                    Binary(type, op, c, x), lambda a, f=function, s=scalar: f(s, a)
                )  # fmt: skip
        for shift in (0, 1, type.bits - 1, type.bits, 100):
            by = number(shift)
            for op, function in SHIFTS.items():
                rows[f"{op} {shift}"] = (
                    Binary(type, op, x, const(shift, type)), lambda a, f=function, s=by: f(a, s)
                )  # fmt: skip
        y = Binary(type, "mul", Unary(type, "neg", x), Binary(type, "add", x, const(3, type)))
        rows["chain"] = (
            Binary(type, "sub", const(5, type), Binary(type, "mul", y, y)),
            lambda a: 5 - (-a * (a + 3)) * (-a * (a + 3)),
        )
        tables.append(table)
    check(backend, tables)


def test_operations_on_results_that_wrap(backend: Backend, target: str) -> None:
    """No compiler may take it that nothing is its own negative, or greater than its successor.
    Types have every other result in turn."""
    if target == "dpex":
        pytest.skip("the compiler of oneAPI 2024.2 takes it that a negation does not wrap")
    tables = []
    for number_, type in enumerate(types_of(backend, "iu")):
        table = Table(type, {"a": edge_values(type)})
        x, zero, one = table.load("a"), const(0, type), const(1, type)
        minus_one = const(-1 if type.kind == "i" else np.iinfo(type.dtype).max, type)
        wrapping: dict[str, tuple[Expr, Function]] = {
            "-a": (Unary(type, "neg", x), np.negative),
            "0 - a": (Binary(type, "sub", zero, x), np.negative),
            "a * -1": (Binary(type, "mul", x, minus_one), np.negative),
            "a // -1": (Binary(type, "floordiv", x, minus_one),
                        lambda a: a // -np.ones_like(a)),
            "a + 1": (Binary(type, "add", x, one), lambda a: a + np.ones_like(a)),
            "a << 1": (Binary(type, "shl", x, one), lambda a: a << np.ones_like(a)),
            "abs(a)": (call(type, "abs", x), np.abs),
        }  # fmt: skip
        for name, (y, of) in one_in(2, wrapping.items(), number_ % 2):
            then = {f"{f} of {name}": (call(type, f, y), g)
                    for f, g in {"sign": np.sign, "abs": np.abs}.items()}  # fmt: skip
            then[f"- of {name}"] = Unary(type, "neg", y), np.negative
            for op, f, number in (
                *(("shr", np.right_shift, n) for n in (1, type.bits - 1, type.bits)),
                *(("floordiv", np.floor_divide, n) for n in (2, 3)),
                *(("mod", np.remainder, n) for n in (2, 3)),
            ):
                expr = Binary(type, op, y, const(number, type))
                then[f"{name} {op} {number}"] = expr, lambda v, f=f, n=number: f(v, v.dtype.type(n))
            for op, f in COMPARISONS.items():
                then[f"{name} {op} 0"] = compare(type, op, y, zero), lambda v, f=f: f(v, 0)
            table.rows |= {
                row: (expr, lambda a, f=f, of=of: f(of(a))) for row, (expr, f) in then.items()
            }
        tables.append(table)
    check(backend, tables)


def test_casts(backend: Backend) -> None:
    tables = []
    for source in types_of(backend):
        a = edge_values(source)
        if source.is_float:
            with np.errstate(over="ignore"):
                powers = np.float64(2) ** np.arange(-30, 66)
                around = np.concatenate([powers, -powers, powers + 0.5, powers * 1.0000001])
                a = np.concatenate([a, around.astype(source.dtype)])
        table = Table(source, {"a": a})
        for target in types_of(backend):
            cast = Cast(target, table.load("a"))
            table.rows[f"{target} of"] = cast, lambda a, t=target: converted(a, t)
        tables.append(table)
    check(backend, tables)


def converted(a: Array, target: ScalarType) -> Array:
    """The language's casts: NumPy's, but floating to integer saturates and NaN gives 0."""
    if a.dtype.kind != "f" or not target.is_integer:
        return a.astype(target.dtype)
    limits = np.iinfo(target.dtype)
    exact = [int(x) if np.isfinite(x) else (0 if np.isnan(x) else 1 << 70 if x > 0 else -1 << 70)
             for x in a.tolist()]  # fmt: skip
    return np.array([min(max(x, limits.min), limits.max) for x in exact], target.dtype)
