"""Inline a producer: its consumer computes the elements that it reads anew.

    blur(a, t):  t[i] = a[i-1] + a[i+1]           t_1 = a[i-2] + a[i]
    edge(t, b):  b[i] = t[i-1] - t[i+1]    →      t_2 = a[i] + a[i+2]
                                                  b[i] = t_1 - t_2

The producer's body stands once for each element that is read, with the ids of the work-item that
writes that element, before the statement that reads it; where an element is read under a condition
only, it is computed under that condition.  An element that is read again in the same straight line
is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from fusionq.base.frozen import dataclass
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Block,
    Expr,
    Extent,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    KernelParam,
    Load,
    Logical,
    Param,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    map_operands,
    renamed_statement,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)
from fusionq.passes.propagate_indices import propagate_indices

MOST_NODES = 20_000
"""Expressions of a kernel after inlining: each is compiled."""

Indices = tuple[Expr, ...]


class NotInlined(Exception):
    """A producer is not inlined; the text says why."""


@dataclass(frozen=True)
class Producer:
    """What is inlined: ``kernel``, which writes the arrays ``items`` and no other memory.

    ``items``: for each of them the ids of the work-item that writes an element, in terms of the
    kernel's parameters and of ``index_of(d)``, the element's index in dimension ``d``.
    """

    kernel: Kernel
    items: Mapping[str, Indices]


def index_of(dim: int) -> Var:
    """Stands for an element's index in ``Producer.items``."""
    return Var(INT64, f"index of {dim}")


@dataclass(frozen=True)
class Inlined:
    """The consumer with its producer's body; ``params``: the new parameter for each of the
    producer's that its body uses."""

    kernel: Kernel
    params: Mapping[str, str]


def inline_producer(
    consumer: Kernel, temporaries: Mapping[str, str], producer: Producer
) -> Inlined:
    """``consumer`` without its loads from the arrays ``temporaries``, which are those of the
    producer that they are mapped to; their extents stay.

    Raises NotInlined where the kernel would become too long, or a loop's condition reads an
    element.
    """
    return _Inliner(propagate_indices(consumer), temporaries, producer).run()


