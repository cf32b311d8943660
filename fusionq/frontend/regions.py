"""``with region(…)`` and ``mark(…)`` as records, where profiling asks for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from fusionq.frontend.language_arguments import NOTHING, Arguments, LanguageArguments
from fusionq.frontend.values import ObjectValue, Value
from fusionq.ir.nodes import Record
from fusionq.ir.types import INT64
from fusionq.language.regions import mark, region


class Regions(LanguageArguments):
    """Lowers the names that a kernel gives to its parts.

    Without profiling they leave no trace: what is inside a region is lowered as if the region
    were not there.
    """

    def region_name(self, item: ast.withitem) -> str:
        """The name of the region that a ``with`` enters; an error for anything else."""
        call = item.context_expr
        callee = self.value(call.func) if isinstance(call, ast.Call) else None
        if (
            not isinstance(call, ast.Call)
            or not (isinstance(callee, ObjectValue) and callee.object is region)
            or item.optional_vars is not None
        ):
            self.fail(
                call,
                "with is for regions only",
                'Write with fq.region("name"):, without as, or leave it out.',
            )
        name = self.text_or_value(call.args[0]) if len(call.args) == 1 else None
        if call.keywords or not (isinstance(name, ObjectValue) and isinstance(name.object, str)):
            self.fail(
                call,
                "a region has one name, known at compile time",
                'Write fq.region("name").',
            )
        return name.object

    def enter_region(self, name: str, node: ast.AST) -> None:
        """The start of a region."""
        if self.kernel.regions:
            self.open_regions.append((name, len(self.loops)))
            self.block.append(Record(name, "region", "start", span=self.span(node)))

    def leave_region(self, node: ast.AST) -> None:
        """The end of the innermost region, where control reaches it."""
        if self.kernel.regions:
            name, _ = self.open_regions.pop()
            if self.env is not None:
                self.block.append(Record(name, "region", "end", span=self.span(node)))

    def end_regions(self, node: ast.AST, loops: int) -> None:
        """The ends of the regions that a jump out of ``loops`` or more loops leaves."""
        for name, depth in reversed(self.open_regions):
            if depth >= loops:
                self.block.append(Record(name, "region", "end", span=self.span(node)))

    @contextmanager
    def unless_mark(self, node: ast.Call) -> Iterator[None]:
        """Takes back what a mark's value emitted where there is to be no mark."""
        callee = None if self.kernel.regions else self.value(node.func)
        restore = self.snapshot()
        yield
        if isinstance(callee, ObjectValue) and callee.object is mark:
            restore()

    def mark(self, arguments: Arguments, node: ast.Call) -> Value:
        """``mark(name, value)``."""
        name = arguments["name"].value
        if not (isinstance(name, ObjectValue) and isinstance(name.object, str)):
            self.fail(node, "a mark has a name, known at compile time", 'Write fq.mark("name").')
        payload = None
        if "value" in arguments:
            number = self.number_argument(arguments, "value")
            if not number.type.is_integer:
                self.fail(node, "the value of a mark is an integer", "Convert it: int(x).")
            payload = self.convert(number, INT64, node)
        if self.kernel.regions:
            self.block.append(Record(name.object, "mark", "instant", payload, self.span(node)))
        return NOTHING
