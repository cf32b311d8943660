"""What lists of mixed kinds are drawn for, they become: a fifth of all goes through each way.

Few lists say nothing of shares, and many take minutes: with ``--hypothesis-profile nightly`` only.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.in_turn import is_whole
from tests.property.strategy_checks import WAYS, ListCase, check_list, mixed_cases, ways

SHARE = 0.2
LISTS = 100
"""Of each kind."""
FAR = 3
"""Standard deviations by which the share of so few lists may be less."""


@pytest.mark.slow
def test_a_fifth_of_all_lists_goes_through_each_way() -> None:
    if not is_whole():
        pytest.skip("counts some hundred lists: minutes; in the profile nightly")
    kinds = mixed_cases()
    shares = dict.fromkeys(WAYS, 0.0)
    for kind in dict.fromkeys(kinds):
        part = kinds.count(kind) / len(kinds) / LISTS
        found = counted(kind)
        shares = {way: share + part * found[way] for way, share in shares.items()}
    least = SHARE - FAR * sqrt(SHARE * (1 - SHARE) / (LISTS * len(set(kinds))))
    assert {way: share for way, share in shares.items() if share < least} == {}


def counted(kind: st.SearchStrategy[ListCase]) -> Counter[str]:
    """How many of ``LISTS`` lists go through each way."""
    found: Counter[str] = Counter()

    @seed(7)
    @settings(
        max_examples=LISTS, database=None, deadline=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(kind)
    def each(case: ListCase) -> None:
        found.update(ways(case, check_list(case, "reference")))

    with np.errstate(all="ignore"):
        each()
    return found
