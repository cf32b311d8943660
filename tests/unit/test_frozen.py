"""Frozen dataclasses by type checkers are the standard library's in all else."""

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Const, Load
from fusionq.ir.types import FLOAT32, INT64


@dataclass(frozen=True, slots=True)
class Pair:
    """As most are declared."""

    first: int
    second: tuple[str, ...] = ()
    where: str = field(default="", compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same by the standard library."""

    first: int
    second: tuple[str, ...] = ()
    where: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class Itself:
    """Equal to itself alone."""

    value: int


def test_they_are_equal_hashed_and_shown_by_their_fields():
    one, same, other = Pair(1, ("a",), "here"), Pair(1, ("a",), "there"), Pair(2, ("a",))
    assert one == same and hash(one) == hash(same) and one != other
    assert one != Standard(1, ("a",))
    assert hash(one) == hash(Standard(1, ("a",)))
    assert repr(one) == repr(Standard(1, ("a",), "here")).replace("Standard", "Pair")
    assert len({one, same, other}) == 2


def test_they_have_the_standard_librarys_fields_and_signature():
    own, standard = dataclasses.fields(Pair), dataclasses.fields(Standard)
    assert [(f.name, f.default, f.compare) for f in own] == [
        (f.name, f.default, f.compare) for f in standard
    ]
    assert Pair.__match_args__ == Standard.__match_args__
    assert Pair.__slots__ == Standard.__slots__
    assert dataclasses.replace(Pair(1), first=3) == Pair(3)
    with pytest.raises(TypeError, match="first"):
        Pair()  # type: ignore[call-arg]  # which is asked


def test_they_are_copied_and_pickled():
    pair = Pair(1, ("a",), "here")
    for again in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert again == pair and again.where == "here"


def test_what_a_class_defines_itself_counts():
    assert Const(FLOAT32, 0.0) != Const(FLOAT32, -0.0)
    assert hash(Const(INT64, 1)) == hash(Const(INT64, 1))
    assert Itself(1) != Itself(1)


def test_ir_is_hashed_as_the_standard_library_does():
    load = Load(FLOAT32, "a", (Const(INT64, 1),))
    assert hash(load) == hash((load.type, load.array, load.indices, load.halved))
