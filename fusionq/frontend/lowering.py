"""A kernel's syntax tree, specialised for argument types, as IR; inlining of its calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType

from fusionq.base.errors import KernelLanguageError
from fusionq.frontend.bfloat16 import legalised
from fusionq.frontend.callees import Callee
from fusionq.frontend.captures import Captures
from fusionq.frontend.counted_loops import with_counted_loops
from fusionq.frontend.draft import finish
from fusionq.frontend.item_parameter import is_item, item_kind
from fusionq.frontend.kernel_state import KernelState
from fusionq.frontend.memory import declarations
from fusionq.frontend.record_arrays import field_arrays
from fusionq.frontend.signature import (
    ArrayType,
    ConstantType,
    LocalType,
    ReductionType,
    Signature,
    part_names,
)
from fusionq.frontend.source import FunctionSource
from fusionq.frontend.state import FunctionState
from fusionq.frontend.statements import Statements
from fusionq.frontend.unusable import conflict
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Binding,
    ComplexValue,
    Environment,
    FunctionValue,
    ItemValue,
    NewPrivateArray,
    ObjectValue,
    ReductionValue,
    Runtime,
    TupleValue,
    Value,
    VectorValue,
    same,
)
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Atomic,
    Extent,
    GroupCall,
    Kernel,
    KernelParam,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Store,
)
from fusionq.ir.record_types import RecordType
from fusionq.ir.types import ScalarType, component_type
from fusionq.ir.walk import expressions, statements


class FunctionLowering(Statements):
    """Lowers a whole function: the kernel, or one that it calls."""

    def inline(
        self,
        callee: Callee,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.AST,
    ) -> Value:
        """Lower the called function's body in place, and give its result.

        The body's variables are renamed; its returns become jumps to the end of the call.
        """
        try:
            source = self.kernel.captures.source(callee.function)
        except KernelLanguageError as error:
            place = f"{self.span(node)}, in {self.source.name!r}"
            raise KernelLanguageError(f"{error}\n  called at {place}") from None
        self._refuse_recursion(source, node)
        first = [self.captured(value, source.name, node) for value in callee.arguments]
        named = {k: self.captured(v, k, node) for k, v in callee.keywords if k not in keywords}
        given = [*first, *arguments], {**named, **keywords}
        defaults = partial(self._defaults, source, node)
        bound = self._bind_arguments(source, *given, defaults, node)
        return self.inline_bound(callee, source, bound, node)

    def inline_nested(
        self,
        function: FunctionValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.AST,
    ) -> Value:
        """The result of a call of a function that is defined in the kernel."""
        source, enclosing = function.source, function.enclosing
        self._refuse_recursion(source, node)
        defaults = function.defaults.get
        bound = self._bind_arguments(source, arguments, keywords, defaults, node)
        inner = self.inside(Callee(source.function), source, node)
        assert isinstance(enclosing, FunctionState)
        inner.enclosing = enclosing
        return self._lower_inside(inner, bound, node)

    def inline_bound(
        self, callee: Callee, source: FunctionSource, bound: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """The result of a call whose parameters have these values."""
        return self._lower_inside(self.inside(callee, source, node), bound, node)

    def _lower_inside(
        self, inner: FunctionLowering, bound: Mapping[str, Value], node: ast.AST
    ) -> Value:
        assert inner.env is not None
        source = inner.source
        for name, value in bound.items():
            inner.env[name] = Binding(inner.parameter(name, value), source.span(source.tree))
        inner.statements(source.tree.body)
        result = inner.result(node)
        self.block += finish(inner.block, lambda: inner.fresh("returned"))
        return result

    def inside(self, callee: Callee, source: FunctionSource, node: ast.AST) -> FunctionLowering:
        """What lowers the body of a function that is called here."""
        return type(self)(self.kernel, source, {}, (self, node))

    def _refuse_recursion(self, source: FunctionSource, node: ast.AST) -> None:
        frame: FunctionState | None = self
        while frame is not None:
            if frame.source.tree is source.tree:
                self.fail(
                    node,
                    f"{source.name!r} calls itself; recursion is not supported",
                    "Write it as a loop.",
                )
            frame = frame.caller[0] if frame.caller is not None else None

    def _bind_arguments(
        self,
        source: FunctionSource,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        default: Callable[[str], Value | None],
        node: ast.AST,
    ) -> dict[str, Value]:
        """Each parameter's value: by position, by keyword, or its default."""
        spec = source.tree.args
        if spec.vararg is not None or spec.kwarg is not None:
            self.fail(
                node,
                f"{source.name!r} takes * or ** arguments",
                "Functions that kernels call have named parameters only.",
            )
        positional = source.parameters
        names = (*positional, *(a.arg for a in spec.kwonlyargs))
        if len(arguments) > len(positional):
            self.fail(
                node,
                f"{source.name!r} takes {len(positional)} arguments, not {len(arguments)}",
                f"Its parameters are {', '.join(positional) or 'none'}.",
            )
        bound = dict(zip(positional, arguments, strict=False))
        only_positional = {a.arg for a in spec.posonlyargs}
        for name, value in keywords.items():
            if name not in names or name in bound or name in only_positional:
                self.fail(
                    node,
                    f"{source.name!r} cannot take the keyword argument {name!r}",
                    f"Its parameters are {', '.join(names) or 'none'}; give each one once.",
                )
            bound[name] = value
        for name in names:
            if name not in bound:
                given = default(name)
                if given is None:
                    self.fail(
                        node,
                        f"{source.name!r} needs the argument {name!r}",
                        f"Its parameters are {', '.join(names)}.",
                    )
                bound[name] = given
        return bound

    def _defaults(self, source: FunctionSource, node: ast.AST, name: str) -> Value | None:
        """The default of a parameter of a plain Python function; None where it has none."""
        positional = source.parameters
        defaults = dict(source.function.__kwdefaults__ or {})
        values = source.function.__defaults__ or ()
        defaults |= dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        if name not in defaults:
            return None
        return self.captured(defaults[name], f"the default of {name}", node)

    def parameter(self, name: str, value: Value) -> Value:
        """An argument as the inlined body sees it; evaluated once."""
        assert self.caller is not None
        outer, node = self.caller
        match value:
            case Runtime():
                return self.spilled(value, name, self.source.tree)
            case TupleValue():
                items = [self.parameter(f"{name}_{i}", v) for i, v in enumerate(value.items)]
                return replace(value, items=tuple(items))
            case ComplexValue():
                return self.once(value, name, self.source.tree)
            case ArrayValue() if value.axes:
                return value.mapped(
                    lambda index: self.spilled_expr(index, f"{name}_index", self.source.tree)
                )
            case VectorValue():
                return self.materialised(name, value, self.source.tree)
            case AtomicValue():
                element = self.parameter(name, value.element)
                assert isinstance(element, ArrayValue)
                return replace(value, element=element)
            case NewPrivateArray():
                return self.declared(name, value, self.source.tree)
            case ObjectValue(object=ModuleType()):
                outer.fail(node, "a module cannot be an argument", "Use the module's own name.")
            case _:
                return value

    def result(self, call: ast.AST) -> Value:
        """What the inlined function returns, after its body was lowered."""
        assert self.caller is not None
        none = ObjectValue(None)
        if not self.returns:
            return none
        last = self.block[-1] if self.block else None
        if self.env is None and len(self.returns) == 1 and last is self.returns[0][0]:
            self.block.pop()
            return self.returns[0][1]
        values = [value for _, value, _ in self.returns] + ([none] if self.env is not None else [])
        if all(same(values[0], v) and not isinstance(v, (Runtime, ComplexValue)) for v in values):
            return values[0]
        if any(isinstance(v, ObjectValue) and v.object is None for v in values):
            _, _, node = self.returns[0]
            self.fail(
                node,
                f"{self.source.name!r} returns a value on some paths only",
                "Return a value at the end too.",
            )
        bindings = [Binding(v, self.span(n)) for _, v, n in self.returns]
        target = self.meet("result", values)
        if target is None:
            problem = conflict(f"the result of {self.source.name}", bindings)
            self.fail(self.returns[-1][2], problem.message, problem.hint)
        for (jump, value, _), bound in zip(self.returns, bindings, strict=True):
            self.copy(target, value, jump.before, bound)
        return target


