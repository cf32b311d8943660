"""What lists of mixed kinds are drawn for, they become: a fifth of all goes through each way."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.property.strategy_checks import WAYS, ListCase, check_list, mixed_cases, ways

SHARE = 0.2
FAR = 3
"""Standard deviations by which the share of few lists may be less."""


@pytest.mark.slow
def test_a_fifth_of_all_lists_goes_through_each_way() -> None:
    lists = 100 if settings.get_current_profile_name() == "nightly" else 4
    kinds = mixed_cases()
    shares = dict.fromkeys(WAYS, 0.0)
    for kind in dict.fromkeys(kinds):
        part = kinds.count(kind) / len(kinds) / lists
        found = counted(kind, lists)
        shares = {way: share + part * found[way] for way, share in shares.items()}
    least = SHARE - FAR * sqrt(SHARE * (1 - SHARE) / (lists * len(set(kinds))))
    assert {way: share for way, share in shares.items() if share <= max(least, 0)} == {}


def counted(kind: st.SearchStrategy[ListCase], lists: int) -> Counter[str]:
    """How many of so many lists go through each way."""
    found: Counter[str] = Counter()

    @seed(7)
    @settings(
        max_examples=lists, database=None, deadline=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(kind)
    def each(case: ListCase) -> None:
        found.update(ways(case, check_list(case, "reference")))

    with np.errstate(all="ignore"):
        each()
    return found
