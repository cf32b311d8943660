"""Which of the candidates that ``tune=True`` has measured is taken."""

from __future__ import annotations

import pytest

from fusionq.execution.autotune import choice


@pytest.mark.parametrize(
    "seconds, taken",
    [
        ({0: 1.0}, 0),
        ({0: 2.0, 1: 1.0, 2: 3.0}, 1),
        ({0: 1.0, 1: 0.98}, 0),  # the first is about as fast
        ({0: 1.0, 1: 0.96}, 1),
        ({0: 1.5, 1: 1.02, 2: 1.0}, 1),  # the first of those that are
        ({0: 1.04, 1: 1.02, 2: 1.0}, 1),
        ({2: 1.0, 3: 0.99}, 2),  # what stalled has no time
    ],
)
def test_the_fastest_or_an_earlier_one_that_is_about_as_fast(
    seconds: dict[int, float], taken: int
) -> None:
    assert choice(seconds) == taken