def lower_kernel(
    callee: Callee,
    signature: Signature,
    captures: Captures,
    language: type[FunctionLowering] = FunctionLowering,
    regions: bool = False,
    reserved: Sequence[str] = (),
) -> Kernel:
    """The kernel for one signature; KernelLanguageError for what the language has not.

    ``captures``: those of ``callee``.  The arguments' count and types are checked already.
    ``regions``: its regions and marks become records.  ``reserved``: names that it does not give.
    """
    source = captures.source(callee.function)
    state = KernelState(signature, captures, (*source.parameters, *reserved))
    state.regions = regions
    params: list[KernelParam] = []
    environment: Environment = {}
    lowering = language(state, source, environment)
    span = source.span(source.tree)
    names = list(callee.free_parameters)
    if len(names) > len(signature.arguments):
        item = names.pop(0)
        state.item_is_certain = item_kind(callee) is not None or is_item(item, source.tree)
        environment[item] = Binding(ItemValue(signature.item), span)
    arguments = list(zip(names, signature.arguments, strict=True))
    state.name_fields(arguments)
    for name, bound in callee.bound.items():
        environment[name] = Binding(lowering.captured(bound, name, source.tree), span)
    for name, argument in arguments:
        value: Value
        if isinstance(argument, ArrayType):
            params += _array_params(name, argument, state)
            value = ArrayValue(name, argument)
        elif isinstance(argument, LocalType):
            for declared in declarations(name, argument, argument.shape, "local", state.fields):
                state.arrays[declared.name] = declared
            value = ArrayValue(name, ArrayType(argument.dtype, len(argument.shape)))
        elif isinstance(argument, ReductionType):
            value = ReductionValue(name, argument)
        elif isinstance(argument, ConstantType):
            value = lowering.captured(argument.value, name, source.tree)
        elif argument.is_complex:
            part = component_type(argument)
            parts = [ScalarParam(n, part.strong) for n in part_names(name, source.parameters)]
            state.reserve(p.name for p in parts)
            params += parts
            value = ComplexValue(*[Runtime(part, Param(p.type, p.name)) for p in parts])
        else:
            params.append(ScalarParam(name, argument.strong))
            value = Runtime(argument, Param(argument.strong, name))
        environment[name] = Binding(value, span)
    lowering.statements(source.tree.body)
    body = legalised(tuple(finish(lowering.block, lambda: state.fresh("returned"))))
    body = with_counted_loops(body, state.fresh)
    used = {e.array for e in expressions(body) if isinstance(e, (Load, Extent))}
    used |= {s.array for s in statements(body) if isinstance(s, (Store, Atomic))}
    params = [p for p in params if p.name in used or p.name not in state.field_extents]
    read = {e.array for e in expressions(body) if isinstance(e, Load)}
    dtypes = {a.name: a.dtype for a in state.arrays.values()}
    dtypes |= {p.name: p.dtype for p in params if isinstance(p, ArrayParam)}
    return Kernel(
        name=source.name,
        ndim=signature.ndim,
        params=tuple(_with_bounds(p, state.bounds) for p in params),
        variables=tuple(_variables(body, dtypes).items()),
        body=body,
        arrays=tuple(a for a in state.arrays.values() if a.space != "constant" or a.name in read),
        notes=tuple(state.notes),
        apart=tuple((*pair, same_view) for pair, same_view in state.apart.items()),
        sub_group_size=signature.sub_group_size if state.uses_sub_groups else None,
        span=source.span(source.tree),
    )


