"""For how many workers a persistent kernel is compiled, and how often."""

from __future__ import annotations

import pytest

from fusionq.backends.cuda import program
from fusionq.backends.cuda.compiler import Cubin, Resources
from fusionq.codegen.cuda.workers import LARGE_TABLES, part_resident
from fusionq.codegen.tile_loop import TOGETHER

ALL, HALF = part_resident(1), part_resident(2)


@pytest.mark.parametrize(
    ("text", "registers", "spilled", "builds", "found"),
    [
        # All workers run at once whatever is said, or nearly.
        ("", 32, {}, [None], None),
        ("", 40, {ALL: 40}, [None, ALL], ALL),
        ("", 48, {ALL: 64}, [None, ALL], ALL),
        ("", 48, {ALL: 68}, [None, ALL], None),
        # Few registers would be spilled for certain, or are those that loads at once need.
        ("", 49, {}, [None], None),
        ("", 64, {}, [None], None),
        (TOGETHER, 40, {}, [None], None),
        (TOGETHER, 64, {}, [None], None),
        # Fewer than half of the workers.
        ("", 72, {HALF: 512}, [None, HALF], HALF),
        (TOGETHER, 128, {HALF: 40}, [None, HALF], HALF),
        (TOGETHER, 128, {HALF: 516}, [None, HALF], None),
        # Tables leave room for few workers anyway.
        (LARGE_TABLES, 128, {}, [None], None),
    ],
)
def test_builds(
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    registers: int,
    spilled: dict[str, int],
    builds: list[str | None],
    found: str | None,
) -> None:
    """``spilled``: bytes by the option that leaves a thread fewer registers."""
    made: list[str | None] = []

    def compiled(given: str, architecture: str, options: tuple[str, ...]) -> Cubin:
        assert (given, architecture, options[0]) == (text, "sm_90", "--fmad=false")
        made.append(options[1] if len(options) > 1 else None)
        stores = spilled[made[-1]] if made[-1] is not None else 0
        return Cubin(str(made[-1]).encode(), Resources(registers, 0, 0, stores, stores), 1.0)

    monkeypatch.setattr(program, "compiled", compiled)
    cubin = program._persistent_cubin(text, "sm_90", ("--fmad=false",))
    assert made == builds
    assert cubin.code == str(found).encode()
