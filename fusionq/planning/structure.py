"""What lists of submissions have in common that one plan can serve."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fusionq.analysis.aliasing import has_unit_stride, is_contiguous, places
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.symbols import Symbols
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target


def structure_key(
    submissions: Sequence[Submission], options: FusionOptions, target: Target
) -> Hashable:
    """What a plan depends on beside its validity: kernels, types, aliasing, flags, the order
    of all sizes, options and target; not the sizes themselves."""
    symbols = Symbols()
    arrays: list[ArrayArgument] = []
    parts: list[Hashable] = []
    for submission in submissions:
        sizes = tuple(symbols.size(n) for n in global_range(submission))
        arguments: list[Hashable] = []
        for argument in submission.arguments:
            if isinstance(argument, ArrayArgument):
                arrays.append(argument)
                arguments.append(
                    (
                        tuple(symbols.size(n) for n in argument.shape),
                        is_contiguous(argument),
                        has_unit_stride(argument),
                        argument.buffer_flag,
                        argument.access_flag,
                        argument.internal,
                    )
                )
        parts.append(
            (
                submission.fingerprint,
                submission.signature,
                sizes,
                local_range(submission),
                tuple(arguments),
            )
        )
    order = tuple(sorted(symbols.values, key=symbols.values.__getitem__))
    empty = tuple(name for name, value in symbols.values.items() if value == 0)
    return (tuple(parts), places(arrays), order, empty, options.of_plan, target)
