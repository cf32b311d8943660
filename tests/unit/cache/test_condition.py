"""The grammar of conditions: what the analysis writes, and nothing that does more than count."""

from __future__ import annotations

import pytest

from fusionq.analysis.validity_function import condition_function
from fusionq.cache.condition import MAX_LENGTH, is_condition

SYMBOLS = ("n", "m")


@pytest.mark.parametrize(
    "text",
    [
        "True",
        "False",
        "(n >= 3)",
        "(n >= 3 and m <= -1) and not (n == m or 2 * n + m - 1 < 5)",
        "not (256 * ((n - 1) // 256) >= m)",
        "n % 16 == 0 and n // 2 > 1 and n != 4",
        "1 <= n < m",
    ],
)
def test_what_the_analysis_writes(text: str) -> None:
    assert is_condition(text, SYMBOLS)
    assert isinstance(condition_function(text, SYMBOLS)(7, 9), bool)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n >",
        "n >= 1; import os",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "print(n)",
        "().__class__.__bases__[0].__subclasses__()",
        "n.real",
        "n[0]",
        "[n]",
        "{n: m}",
        "(n, m)",
        "'text'",
        "f'{n}'",
        "1.5 < n",
        "1j",
        "None",
        "...",
        "lambda: n",
        "(n := 5)",
        "[x for x in (1, 2)]",
        "n if m else n",
        "n is m",
        "n in (m, n)",
        "k > 0",
        "min > 3",
        "min(n, 3) > 1",
        "abs(n)",
        "n // -2",
        "n // True",
        "n % 0",
        "n % m",
        "n // 0",
        "n / 2",
        "n ** 2",
        "2 ** 9 ** 9 ** 9",
        "n << 1000000000",
        "n @ m",
        "n & m",
        "~n",
        "await n",
        "(yield)",
        "(" * 400 + "n" + ")" * 400,
        "-" * 50_000 + "n",
        "n" + "+n" * 40_000,
        "n" * (MAX_LENGTH + 1),
        "\0",
        "\ud800",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_all_else_is_refused(text: str) -> None:
    assert not is_condition(text, SYMBOLS)


@pytest.mark.parametrize(
    "names",
    [
        ("n", "n"),
        ("n", "is"),
        ("n", ""),
        ("n", "__debug__"),
        ("n", "m=open('/etc/passwd')"),
        ("n", "*m"),
        ("n: print(1) or n", "m"),
        ("n", "m\n"),
    ],
)
def test_what_are_no_names_are_refused(names: tuple[str, ...]) -> None:
    """Conditions are functions of their names."""
    assert is_condition("n > 3", ("n", "m"))
    assert not is_condition("n > 3", names)
