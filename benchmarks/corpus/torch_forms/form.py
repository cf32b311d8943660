"""What a form of PyTorch is: a program of the corpus as whole-tensor operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fusionq.benchmarks.corpus.program import Size

__all__ = ["Size", "Tensor", "TorchForm"]

Tensor: TypeAlias = Any
"""A ``torch.Tensor``; PyTorch need not be installed for these modules to be imported."""


@dataclass(frozen=True)
class TorchForm:
    """``run(torch, size, *arrays)`` computes the program's outputs, in the order of
    ``CorpusProgram.outputs``, from its arrays as tensors.

    As NumPy's form, it may write those that are no inputs; what it returns may be new tensors or
    these.  Unsigned 32-bit arrays come as int64, which PyTorch can compute with.
    """

    run: Callable[..., tuple[Tensor, ...]]
    products: bool = False
    """Whether products of matrices or convolutions in float32 are most of it, for which
    ``torch.compile`` has kernels to measure and choose from."""
    thresholds: float = 0.0
    """The part of the elements that may differ at all: where values are compared, another rounding
    decides otherwise."""
