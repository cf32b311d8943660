"""Dataclasses as data: everything that is kept comes back, and nothing else is taken."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from fusionq.analysis import validity
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, Validity
from fusionq.cache.entries import CheckedKernel
from fusionq.cache.serialise import MalformedData, decode, encode
from fusionq.codegen import device_source
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir import nodes
from fusionq.ir.nodes import Const, Kernel
from fusionq.ir.types import FLOAT32, INT64
from fusionq.passes import sources
from fusionq.planning import plan
from fusionq.planning.plan import Plan

KEPT = (Plan, CheckedKernel, DeviceSource)
"""What entries hold."""


def round_trip(kind: Any, value: Any) -> Any:
    return decode(kind, json.loads(json.dumps(encode(value))))


# ---------------------------------------------------------------------- all that is kept
def inside(hint: Any) -> tuple[Any, ...]:
    """The types that a type's values are made of."""
    if is_dataclass(hint):
        return tuple(get_type_hints(hint).values())
    return () if get_origin(hint) is Literal else get_args(hint)


def reachable(*roots: Any) -> set[type]:
    """The dataclasses that values of ``roots`` can hold."""
    found: set[Any] = set()
    waiting = list(roots)
    while waiting:
        hint = waiting.pop()
        if hint not in found:
            found.add(hint)
            waiting.extend(inside(hint))
    return {hint for hint in found if is_dataclass(hint)}


def dataclasses_of(module: types.ModuleType) -> set[type]:
    return {
        value
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    }


@pytest.mark.parametrize(
    "module", [nodes, plan, sources, validity, device_source], ids=lambda m: m.__name__
)
def test_every_dataclass_of_the_module_is_part_of_what_is_kept(module: types.ModuleType) -> None:
    """A new node has to stand in ``Expr`` or ``Stmt``, a plan's new part in a field of the plan:
    else plans that use it are never kept."""
    assert dataclasses_of(module) <= reachable(*KEPT)


