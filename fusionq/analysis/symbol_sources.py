"""Where the values of symbols, sizes and integer scalars, are found in a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, Sized, Submission
from fusionq.base.frozen import dataclass

if TYPE_CHECKING:  # its module is imported where isl is
    from fusionq.analysis.symbols import Symbols


@dataclass(frozen=True, slots=True)
class Source:
    """Where a symbol's value is found: an extent of a submission's range (``argument`` None)
    or of an array argument, or the value of a scalar argument (``dim`` None)."""

    submission: int
    argument: int | None
    dim: int | None

    def value(self, submissions: Sequence[Sized]) -> int:
        """The value in ``submissions``."""
        return submissions[self.submission].number(self.argument, self.dim)


SymbolSources = tuple[dict[str, tuple[Source, ...]], list[tuple[str, Source]]]
"""The first source of each size, and all of integer scalars."""


def symbol_sources(
    submissions: Sequence[Submission], params: Sequence[Mapping[str, str]], symbols: Symbols
) -> SymbolSources:
    """Where the symbols of ``submissions`` come from, whose integer scalars have those of
    ``params``, by name."""
    sizes: dict[str, tuple[Source, ...]] = {}
    scalars = []
    for s, submission in enumerate(submissions):
        for dim, extent in enumerate(global_range(submission)):
            sizes.setdefault(symbols.size(extent), (Source(s, None, dim),))
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ArrayArgument):
                for dim, extent in enumerate(argument.shape):
                    sizes.setdefault(symbols.size(extent), (Source(s, k, dim),))
            elif argument.name in params[s]:
                scalars.append((params[s][argument.name], Source(s, k, None)))
    return sizes, scalars
