"""Places in kept data move with the functions that they lie in."""

from __future__ import annotations

import json

import pytest

from fusionq.cache.relocation import absolute, relative
from fusionq.cache.serialise import MalformedData

BEFORE = (("/old/a.py", 10, 5), ("/old/a.py", 100, 3), ("<cell 1>", 1, 2))
AFTER = (("/new/x.py", 3, 5), ("/new/y.py", 7, 3), ("<cell 9>", 4, 2))


def moved(data, before=BEFORE, after=AFTER):
    return absolute(json.loads(json.dumps(relative(data, before))), after)


def test_spans_move() -> None:
    data = [
        ["Span", "/old/a.py", 10, "first"],
        ["Span", "/old/a.py", 14, "last"],
        ["Span", "/old/a.py", 101, "other"],
        {"deep": [["Span", "<cell 1>", 2, ""]]},
    ]
    assert moved(data) == [
        ["Span", "/new/x.py", 3, "first"],
        ["Span", "/new/x.py", 7, "last"],
        ["Span", "/new/y.py", 8, "other"],
        {"deep": [["Span", "<cell 9>", 5, ""]]},
    ]


def test_places_in_texts_move() -> None:
    text = "the read at /old/a.py:12 and the write at <cell 1>:1; see /old/a.py:102."
    assert moved(text) == "the read at /new/x.py:5 and the write at <cell 9>:4; see /new/y.py:9."


def test_places_outside_the_functions_stay() -> None:
    data = [["Span", "<generated>", 0, ""], ["Span", "/old/a.py", 15, ""], "/old/a.py:9 5 x.py:10"]
    assert moved(data) == data


def test_other_data_stays() -> None:
    data = [1, -0.5, True, None, "", "Span", ["Span", "/old/a.py", 10], ["Span", 1, 10, "x"]]
    assert moved(data) == data


def test_without_functions_nothing_moves() -> None:
    data = [["Span", "/old/a.py", 10, ""], "/old/a.py:10"]
    assert relative(data, ()) == data
    assert absolute(data, ()) == data


def test_a_function_that_there_is_not() -> None:
    for data in (["Span", "/old/a.py", 101, ""], "at /old/a.py:101"):
        with pytest.raises(MalformedData):
            moved(data, after=AFTER[:1])


@pytest.mark.parametrize("file", ["\0", "\0x", "\0-1", "\0 1", "\0999999"])
def test_a_mark_that_nobody_wrote(file: str) -> None:
    with pytest.raises(ValueError):
        absolute(["Span", file, 0, ""], AFTER)
