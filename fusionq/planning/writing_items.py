"""Which work-item writes an element, as expressions of a kernel: an inverse access function."""

from __future__ import annotations

from fusionq.analysis.recomputation import Writer
from fusionq.analysis.submission import ScalarArgument, Submission
from fusionq.ir.nodes import Cast, Expr, Extent, Param, ScalarParam
from fusionq.ir.types import INT64
from fusionq.passes.affine_expression import affine_expression
from fusionq.passes.inline_producer import Indices, index_of


def writing_items(submission: Submission, writer: Writer) -> Indices:
    """The ids of the work-item of ``submission`` that writes an element, in terms of its kernel's
    parameters and of ``index_of(d)``."""

    def symbol(name: str) -> Expr:
        if name in writer.sizes:
            k, dim = writer.sizes[name]
            return Extent(submission.arguments[k].name, dim)
        argument = submission.arguments[writer.scalars[name]]
        assert isinstance(argument, ScalarArgument)
        param = submission.ir.param(argument.name)
        assert isinstance(param, ScalarParam)
        value = Param(param.type, param.name)
        return value if param.type == INT64 else Cast(INT64, value)

    return tuple(affine_expression(aff, index_of, symbol) for aff in writer.items)
