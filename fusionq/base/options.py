"""The options of a fusion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np

from fusionq.base.call_site import user_span
from fusionq.base.errors import ArgumentError
from fusionq.base.target import FloatMode

Strategy: TypeAlias = Literal["auto", "fused", "megakernel", "overlap", "sequence", "unfused"]
Candidate: TypeAlias = Literal[Strategy, "megakernel-4k", "megakernel-8k", "megakernel-16k"]
"""A way to run a list that ``auto`` may try: a strategy, or one whose kernels differ in a size."""
SLOT_BYTES: Mapping[Candidate, int] = {
    "megakernel-4k": 4 << 10,
    "megakernel-8k": 8 << 10,
    "megakernel-16k": 16 << 10,
}
"""Candidates whose persistent kernels have rings with slots of so many bytes, in place of the
target's."""
Barriers: TypeAlias = Literal["auto", "all", "none"]
ErrorModel: TypeAlias = Literal["python", "numpy"]
"""What numba-dpex's kernels do where they divide by zero: what their decorators say, or NumPy's
result."""
Promote: TypeAlias = Literal["flagged", "internal", "none"]
Check: TypeAlias = Literal[False, True, "initialized"]
"""What is tested on the device: nothing, that accesses stay inside their arrays, or also that
elements are written before they are read."""


class FusionOptions(NamedTuple):
    """The options of ``fusion()`` and ``complete_fusion()``, see their documentation.

    A tuple, since queues look up what they have prepared by it for every list.
    """

    strategy: Strategy = "auto"
    barriers: Barriers = "auto"
    require: bool = False
    promote: Promote = "flagged"
    fp: FloatMode = "strict"
    tune: bool = False
    """Whether to measure."""
    check: Check = False
    """What of every access is tested on the device."""
    adapt: bool | None = None
    """Whether ``auto`` learns from the times of runs; None: as ``FUSIONQ_ADAPT`` says."""
    slot_bytes: int = 0
    """Of the slots of a persistent kernel's rings, 0: the target's.  Nobody asks for that but
    ``auto``, which tries others."""

    def of_candidate(self, name: Candidate) -> FusionOptions:
        """These, for the plan of candidate ``name``."""
        slot_bytes = SLOT_BYTES.get(name, 0)
        strategy = "megakernel" if slot_bytes else name
        # A candidate without slots is a strategy, which mypy does not see.
        return self._replace(strategy=strategy, slot_bytes=slot_bytes)  # type: ignore[arg-type]

    @property
    def of_plan(self) -> FusionOptions:
        """Those that a plan depends on: one that was measured serves all who do not ask too."""
        if self.adapt is None and not (self.tune or self.check):
            return self
        return self._replace(tune=False, check=False, adapt=None)


_CHOICES: dict[str, tuple[object, ...]] = {
    "strategy": ("auto", "fused", "megakernel", "overlap", "sequence", "unfused"),
    "barriers": ("auto", "all", "none"),
    "require": (False, True),
    "promote": ("flagged", "internal", "none"),
    "fp": ("strict", "fast"),
    "tune": (False, True),
    "check": (False, True, "initialized"),
    "adapt": (None, False, True),
}
OPTIONS = tuple(_CHOICES)
"""The names of those that users give."""


@lru_cache(maxsize=256)
def checked_options(
    strategy: Strategy = "auto",
    barriers: Barriers = "auto",
    require: bool = False,
    promote: Promote = "flagged",
    fp: FloatMode = "strict",
    tune: bool = False,
    check: Check = False,
    adapt: bool | None = None,
) -> FusionOptions:
    """The options, checked: ArgumentError for a value that there is not, and for options that
    contradict each other."""
    options = FusionOptions(strategy, barriers, require, promote, fp, tune, check, adapt)
    for name, allowed in _CHOICES.items():
        value = getattr(options, name)
        if value not in allowed:
            _refuse_value(name, value)
    if tune and strategy != "auto":
        raise ArgumentError(
            f"{user_span()}: tune=True measures which strategy is the fastest, and "
            f"strategy={strategy!r} says which to take; leave one of the two out"
        )
    if check and (tune or require):
        raise ArgumentError(
            f"{user_span()}: check={check!r} runs each submission in a launch of its own, and "
            "measures and proves nothing about the fused kernel; leave out "
            f"{'tune' if tune else 'require'}=True"
        )
    return options


def options_from(given: Mapping[str, object]) -> FusionOptions:
    """``checked_options`` by name; ArgumentError for names that there are not, too."""
    check_names("fusion", given, _CHOICES)
    for name, value in given.items():
        if not is_one_of(value, _CHOICES[name]):
            _refuse_value(name, value)
    return checked_options(**given)


def check_names(of_what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """ArgumentError for a name in ``given`` that is not ``known``: an option with a typo."""
    names = list(known)
    for name in given:
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ArgumentError(
                f"{user_span()}: there is no {of_what} option {name!r}{hint} There are "
                f"{', '.join(names)}"
            )


def is_one_of(value: object, choices: Collection[object]) -> bool:
    """Whether an option's value is among its ``choices``.  What has no hash is not: to compare an
    array gives an array."""
    try:
        hash(value)
    except TypeError:
        return False
    return value in choices


def check_flags(of_what: str, flags: Mapping[str, object]) -> None:
    """ArgumentError for a flag that is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(
                f"{user_span()}: a {of_what}'s {name} is True or False, not {value!r}"
            )


def check_error_model(error_model: object) -> None:
    """ArgumentError for what is no error model."""
    if not is_one_of(error_model, ("python", "numpy")):
        raise ArgumentError(
            f"{user_span()}: error_model={error_model!r} is none; write 'python' or 'numpy'"
        )


def _refuse_value(name: str, value: object) -> NoReturn:
    allowed = ", ".join(map(repr, _CHOICES[name]))
    raise ArgumentError(
        f"{user_span()}: the fusion option {name}={value!r} is not one of {allowed}"
    )


DEFAULT = FusionOptions()
UNFUSED = FusionOptions(strategy="unfused")
"""Each submission by itself, as outside fusion mode."""
