"""Random expressions of the kernel language as Python text, well-typed by construction.

Choices are ordered from simple to complicated, so that failures shrink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

from hypothesis import strategies as st

from fusionq.ir.types import (
    BOOL,
    FLOAT64,
    INT64,
    UINT64,
    WEAK_FLOAT,
    WEAK_INT,
    ScalarType,
    promote,
)
from tests.property.kernel_parameters import DTYPES, GatherArray, Parameter, ScalarParameter

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Features:
    """What random kernels may use."""

    dtypes: tuple[ScalarType, ...] = DTYPES
    transcendental: bool = True
    """Functions whose last bit differs between libraries."""
    depth: int = 3
    statements: int = 5
    sub_groups: bool = True
    """Functions of sub-groups, where the work-groups consist of whole ones."""


@dataclass
class Scope:
    """What statements at one place may refer to."""

    variables: list[tuple[str, ScalarType]] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    """Python ints that are small and not negative."""
    elements: list[tuple[str, ScalarType, bool]] = field(default_factory=list)
    """Elements known to be in bounds: text, dtype, whether they may be written."""
    in_loop: bool = False

    def inner(self) -> Scope:
        return Scope(list(self.variables), list(self.numbers), list(self.elements), self.in_loop)


# ----------------------------------------------------------------------- expressions
class Expressions:
    """Draws expressions of a wanted type; every text may stand as an operand as it is."""

    def __init__(self, draw: Draw, features: Features, parameters: Sequence[Parameter]) -> None:
        self._draw = draw
        self._features = features
        self._gathers = [p for p in parameters if isinstance(p, GatherArray)]
        self._scalars = [p for p in parameters if isinstance(p, ScalarParameter)]
        self.ids: list[str] = []
        """Names of int64 ids."""
        self.tables: list[str] = []
        """Statements outside the kernel that define constant arrays, tuples and lists."""
        self.functions: list[tuple[str, tuple[ScalarType, ...], ScalarType]] = []
        """Device functions: name, parameters, result."""

    def choose(self, choices: Sequence[T]) -> T:
        choice: T = self._draw(st.sampled_from(choices))
        return choice

    def chance(self, percent: int) -> bool:
        """True in about ``percent`` of the draws; shrinks to False."""
        return bool(self._draw(st.integers(0, 99)) >= 100 - percent)

    def literal(self, type_: ScalarType) -> str:
        """A literal that fits the type, without its type."""
        if type_.is_bool:
            return self.choose(("True", "False"))
        if type_.is_float and self.chance(50):
            return self.choose(("1.0", "0.5", "2.0", "0.1", "3.7", "0.0", "100.25"))
        values = ("1", "2", "3", "0", "5", "7", "100")
        return self.choose(values if type_.kind == "u" else (*values, "-1", "-3"))

    def constant(self, type_: ScalarType) -> str:
        """A literal in its type."""
        if type_.is_float and self.chance(10):
            return f"{typed(type_)}({self.choose(('np.inf', 'np.nan', '-np.inf', '-0.0'))})"
        return f"{typed(type_)}({self.literal(type_)})"

    def expression(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        """An expression whose type is exactly ``type_`` (and no Python number)."""
        if depth == 0 or not self.chance(75):
            return self.choose(self._leaves(type_, scope))()
        return self.choose(self._nodes(type_))(type_, scope, depth - 1)

    # ---------------------------------------------------------------------- leaves
    def _names(self, scope: Scope) -> list[tuple[str, ScalarType]]:
        """Everything that has a value: text and type, possibly weak."""
        names = [(text, dtype) for text, dtype, _ in reversed(scope.elements)]
        names += scope.variables
        names += [(p.name, p.type) for p in self._scalars]
        names += [(name, INT64) for name in self.ids]
        return names + [(name, WEAK_INT) for name in scope.numbers[-3:]]

    def _leaves(self, type_: ScalarType, scope: Scope) -> list[Callable[[], str]]:
        names = self._names(scope)
        own = [text for text, of in names if of == type_]
        others = [text for text, of in names if of != type_ and convertible(of, type_)]
        gathers = [g for g in self._gathers if g.dtype == type_]
        leaves: list[Callable[[], str]] = []
        if own:
            leaves += [lambda: self.choose(own)] * 5
        if gathers:
            leaves += [lambda: self.gather(self.choose(gathers), scope)] * 2
        if others:
            leaves += [lambda: f"{typed(type_)}({self.choose(others)})"] * 2
        return [*leaves, lambda: self.constant(type_), lambda: self.tabulated(type_, scope)]

    def index(self, scope: Scope) -> str:
        """An integer that may be out of bounds."""
        names = [*self.ids, *scope.numbers]
        base = self.choose(names) if names else "0"
        shape = self.choose(("{}", "{} + 1", "{} - 1", "2 * {}", "3 - {}", "{} // 2", "{} % 3"))
        if self.chance(10):
            base = self.expression(INT64, scope, 1)
        return shape.format(base)

    def tabulated(self, type_: ScalarType, scope: Scope) -> str:
        """An element of a constant array, a tuple or a list from outside the kernel."""
        size = self.choose((3, 1, 5))
        numbers = [self.constant(type_) for _ in range(size)]
        index = f"({self.index(scope)}) % {size}"  # which may have a table of its own
        name = f"TABLE{len(self.tables)}"
        if self.chance(50):
            self.tables.append(f"{name} = np.array([{', '.join(numbers)}])")
            return f"{name}[{index}]"
        weak = [self.literal(type_) for _ in range(size)]
        self.tables.append(f"{name} = {self.choose(('({},)', '[{}]')).format(', '.join(weak))}")
        return f"{typed(type_)}({name}[{index}])"

    def gather(self, array: GatherArray, scope: Scope) -> str:
        """An element of an array, or a constant where the index is out of bounds."""
        indices = [self.index(scope) for _ in range(array.ndim)]
        checks = [f"0 <= {index} < {array.name}.shape[{d}]" for d, index in enumerate(indices)]
        element = f"{array.name}[{', '.join(indices)}]"
        return f"({element} if {' and '.join(checks)} else {self.constant(array.dtype)})"

    # ----------------------------------------------------------------------- nodes
    def _nodes(self, type_: ScalarType) -> list[Callable[[ScalarType, Scope, int], str]]:
        nodes: list[Callable[[ScalarType, Scope, int], str]] = []
        if type_.is_bool:
            nodes = [self._comparison, self._connective, self._predicate, self._bitwise]
        else:
            nodes = [self._arithmetic, self._mixed_arithmetic, self._sign, self._extremum]
            if type_.is_float:
                nodes += [self._division, self._float_function, self._shared_terms]
            else:
                nodes += [self._integer_division, self._bitwise, self._shift, self._power]
        nodes += [self._conditional, self._cast]
        if any(result == type_ for _, _, result in self.functions):
            nodes.append(self._call)
        return nodes

    def operand(self, type_: ScalarType, scope: Scope, depth: int, compared: bool = False) -> str:
        """An operand beside one of type ``type_``: of that type, or a Python number.

        ``compared``: no Python int known at run time only beside uint64, since no type holds
        both.
        """
        if not type_.is_bool and self.chance(30):
            return self.literal(type_)
        weak = not type_.is_bool and not (compared and type_ == UINT64)
        if scope.numbers and weak and self.chance(10):
            number = self.choose(scope.numbers)
            narrow = type_.is_integer and type_.bits == 8  # which may be too narrow for a shape
            return f"min({number}, 100)" if narrow else number
        return self.expression(type_, scope, depth)

    def _arithmetic(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        operands = [self.expression(type_, scope, depth), self.operand(type_, scope, depth)]
        if self.chance(20):
            operands.reverse()
        return f"({operands[0]} {self.choose('+-*')} {operands[1]})"

    def _shared_terms(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        """Products of sums that share a term and the factor: a compiler that multiplies the terms
        rounds them otherwise."""
        x, y, z, factor = (self.expression(type_, scope, 0) for _ in range(4))
        products = [f"({x} {self.choose('+-')} {other}) * {factor}" for other in (y, z)]
        return f"({products[0]} {self.choose('+-*')} {products[1]})"

    def _mixed_arithmetic(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        pairs = [
            (a, b)
            for a, b in product(self._features.dtypes, (*self._features.dtypes, WEAK_FLOAT))
            if a != b and promote(a, b) == type_ and not (a.is_bool and b.is_bool)
        ]
        if not pairs:
            return self._arithmetic(type_, scope, depth)
        a, b = self.choose(pairs)
        lhs = self.expression(a, scope, depth)
        rhs = self.literal(WEAK_FLOAT) if b.weak else self.expression(b, scope, depth)
        if b.weak and "." not in rhs:
            rhs = "0.25"
        return f"({lhs} {self.choose('+-*')} {rhs})"

    def _sign(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        forms = ["-{}", "abs({})", "np.abs({})", "+{}", "np.sign({})"]
        forms += [] if type_.is_float else ["~{}"]
        return f"({self.choose(forms).format(self.expression(type_, scope, depth))})"

    def _extremum(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        a, b = self.expression(type_, scope, depth), self.operand(type_, scope, depth, True)
        name = self.choose(("min", "max", "np.minimum", "np.maximum", "np.fmin", "np.fmax"))
        if name.startswith("np.") and type_.is_float:
            return f"({name}({a}, {b}) + 0.0)"  # NumPy leaves open which of two zeros it gives
        return f"{name}({a}, {b})"

    def _division(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        operand = type_
        integers = [t for t in self._features.dtypes if t.is_integer]
        if type_ == FLOAT64 and integers and self.chance(20):
            operand = self.choose(integers)
        op = self.choose(("/", "//", "%")) if operand == type_ else "/"
        lhs, rhs = self.expression(operand, scope, depth), self.operand(operand, scope, depth)
        return f"({lhs} {op} {rhs})"

    def _integer_division(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        lhs, rhs = self.expression(type_, scope, depth), self.operand(type_, scope, depth)
        return f"({lhs} {self.choose(('//', '%'))} {rhs})"

    def _bitwise(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        lhs, rhs = self.expression(type_, scope, depth), self.operand(type_, scope, depth)
        return f"({lhs} {self.choose('&|^')} {rhs})"

    def _shift(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        lhs, rhs = self.expression(type_, scope, depth), self.operand(type_, scope, depth)
        return f"({lhs} {self.choose(('<<', '>>'))} {rhs})"

    def _power(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        base = self.expression(type_, scope, depth)
        if type_.kind == "u" and self.chance(50):
            return f"({base} ** {self.expression(type_, scope, depth)})"
        return f"({base} ** {self.choose('2301')})"

    def _float_function(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        names = ["np.sqrt", "np.floor", "np.ceil", "np.trunc", "np.rint", "math.sqrt", "math.fabs"]
        if self._features.transcendental:
            names += ["np.exp", "math.sin", "np.tanh", "np.log1p", "math.erf", "np.arctan"]
        if self.chance(20):
            two = ["np.copysign", "np.fmod", "np.nextafter"]
            two += ["np.arctan2", "np.hypot"] if self._features.transcendental else []
            a, b = self.expression(type_, scope, depth), self.expression(type_, scope, depth)
            name = self.choose(two)
            return f"{name}({a}, {no_nan(b, type_) if name == 'np.copysign' else b})"
        return f"{self.choose(names)}({self.expression(type_, scope, depth)})"

    def _conditional(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        a, b = self.expression(type_, scope, depth), self.expression(type_, scope, depth)
        return f"({a} if {self.condition(scope, depth)} else {b})"

    def _cast(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        source = self.choose(self._features.dtypes)
        if source.is_bool and type_.is_bool:
            source = INT64
        value = self.expression(source, scope, depth)
        if source.is_float and self.chance(20):
            value = f"{self.choose(('int', 'math.floor', 'math.ceil', 'round'))}({value})"
            return f"{typed(type_)}(np.int64({value}))"
        return f"{typed(type_)}({value})"

    def _call(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        name, parameters, _ = self.choose([f for f in self.functions if f[2] == type_])
        return f"{name}({', '.join(self.expression(p, scope, depth) for p in parameters)})"

    # ----------------------------------------------------------------- truth values
    def _comparison(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        a = self.choose(self._features.dtypes)
        b = a
        if self.chance(20):
            b = self.choose([b for b in self._features.dtypes if comparable(a, b)])
        lhs = self.expression(a, scope, depth)
        rhs = self.operand(a, scope, depth, True) if a == b else self.expression(b, scope, depth)
        ops = ("<", "<=", ">", ">=", "==", "!=")
        if a == b and self.chance(15):
            last = self.operand(a, scope, depth, True)
            return f"({lhs} {self.choose(ops)} {rhs} {self.choose(ops)} {last})"
        return f"({lhs} {self.choose(ops)} {rhs})"

    def _connective(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        op = self.choose(("and", "or"))
        return f"({self.expression(BOOL, scope, depth)} {op} {self.expression(BOOL, scope, depth)})"

    def _predicate(self, type_: ScalarType, scope: Scope, depth: int) -> str:
        floats = [t for t in self._features.dtypes if t.is_float]
        if not floats:
            return self._comparison(type_, scope, depth)
        name, operand = self.choose(("isnan", "isinf", "isfinite", "signbit")), self.choose(floats)
        value = self.expression(operand, scope, depth)
        return f"np.{name}({no_nan(value, operand) if name == 'signbit' else value})"

    def condition(self, scope: Scope, depth: int) -> str:
        """What may stand after ``if``: a bool, its negation, or a number."""
        if self.chance(15):
            return f"not {self.expression(BOOL, scope, depth)}"
        if self.chance(10):
            return self.expression(self.choose(self._features.dtypes), scope, depth)
        return self.expression(BOOL, scope, depth)


def typed(type_: ScalarType) -> str:
    """How a kernel writes the type."""
    return "np.bool_" if type_.is_bool else f"np.{type_.name}"


def no_nan(value: str, type_: ScalarType) -> str:
    """``value``, but minus infinity for a NaN, whose sign is left open (IEEE 754, section 6.3)."""
    return f"np.fmax({value}, {typed(type_)}(-np.inf))"


def convertible(source: ScalarType, target: ScalarType) -> bool:
    """Whether a conversion is in the language: not of a Python float to an integer type, which
    NumPy leaves open."""
    return target.is_float or source != WEAK_FLOAT


def comparable(a: ScalarType, b: ScalarType) -> bool:
    """Whether the language compares the two exactly."""
    common = promote(a, b)
    return not common.is_float or a.is_float or b.is_float
