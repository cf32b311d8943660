"""Random kernels as Python source text, well-typed and free of data races by construction.

A work-item writes only elements that belong to it (``ItemArray``); it reads those, and any
element of the arrays that the kernel never writes (``GatherArray``), behind a bounds check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from hypothesis import strategies as st

from fusionq.ir.types import INT64, ScalarType
from tests.property.kernel_expressions import Draw, Expressions, Features, Scope, typed
from tests.property.kernel_parameters import ItemArray, Parameter, ScalarParameter


class KernelWriter(Expressions):
    """Draws statements and writes them down."""

    def __init__(self, draw: Draw, features: Features, parameters: Sequence[Parameter]) -> None:
        super().__init__(draw, features, parameters)
        self._item_arrays = [p for p in parameters if isinstance(p, ItemArray)]
        self._parameters = parameters
        self._lines: list[str] = []
        self._pad = ""
        self._numbering = count()
        self._budget = features.statements * 3

    def line(self, text: str) -> None:
        self._lines.append(self._pad + text)

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self._pad += "    "
        yield
        self._pad = self._pad[:-4]

    def _fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbering)}"

    # --------------------------------------------------------------------- kernels
    def kernel(self, ndim: int, nd_item: bool) -> str:
        """The text of the kernel and of the functions that it calls."""
        for _ in range(2):
            if self.chance(20):
                self.device_function()
        self.line(f"def kernel({', '.join(['item', *(p.name for p in self._parameters)])}):")
        with self._indented():
            self._ids(ndim, nd_item)
            scope = Scope()
            for p in self._parameters:
                if not isinstance(p, ScalarParameter):
                    scope.numbers += [f"{p.name}.shape[{d}]" for d in range(p.ndim)]
            with self._guarded(scope):
                self.body(scope, self._features.statements)
                self._last_stores(scope)
        head = ["import math", "import numpy as np", "", *self.tables, "", ""]
        return "\n".join([*head, *self._lines]) + "\n"

    def _ids(self, ndim: int, nd_item: bool) -> None:
        method = "get_global_id" if nd_item else "get_id"
        for d, name in enumerate("ijk"[:ndim]):
            self.line(f"{name} = item.{method}({d})")
            self.ids.append(name)
        if self.chance(20):
            self.ids.append("item.get_global_range(0)" if nd_item else "item.get_range(0)")
        if nd_item:
            group = "item.get_group()"
            self.ids += [f"item.get_local_id({ndim - 1})", f"{group}.get_group_id(0)"]
            self.ids += [f"{group}.get_group_range(0)", "item.get_local_range(0)"]
            self.ids += ["item.get_global_linear_id()", "item.get_local_linear_id()"]
        elif self.chance(20):
            self.ids.append("item.get_linear_id()")
        arrays = [p for p in self._parameters if not isinstance(p, ScalarParameter)]
        if arrays and self.chance(25):
            array = self.choose(tuple(arrays))
            linear = "item.get_global_linear_id()" if nd_item else "item.get_linear_id()"
            for name, op in ((self._fresh("row"), "//"), (self._fresh("column"), "%")):
                self.line(f"{name} = {linear} {op} {array.name}.shape[{array.ndim - 1}]")
                self.ids.append(name)

    @contextmanager
    def _guarded(self, scope: Scope) -> Iterator[None]:
        """A place where the item's own elements (of arrays without whole dimensions) exist."""
        checks = []
        for array in self._item_arrays:
            indices = []
            for d, axis in enumerate(array.axes):
                if axis is not None:
                    index = axis.text(f"{array.name}.shape[{d}]")
                    low = "0 <= " if axis.reverse else ""
                    checks.append(f"{low}{index} < {array.name}.shape[{d}]")
                    indices.append(index)
            if None not in array.axes:
                element = f"{array.name}[{', '.join(indices)}]"
                scope.elements.append((element, array.dtype, array.written))
        checks = list(dict.fromkeys(checks))
        if not checks:
            yield
        elif self.chance(40):
            self.line(f"if not ({' and '.join(checks)}):")
            with self._indented():
                self.line("return")
            yield
        else:
            self.line(f"if {' and '.join(checks)}:")
            with self._indented():
                yield

    def _last_stores(self, scope: Scope) -> None:
        """Make sure that what was computed is seen."""
        for array in self._item_arrays:
            if array.written and None in array.axes:
                self._whole_dimensions(scope, array)
        for text, dtype, writable in scope.elements:
            if writable:
                self.line(f"{text} = {self._summary(dtype, scope)}")
        self.line("pass")

    def _summary(self, type_: ScalarType, scope: Scope) -> str:
        """An expression that shows the values of the variables."""
        value = self.expression(type_, scope, 2)
        op = "^" if type_.is_bool else "+"
        for name, of in scope.variables[-3:]:
            value += f" {op} {name if of == type_ else f'{typed(type_)}({name})'}"
        return value

    def device_function(self) -> None:
        name = self._fresh("helper")
        types = tuple(self.choose(self._features.dtypes) for _ in range(self.choose((1, 2))))
        result = self.choose(self._features.dtypes)
        names = [self._fresh("x") for _ in types]
        outer = self._scalars, self._gathers, self.ids
        self._scalars, self._gathers, self.ids = [], [], []
        scope = Scope(variables=list(zip(names, types, strict=True)))
        self.line(f"def {name}({', '.join(names)}):")
        with self._indented():
            if self.chance(30):
                self.line(f"if {self.condition(scope, 1)}:")
                with self._indented():
                    self.line(f"return {self.expression(result, scope, 1)}")
            self.line(f"return {self.expression(result, scope, 2)}")
        self.line("")
        self.line("")
        self._scalars, self._gathers, self.ids = outer
        self.functions.append((name, types, result))

    # ------------------------------------------------------------------ statements
    def body(self, scope: Scope, most: int) -> None:
        """Up to ``most`` statements."""
        for _ in range(self._draw(st.integers(0, most))):
            if self._budget > 0:
                self._budget -= 1
                self._statement(scope)

    def _statement(self, scope: Scope) -> None:
        self.choose(self._kinds(scope))(scope)

    def _kinds(self, scope: Scope) -> list[Callable[[Scope], None]]:
        """The statements that may stand here."""
        kinds = [self._declaration, self._store, self._assignment, self._branch, self._for]
        kinds += [self._while, self._weak_sum, self._rows]
        if scope.in_loop:
            kinds += [self._jump]
        return [*kinds, self._return]

    def _declaration(self, scope: Scope) -> None:
        type_ = self.choose(self._features.dtypes)
        name = self._fresh("v")
        self.line(f"{name} = {self.expression(type_, scope, self._features.depth)}")
        scope.variables.append((name, type_))

    def _store(self, scope: Scope) -> None:
        writable = [(text, dtype) for text, dtype, w in scope.elements if w]
        if not writable:
            return self._declaration(scope)
        text, dtype = self.choose(writable)
        self._assign(text, dtype, scope)

    def _assignment(self, scope: Scope) -> None:
        if not scope.variables:
            return self._declaration(scope)
        self._assign(*self.choose(scope.variables), scope)

    def _assign(self, target: str, type_: ScalarType, scope: Scope) -> None:
        depth = self._features.depth
        if not type_.is_bool and self.chance(30):
            self.line(f"{target} {self.choose('+-*')}= {self.operand(type_, scope, depth)}")
        else:
            self.line(f"{target} = {self.expression(type_, scope, depth)}")

    def _block(self, scope: Scope, most: int = 2) -> None:
        with self._indented():
            self.body(scope, most)
            self.line("pass")

    def _branch(self, scope: Scope) -> None:
        self.line(f"if {self.condition(scope, 2)}:")
        self._block(scope.inner())
        if self.chance(20):
            self.line(f"elif {self.condition(scope, 1)}:")
            self._block(scope.inner())
        if self.chance(40):
            self.line("else:")
            self._block(scope.inner())

    def _for(self, scope: Scope) -> None:
        name = self._fresh("n")
        bounds = ["3", "1, 4", "4, 0, -1", "0, 7, 3", "0"]
        bounds += [f"min({number}, 4)" for number in scope.numbers]
        self.line(f"for {name} in range({self.choose(bounds)}):")
        inner = replace(scope.inner(), in_loop=True)
        inner.numbers.append(name)
        self._block(inner)

    def _while(self, scope: Scope) -> None:
        name = self._fresh("w")
        self.line(f"{name} = {self.choose(('0', 'np.int64(0)', 'np.int8(0)'))}")
        rest = f" and {self.condition(scope, 1)}" if self.chance(30) else ""
        self.line(f"while {name} < {self.choose('231')}{rest}:")
        with self._indented():
            self.line(f"{name} += 1")
        self._block(replace(scope.inner(), in_loop=True))

    def _jump(self, scope: Scope) -> None:
        self.line(f"if {self.condition(scope, 1)}:")
        with self._indented():
            self.line(self.choose(("continue", "break")))

    def _return(self, scope: Scope) -> None:
        self.line(f"if {self.condition(scope, 1)}:")
        with self._indented():
            self.line("return")

    def _weak_sum(self, scope: Scope) -> None:
        """A sum that starts as a Python number and takes the type of what is added."""
        type_ = self.choose([t for t in self._features.dtypes if not t.is_bool] or [INT64])
        name, loop = self._fresh("t"), self._fresh("n")
        self.line(f"{name} = {'0.0' if type_.is_float else '0'}")
        self.line(f"for {loop} in range({self.choose('3210')}):")
        inner = scope.inner()
        inner.numbers.append(loop)
        with self._indented():
            self.line(f"{name} += {self.expression(type_, inner, 2)}")
        self.line(f"{name} = {typed(type_)}({name})")
        scope.variables.append((name, type_))

    def _rows(self, scope: Scope) -> None:
        arrays = [a for a in self._item_arrays if None in a.axes]
        if not arrays:
            return self._declaration(scope)
        array = self.choose(arrays)
        if array.written and self.chance(50):
            self._part_assignment(scope, array)
        else:
            self._whole_dimensions(scope, array)

    def _part_assignment(self, scope: Scope, array: ItemArray) -> None:
        """An assignment to all elements that the item owns of an array, or to some of them, of
        what is computed from these."""
        cut = self.choose((":", ":", "1:", ":2", "::2"))
        indices = [
            cut if axis is None else axis.text(f"{array.name}.shape[{d}]")
            for d, axis in enumerate(array.axes)
        ]
        part = f"{array.name}[{', '.join(indices)}]"
        if self.chance(30):
            name = self._fresh("part")
            self.line(f"{name} = {part}")
            part = f"{name}[{', '.join(':' for axis in array.axes if axis is None)}]"
        value = self.operand(array.dtype, scope, 2)
        op = "^" if array.dtype.is_bool else self.choose("+-*")
        texts = (
            f"{part} = {value}",
            f"{part} {op}= {value}",
            f"{part} = {value} {op} {part}",
            f"{part} = {part} {op} {part} {op} {value}",
        )
        self.line(self.choose(texts))

    def _whole_dimensions(self, scope: Scope, array: ItemArray) -> None:
        """A loop over all elements that the item owns of an array; in some an element may depend
        on the one before it."""
        inner = replace(scope.inner(), in_loop=True)
        outer_pad, indices, before = self._pad, [], []
        for d, axis in enumerate(array.axes):
            extent = f"{array.name}.shape[{d}]"
            if axis is not None:
                indices.append(axis.text(extent))
                before.append(indices[-1])
                continue
            name = self._fresh("n")
            bounds, neighbour = self.choose(
                (
                    (extent, name), (extent, name), (f"1, {extent}", f"{name} - 1"),
                    (f"{extent} - 1, -1, -1", name), (f"{extent} - 2, -1, -1", f"{name} + 1"),
                    (f"0, {extent}, 2", name),
                )
            )  # fmt: skip
            self.line(f"for {name} in range({bounds}):")
            self._pad += "    "
            inner.numbers.append(name)
            indices.append(name)
            before.append(neighbour)
        element = f"{array.name}[{', '.join(indices)}]"
        inner.elements.append((element, array.dtype, array.written))
        if before != indices:
            neighbour = f"{array.name}[{', '.join(before)}]"
            inner.elements.append((neighbour, array.dtype, array.written))
        self.body(inner, 2)
        if array.written:
            self.line(f"{element} = {self._summary(array.dtype, inner)}")
        self.line("pass")
        self._pad = outer_pad