def samples(hint: Any, depth: int = 0) -> Iterator[Any]:
    """Values of a type: each member of a union, each literal, empty and filled tuples."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        yield from instances(hint, depth)
    elif origin is Literal:
        yield from arguments
    elif origin in (Union, types.UnionType):
        for member in arguments:
            yield from samples(member, depth)
    elif origin is frozenset:
        yield from (frozenset(), frozenset(some(arguments[0], depth)))
    elif origin is dict:
        assert arguments[0] is str
        yield from ({}, {f"key {k}": value for k, value in enumerate(some(arguments[1], depth))})
    elif origin is tuple and arguments[1:] == (...,):
        yield from ((), tuple(some(arguments[0], depth)))
    elif origin is tuple:
        yield tuple(next(samples(argument, depth)) for argument in arguments)
    else:
        yield from PLAIN[hint]


PLAIN: dict[Any, tuple[Any, ...]] = {
    type(None): (None,),
    bool: (False, True),
    int: (0, 1, -1, 2**63 - 1, -(2**63), 2**64),
    float: (0.0, -0.0, 1.0, -1.5e-310, 1e308, 0.1, math.inf, -math.inf),
    str: ("text", "", "a\0b\n", "ünïcödé \U0001f600", "\udcff"),
}


def some(hint: Any, depth: int) -> list[Any]:
    """All values, or the first where the tree is deep already: the first member of a union of
    nodes has no further ones inside."""
    found = samples(hint, depth)
    return list(found) if depth < 2 else [next(found)]


def instances(kind: Any, depth: int) -> Iterator[Any]:
    """One instance of a dataclass for each value of each field; the other fields keep their
    first value."""
    hints = get_type_hints(kind)
    values = {f.name: some(hints[f.name], depth + 1) for f in fields(kind)}
    first = {name: found[0] for name, found in values.items()}
    yield kind(**first)
    for name, found in values.items():
        for value in found[1:]:
            yield kind(**{**first, name: value})


@pytest.mark.parametrize("kind", sorted(reachable(*KEPT), key=lambda k: k.__name__))
def test_every_kind_of_part_comes_back(kind: Any) -> None:
    count = 0
    for value in instances(kind, 0):
        assert same(round_trip(kind, value), value), value
        count += 1
    assert count >= 1


def same(a: object, b: object) -> bool:
    """Equal in fields that do not compare too, in types, and in the sign of zeros."""
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))  # type: ignore[arg-type]  # of one type
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)  # type: ignore
    return repr(a) == repr(b) if isinstance(a, float) else a == b


def test_nan_comes_back() -> None:
    back = round_trip(Const, Const(FLOAT32, math.nan))
    assert math.isnan(back.value)


# ----------------------------------------------------------------------------- malformed
KERNEL = Kernel(
    "k",
    1,
    (nodes.ArrayParam("out", FLOAT32, 1),),
    (),
    (nodes.Store("out", (nodes.ItemQuery("global_id", 0),), Const(FLOAT32, 1.0)),),
)


def positions(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(data, list):
        for k, item in enumerate(data):
            yield from positions(item, (*path, k))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    return [replaced(d, path[1:], value) if k == path[0] else d for k, d in enumerate(data)]


WRONG = (None, 5, 1.5, True, "x", [], {}, [[]], ["Kernel"], ["Const", ["ScalarType"]], ["os", 1])


def test_every_part_is_checked() -> None:
    """Wherever something of another type stands, reading says so or gives a kernel of the right
    types."""
    data = encode(KERNEL)
    refused = 0
    for path in positions(data):
        for wrong in WRONG:
            try:
                found = decode(Kernel, replaced(data, path, wrong))
            except MalformedData:
                refused += 1
            else:
                assert same(round_trip(Kernel, found), found)
    assert refused > 200


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: [*d, None], lambda d: d[1:]])
def test_another_number_of_fields(change: Any) -> None:
    with pytest.raises(MalformedData):
        decode(Kernel, change(encode(KERNEL)))


def test_names_of_other_classes_are_not_looked_up() -> None:
    for name in ("Span", "os.system", "Plan", "__builtins__", "Kernel "):
        with pytest.raises(MalformedData):
            decode(Kernel, [name, *encode(KERNEL)[1:]])


def test_a_bool_is_no_int_and_an_int_no_float() -> None:
    source = Source(1, None, 0)
    for wrong in (["Source", True, None, 0], ["Source", 1.0, None, 0], ["Source", "1", None, 0]):
        with pytest.raises(MalformedData):
            decode(Source, wrong)
    assert decode(Source, encode(source)) == source


def test_a_literal_outside_the_list() -> None:
    data = encode(nodes.Compare("lt", Const(INT64, 0), Const(INT64, 1)))
    assert data[1] == "lt"
    with pytest.raises(MalformedData):
        decode(nodes.Compare, ["Compare", "lt; exit", *data[2:]])


@dataclass(frozen=True)
class Holds:
    anything: object


@pytest.mark.parametrize(
    "value", [np.float32(1), np.arange(3), [1], {1: 2}, b"x", 1j, object(), len, Holds, {1, 2}]
)
def test_what_is_no_data_is_not_kept(value: object) -> None:
    for inner in (value, (value,), Holds(value)):
        with pytest.raises(TypeError):
            encode(inner)


@pytest.mark.parametrize(
    "hint", [object, Any, list[int], dict[int, str], bytes, int | tuple[int, ...] | tuple[str, ...]]
)
def test_types_that_data_cannot_tell_are_refused(hint: Any) -> None:
    @dataclass(frozen=True)
    class Kind:
        field: hint

    Kind.__annotations__["field"] = hint
    fields(Kind)[0].type = hint
    with pytest.raises(TypeError):
        decode(Kind, ["Kind", 1])


def test_validity_comes_back_as_it_was() -> None:
    value = Validity(
        (("n", (Source(0, None, 0), Source(1, 2, None))),), (("n", 3),), (("n", 2**40),),
        (Condition("size >= 3", ("size",), (("n",),)),), ((Source(0, 1, None), -1),),
    )  # fmt: skip
    assert round_trip(Validity, value) == value
