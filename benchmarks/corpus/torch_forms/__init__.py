"""The programs of the corpus as a user of PyTorch writes them, a module a family."""

from __future__ import annotations

from collections.abc import Mapping

from fusionq.benchmarks.corpus.torch_forms import (
    fluids,
    grids,
    images,
    layers,
    points,
    solvers,
    stencils,
)
from fusionq.benchmarks.corpus.torch_forms.form import TorchForm

__all__ = ["TORCH_FORMS", "WITHOUT_FORM", "TorchForm"]

TORCH_FORMS: Mapping[str, TorchForm] = {
    name: form
    for family in (stencils, grids, fluids, images, solvers, points, layers)
    for name, form in family.FORMS.items()
}
"""By the program's name."""

WITHOUT_FORM: Mapping[str, str] = {
    "adi": "each column follows from the one before: as operations of whole vectors, four launches "
    "for each of them in each step; PyTorch solves no systems with three diagonals",
}
"""The others, and why they have none."""