@dataclass
class _Inliner:
    consumer: Kernel
    temporaries: Mapping[str, str]
    producer: Producer
    variables: list[tuple[str, ScalarType]] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    added: list[KernelParam] = field(default_factory=list)
    arrays: dict[str, str] = field(default_factory=dict)
    nodes: int = 0

    def __post_init__(self) -> None:
        kernel = self.consumer
        loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
        self.names = FreshNames(
            [p.name for p in kernel.params]
            + [name for name, _ in kernel.variables]
            + [a.name for a in kernel.arrays]
            + loops
        )
        self.body_of_producer = propagate_indices(self.producer.kernel)
        self.size = sum(1 for _ in expressions(self.body_of_producer.body))
        self.nodes = sum(1 for _ in expressions(kernel.body))
        self.declared = {a.name: a for a in self.body_of_producer.arrays}

    def run(self) -> Inlined:
        body = self._body(self.consumer.body, {})
        declared = tuple(replace(self.declared[a], name=n) for a, n in self.arrays.items())
        kernel = replace(
            self.consumer,
            params=(*self.consumer.params, *self.added),
            variables=(*self.consumer.variables, *self.variables),
            body=body,
            arrays=(*self.consumer.arrays, *declared),
        )
        return Inlined(kernel, self.params)

    # ------------------------------------------------------------------------ consumer
    def _body(self, body: Sequence[Stmt], known: _Known) -> tuple[Stmt, ...]:
        """``body`` where the elements ``known`` have been computed."""
        out: list[Stmt] = []
        for stmt in body:
            out.append(self._statement(stmt, out, known))
            _forget(known, (stmt,))
        return tuple(out)

    def _statement(self, stmt: Stmt, out: list[Stmt], known: _Known) -> Stmt:
        """``stmt``; what it needs goes to the end of ``out``."""

        def expr(e: Expr) -> Expr:
            return self._expr(e, out, known)

        match stmt:
            case Assign():
                return replace(stmt, value=expr(stmt.value))
            case Store():
                indices = tuple(expr(i) for i in stmt.indices)
                return replace(stmt, indices=indices, value=expr(stmt.value))
            case Atomic():
                indices = tuple(expr(i) for i in stmt.indices)
                value = None if stmt.value is None else expr(stmt.value)
                return replace(stmt, indices=indices, value=value)
            case GroupCall():
                source = None if stmt.source is None else expr(stmt.source)
                return replace(stmt, value=expr(stmt.value), source=source)
            case Record():
                return replace(stmt, payload=None if stmt.payload is None else expr(stmt.payload))
            case If():
                cond = expr(stmt.cond)
                then = self._body(stmt.then, dict(known))
                orelse = self._body(stmt.orelse, dict(known))
                return replace(stmt, cond=cond, then=then, orelse=orelse)
            case For():
                start, stop, step = expr(stmt.start), expr(stmt.stop), expr(stmt.step)
                inner = dict(known)
                _forget(inner, stmt.body)
                body = self._body(stmt.body, inner)
                return replace(stmt, start=start, stop=stop, step=step, body=body)
            case While():
                if self._reads(stmt.cond):
                    raise NotInlined(f"the condition of the loop at {stmt.span} reads it")
                inner = dict(known)
                _forget(inner, stmt.body)
                return replace(stmt, body=self._body(stmt.body, inner))
            case Block():
                return replace(stmt, body=self._body(stmt.body, known))
            case _:
                return stmt

    def _reads(self, expr: Expr) -> bool:
        return any(
            isinstance(e, Load) and e.array in self.temporaries for e in subexpressions(expr)
        )

    def _expr(self, expr: Expr, out: list[Stmt], known: _Known) -> Expr:
        """``expr`` without loads of temporaries; what computes them goes to the end of ``out``."""
        if not self._reads(expr):
            return expr
        match expr:
            case Load(_, array, indices) if array in self.temporaries:
                return self._element(self.temporaries[array], indices, out, known)
            case Select(type, cond, then, orelse) if self._reads(then) or self._reads(orelse):
                condition = self._expr(cond, out, known)
                value = self._variable("chosen", type)
                yes = self._assigned(value, then, known)
                out.append(If(condition, yes, self._assigned(value, orelse, known)))
                return value
            case Logical(op, lhs, rhs) if self._reads(rhs):
                value = self._variable("holds", BOOL)
                out.append(Assign(value.name, self._expr(lhs, out, known)))
                asked = value if op == "and" else Unary(BOOL, "not", value)
                out.append(If(asked, self._assigned(value, rhs, known)))
                return value
            case _:
                return map_operands(expr, lambda e: self._expr(e, out, known))

    def _assigned(self, variable: Var, value: Expr, known: _Known) -> tuple[Stmt, ...]:
        """``variable = value``, with what that needs."""
        out: list[Stmt] = []
        chosen = self._expr(value, out, dict(known))
        return (*out, Assign(variable.name, chosen))

    # ------------------------------------------------------------------------ producer
    def _element(self, array: str, indices: Indices, out: list[Stmt], known: _Known) -> Var:
        """The variable that holds the element ``indices`` of the producer's ``array``."""
        place = {index_of(d): index for d, index in enumerate(indices)}

        def expr(e: Expr) -> Expr:
            match e:
                case Var():
                    return place[e]
                case Param():
                    return replace(e, name=self._param(e.name))
                case Extent():
                    return replace(e, array=self._param(e.array))
                case _:
                    return e

        items = tuple(index_sum(rewrite(i, expr)) for i in self.producer.items[array])
        if items not in known:
            known[items] = self._computed(items, out)
        return known[items][array]

    def _computed(self, items: Indices, out: list[Stmt]) -> dict[str, Var]:
        """Compute what the producer's work-item ``items`` writes: a variable for each array."""
        self.nodes += self.size
        if self.nodes > MOST_NODES:
            raise NotInlined(f"the kernel would have more than {MOST_NODES:,} expressions")
        kernel = self.body_of_producer
        variables = {name: self.names.fresh(name) for name, _ in kernel.variables}
        self.variables += [(variables[name], type_) for name, type_ in kernel.variables]
        for stmt in statements(kernel.body):
            if isinstance(stmt, For):
                variables[stmt.var] = self.names.fresh(stmt.var)
        results: dict[str, Var] = {}
        for param in kernel.params:
            if param.name in self.producer.items:
                assert isinstance(param, ArrayParam)
                results[param.name] = self._variable(param.name, param.dtype)

        def expr(e: Expr) -> Expr:
            match e:
                case Var():
                    return replace(e, name=variables[e.name])
                case Param():
                    return replace(e, name=self._param(e.name))
                case Extent():
                    return replace(e, array=self._array(e.array))
                case Load() if e.array in results:
                    return results[e.array]
                case Load():
                    indices = tuple(index_sum(i) for i in e.indices)
                    return replace(e, array=self._array(e.array), indices=indices)
                case ItemQuery("global_id", dim):
                    return items[dim]
                case _:
                    return e

        def stmt_(s: Stmt) -> tuple[Stmt, ...]:
            match s:
                case Store() if s.array in results:
                    return (Assign(results[s.array].name, s.value, s.span),)
                case Store():  # to a private array of its own
                    return (replace(s, array=self._array(s.array)),)
                case Assign() | For():
                    return (renamed_statement(s, variables, {}),)
                case _:
                    return (s,)

        out += rewrite_body(kernel.body, expr, stmt_)
        return results

    def _variable(self, wanted: str, type_: ScalarType) -> Var:
        name = self.names.fresh(wanted)
        self.variables.append((name, type_))
        return Var(type_, name)

    def _param(self, name: str) -> str:
        if name not in self.params:
            self.params[name] = self.names.fresh(name)
            self.added.append(replace(self.producer.kernel.param(name), name=self.params[name]))
        return self.params[name]

    def _array(self, name: str) -> str:
        """The consumer's name for an array of the producer: a parameter, or its own."""
        if name not in self.declared:
            return self._param(name)
        if name not in self.arrays:
            self.arrays[name] = self.names.fresh(name)
        return self.arrays[name]


_Known = dict[Indices, dict[str, Var]]
"""What is computed already, by the ids of the producer's work-item."""


def _forget(known: _Known, body: Sequence[Stmt]) -> None:
    """Drop what is known by ids that ``body`` changes."""
    changed = {assigned_variable(s) for s in statements(body)}
    changed |= {s.var for s in statements(body) if isinstance(s, For)}
    for items in list(known):
        used = {e.name for item in items for e in subexpressions(item) if isinstance(e, Var)}
        if not used.isdisjoint(changed):
            del known[items]
