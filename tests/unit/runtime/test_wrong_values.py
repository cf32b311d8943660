"""Wrong values in every place of every public call: done, or refused by an error of fusionq that
names file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base import config
from tests.unit.runtime.kernels import copy, increment


def queue(fusing: bool = False) -> fq.FusionQueue:
    made = fq.FusionQueue("reference")
    if fusing:
        made.start_fusion()
    return made


def buffer() -> fq.Buffer:
    return fq.Buffer(np.arange(4, dtype=np.float32))


def closed() -> fq.FusionQueue:
    made = queue()
    made.close()
    return made


@fq.kernel
def scaled(item, a, factor):
    i = item.get_id(0)
    a[i] = a[i] * factor


def run() -> fq.fusion:
    with fq.fusion(on := queue()) as f:
        on.submit(scaled, 4, buffer(), 2.0)
    return f


def graph() -> fq.Graph:
    made, on = fq.Graph(), queue()
    with made.record(on):
        on.submit(scaled, 4, buffer(), 2.0)
    return made


def completed(call: Callable[[fq.FusionQueue], object]) -> None:
    on = queue(fusing=True)
    try:
        call(on)
    finally:
        on.cancel_fusion()


def complete(**options: Any) -> None:
    on = queue(fusing=True)
    on.submit(increment, 4, buffer())
    try:
        on.complete_fusion(**options)
    finally:
        on.cancel_fusion()


def kept(**settings: Any) -> None:
    """``set_disk_cache``, undone."""
    before = config._chosen
    try:
        fq.set_disk_cache(**settings)
    finally:
        config._chosen = before


WRONG: dict[str, object] = {
    "None": None, "True": True, "-1": -1, "2**63": 2**63, "10**30": 10**30, "nan": math.nan,
    "1j": 1j, "text": "text", "bytes": b"ab", "list": [1, "a"], "empty": [], "object": object(),
    "type": int, "module": np, "nothing in an array": np.zeros(0), "no dimension": np.zeros(()),
    "two dimensions": np.zeros((2, 2)), "objects": np.array([None, 1]),
    "NumPy's nan": np.float32("nan"),
    "dates": np.array([1], "M8[s]"), "records": np.zeros(4, [("a", "f4")]), "closed": closed(),
    "kernel": copy, "range": fq.Range(2, 2), "buffer": fq.Buffer(3, np.int8),
    "list of None": [None],
    "endless slice": slice(1, None, 0),
}  # fmt: skip

OPTIONS = {
    "strategy": "auto", "barriers": "auto", "require": False, "promote": "none", "fp": "strict",
    "tune": False, "check": False, "adapt": None,
}  # fmt: skip

CALLS: dict[str, tuple[Callable[..., object], list[object], dict[str, object]]] = {
    "FusionQueue": (
        fq.FusionQueue, ["reference"], {"fusion": True, "profiling": False, "error_model": "python"}
    ),
    "submit": (
        lambda *a, **k: queue().submit(*a, **k), [copy, 4, buffer(), buffer()], {"depends_on": ()}
    ),
    "submit a scalar": (lambda *a: queue().submit(*a), [scaled, 4, buffer(), 2.0], {}),
    "submit in fusion mode": (
        lambda *a, **k: completed(lambda on: on.submit(*a, **k)), [copy, 4, buffer(), buffer()],
        {"depends_on": ()},
    ),
    "complete_fusion": (complete, [], OPTIONS),
    "memcpy": (lambda *a, **k: queue().memcpy(*a, **k), [buffer(), buffer()], {"depends_on": ()}),
    "memcpy in fusion mode": (
        lambda *a, **k: completed(lambda on: on.memcpy(*a, **k)), [buffer(), buffer()],
        {"depends_on": ()},
    ),
    "fill": (lambda *a, **k: queue().fill(*a, **k), [buffer(), 1.0], {"depends_on": ()}),
    "fill in fusion mode": (
        lambda *a, **k: completed(lambda on: on.fill(*a, **k)), [buffer(), 1.0], {"depends_on": ()}
    ),
    "host_task": (
        lambda *a, **k: queue().host_task(len, *a, **k), [buffer()], {"depends_on": ()}
    ),
    "host_task of": (lambda function: queue().host_task(function), [print], {}),
    "barrier": (lambda *a: queue().barrier(*a), [()], {}),
    "fusion": (fq.fusion, [queue()], {**OPTIONS, "error_model": None}),
    "replay": (lambda value: run().replay(factor=value), [3.0], {}),
    "record": (lambda *a, **k: fq.Graph().record(*a, **k), [queue()], {"strategy": "auto"}),
    "update": (lambda *a: graph().update(*a), [None], {}),
    "update a scalar": (lambda value: graph().update(factor=value), [3.0], {}),
    "launch": (lambda *a: graph().launch(*a), [()], {}),
    "Buffer": (
        fq.Buffer, [4, np.float32],
        {"promote_private": False, "promote_local": False, "internal": False, "copy": True},
    ),
    "Buffer of an array": (lambda *a: fq.Buffer(*a), [np.zeros(4)], {}),
    "Buffer around an array": (lambda *a: fq.Buffer(*a, copy=False), [np.zeros(4)], {}),
    "write": (lambda *a: buffer().write(*a), [np.zeros(4, np.float32)], {}),
    "view": (lambda key: buffer()[key], [slice(None)], {}),
    "view in two dimensions": (lambda *key: fq.Buffer((4, 4), float)[key], [1, slice(None)], {}),
    "access": (fq.access, [buffer()], {"promote": None}),
    "Range": (fq.Range, [4, 4], {}),
    "NdRange": (fq.NdRange, [4, 2], {}),
    "kernel": (fq.kernel, [scaled], {"sub_group_size": None, "work_group_size": None}),
    "LocalAccessor": (fq.LocalAccessor, [4, np.float32], {}),
    "set_disk_cache": (kept, [], {"enabled": None, "directory": None, "max_bytes": None}),
    "profile": (
        fq.profile, [queue()],
        {
            "passes": (), "stages": True, "overflow": "truncate", "occurrences": 64, "every": None,
            "buffer_bytes": 1 << 20, "compare": True, "compare_bytes": 0,
        },
    ),
}  # fmt: skip
"""Calls with their arguments: those by position and those by name."""

USERS_OWN = {"host_task of": ("True", "type", "object")}
"""What the user's own function raises comes as it is."""


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_wrong_values_are_refused_with_file_and_line(name: str) -> None:
    call, arguments, options = CALLS[name]
    call(*arguments, **options)
    other = []
    for place in (*range(len(arguments)), *options):
        for label, value in WRONG.items():
            if label in USERS_OWN.get(name, ()):
                continue
            given, named = list(arguments), dict(options)
            if isinstance(place, int):
                given[place] = value
            else:
                named[place] = value
            try:
                call(*given, **named)
            except fq.FusionqError as error:
                if not re.search(rf"{re.escape(__file__)}:\d+", str(error)):
                    other.append(f"{place}={label}: no place: {error}")
            except Exception as error:
                other.append(f"{place}={label}: {type(error).__name__}: {error}")
    assert not other, "\n".join(other)


@pytest.mark.parametrize(
    "name",
    [
        "FusionQueue", "complete_fusion", "fusion", "record", "Buffer", "access", "kernel",
        "profile",
    ],
)  # fmt: skip
def test_an_option_with_a_typo_names_the_one_that_was_meant(name: str) -> None:
    call, arguments, options = CALLS[name]
    for option in options:
        typo = option[:-1]
        with pytest.raises(fq.ArgumentError) as caught:
            call(*arguments, **{typo: options[option]})
        text = str(caught.value)
        assert f"option {typo!r}; did you mean {option!r}?" in text
        assert __file__ in text and "__init__" not in text
