"""A kernel with reductions, as work-groups run it: each stores what its work-items combine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from fusionq.base.call_site import argument_labels
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.frontend.captures import Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.lowering import lower_kernel
from fusionq.frontend.signature import ArrayType, ReductionType, Signature
from fusionq.frontend.source import KernelText
from fusionq.ir.nodes import GroupOp, Kernel
from fusionq.ir.types import BFLOAT16, BOOL, FLOAT32, ScalarType
from fusionq.passes.reduce_by_groups import GroupReduction, Result, reduce_by_groups


@dataclass(frozen=True, slots=True)
class ReducedArgument:
    """The argument at a ``position`` is a reduction by ``op``; ``of_truth``: of bools, whatever the
    array holds."""

    position: int
    op: GroupOp
    of_truth: bool
    result: Result


@dataclass(frozen=True, slots=True)
class ReducedRange:
    """How work-groups of ``local_range`` run a range: ``is_range``, one without work-groups of its
    own; ``is_padded``: beyond its end, so that its extents have to be the last arguments."""

    local_range: tuple[int, ...]
    is_range: bool
    is_padded: bool


class ReducingKernel(KernelFunction):
    """``kernel``, over ``space``, which in the place of each of ``reduced`` takes an array for the
    results of the work-groups."""

    def __init__(
        self, kernel: KernelFunction, reduced: tuple[ReducedArgument, ...], space: ReducedRange
    ) -> None:
        super().__init__(
            kernel.callee,
            kernel.sub_group_size,
            None if space.is_range else kernel.work_group_size,
        )
        self._kernel = kernel
        self._reduced = reduced
        self._space = space
        dimensions = len(space.local_range) if space.is_padded else 0
        self._extents = self._unused([f"extent_{d}" for d in range(dimensions)])

    def _unused(self, names: Sequence[str]) -> tuple[str, ...]:
        """The names, other than those of the parameters."""
        taken = set(self.callee.parameters)
        found = []
        for name in names:
            while name in taken:
                name += "_"
            found.append(name)
        return tuple(found)

    @property
    def _captured(self) -> Captures:
        return self._kernel._captured

    def names_of(self, count: int) -> tuple[str, ...]:
        """See ``KernelFunction``; with the extents."""
        return (*self._kernel.names_of(count - len(self._extents)), *self._extents)

    def labels(self, span: Span, names: tuple[str, ...]) -> tuple[str, ...]:
        """See ``KernelFunction``; the work-groups' results are called after the reduction."""
        own = len(names) - len(self._extents)
        labels = list(argument_labels(span, names[:own]))
        for r in self._reduced:
            if r.result == "partial":
                labels[r.position] = partial_results_of(labels[r.position])
        return (*labels, *self._extents)

    @property
    def fingerprint(self) -> str:
        """See ``KernelFunction``; of the reductions, too."""
        return self._with_reductions(self._kernel.fingerprint)

    @property
    def text(self) -> KernelText:
        """See ``KernelFunction``; its digest is of the reductions, too."""
        text = self._kernel.text
        return replace(text, digest=self._with_reductions(text.digest))

    def _with_reductions(self, digest: str) -> str:
        said = f"{digest} {self._reduced} {self._space}"
        return hashlib.sha256(said.encode()).hexdigest()

    def _lower(self, signature: Signature, regions: bool) -> Kernel:
        own = len(signature.arguments) - len(self._extents)
        names = self.names_of(len(signature.arguments))
        types = list(signature.arguments[:own])
        totals = self._unused([f"{names[r.position]}_total" for r in self._reduced])
        groups = []
        for r, total in zip(self._reduced, totals, strict=True):
            array = types[r.position]
            assert isinstance(array, ArrayType) and isinstance(array.dtype, ScalarType)
            combined = accumulated(array.dtype, r.of_truth)
            types[r.position] = ReductionType(combined, r.op, total)
            groups.append(
                GroupReduction(r.op, combined, total, names[r.position], array.dtype, r.result)
            )
        inner = Signature(
            "item" if self._space.is_range else signature.item,
            signature.ndim,
            tuple(types),
            signature.sub_group_size,
        )
        self._kernel.check_arguments(inner)
        results = [f"{total}_of_group" for total in totals]
        kernel = lower_kernel(
            self.callee,
            inner,
            self._captured,
            regions=regions,
            reserved=(*totals, *results, *self._extents),
        )
        kernel = replace(kernel, sub_group_size=self.sub_group_size or kernel.sub_group_size)
        reducing = reduce_by_groups(kernel, groups, self._space.local_range, self._extents)
        return replace(reducing, notes=(*kernel.notes, *self._notes(kernel, groups)))

    def _notes(self, kernel: Kernel, groups: Sequence[GroupReduction]) -> list[str]:
        """What reports say of the reductions."""
        size = " x ".join(map(str, self._space.local_range))
        return [
            f"{kernel.span}: the reduction {r.array!r} (by {r.op!r}): "
            + (
                f"each work-group of {size} stores a partial result; kernels that were added "
                "combine these"
                if r.result == "partial"
                else f"its one work-group of {size} stores the result"
            )
            for r in groups
        ]


def partial_results_of(label: str) -> str:
    """What the partial results of a reduction are called."""
    return f"partial results of {label}"


def accumulated(element: ScalarType, of_truth: bool) -> ScalarType:
    """In which type values for an array's elements are combined."""
    if of_truth:
        return BOOL
    return FLOAT32 if element == BFLOAT16 else element