def _array_params(name: str, argument: ArrayType, state: KernelState) -> list[KernelParam]:
    """The parameters that an array argument is in the IR: of records, one for each field."""
    dtype, ndim = argument.dtype, argument.ndim
    if not isinstance(dtype, RecordType):
        return [ArrayParam(name, component_type(dtype), ndim + dtype.is_complex)]
    params: list[KernelParam] = []
    for field in field_arrays(name, dtype, state.fields):
        state.field_extents[field.name] = (*[None] * ndim, *field.shape)
        dimensions = ndim + len(field.shape) + field.dtype.is_complex
        params.append(ArrayParam(field.name, component_type(field.dtype), dimensions))
    return params


def _with_bounds(param: KernelParam, bounds: Mapping[str, tuple[int, int]]) -> KernelParam:
    if isinstance(param, ScalarParam) and param.name in bounds:
        return ScalarParam(param.name, param.type, bounds[param.name])
    return param


def _variables(body: Sequence[Stmt], dtypes: Mapping[str, ScalarType]) -> dict[str, ScalarType]:
    """Each assigned variable's type; ``dtypes`` are the arrays'."""
    types: dict[str, ScalarType] = {}
    for s in statements(body):
        match s:
            case Assign():
                types[s.name] = s.value.type
            case GroupCall():
                types[s.result] = s.value.type
            case Atomic(result=str() as result):
                types[result] = dtypes[s.array]
    return types
