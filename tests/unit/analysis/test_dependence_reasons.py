"""What is said of a dependence: which of several accesses counts, which work-items, and why."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.dependence import (
    Accessed,
    Between,
    Unions,
    dependences_between,
    describe,
    inside_groups,
)
from fusionq.analysis.list_analysis import analyse
from fusionq.base.span import Span
from fusionq.language.ranges import NdRange
from tests.unit.analysis.pairs import dependences
from tests.unit.lists import submissions

N = 12
NEXT, FAR, OTHER = (isl.Map(f"{{ [i] -> [{j}] }}") for j in ("i + 1", "i + 100", "2i"))


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def scatter(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[index[i]] = a[i]


@fq.kernel
def flat(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i * 4 + j] = a[i * 4 + j]


@fq.kernel
def nobody(item: fq.Item, a, out):
    i = item.get_id(0)
    if i < 0:
        out[i] = a[i]


@fq.kernel
def mirrored(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i // 4 * 4 + 3 - i % 4] = a[i]


@fq.kernel
def own(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[i]


# --------------------------------------------------------------------- of several accesses
def worst(*found: Between, unions: Unions | None = None):
    """The dependence of one read on several writes of an array, which are ``found``."""
    writes = [Accessed(0, 7, "write", Span("k.py", n, "")) for n in range(len(found))]
    read = Accessed(1, 7, "read", Span("k.py", 99, ""))
    (one,) = dependences_between(3, 5, writes, [read], lambda a, b: found[a], unions or Unions())
    return one


GROUP = Between("GROUP", "neighbours", NEXT)
GLOBAL = Between("GLOBAL", "far ones", FAR)
UNKNOWN = Between("UNKNOWN", "not known")


@pytest.mark.parametrize("found", [(GROUP, GLOBAL), (GLOBAL, GROUP)])
def test_work_items_wait_for_those_of_both_accesses(found):
    """The scope and reason are the wider one's; a work-group size has to keep all inside."""
    one = worst(*found)
    assert (one.scope, one.reason) == ("GLOBAL", "far ones")
    assert one.items.is_equal(NEXT.union(FAR))


def test_the_same_work_items_are_no_union():
    assert worst(GROUP, GROUP).items is NEXT


def test_of_equal_scopes_the_first_access_is_named():
    one = worst(Between("GLOBAL", "first", NEXT), Between("GLOBAL", "second", FAR))
    assert (one.reason, one.producer_span.line) == ("first", 0)


@pytest.mark.parametrize("found", [(GLOBAL, UNKNOWN), (UNKNOWN, GLOBAL)])
def test_what_is_not_known_has_no_work_items(found):
    one = worst(*found)
    assert (one.scope, one.reason, one.items) == ("UNKNOWN", "not known", None)


def test_unions_are_made_once_and_not_mixed_up():
    unions = Unions()
    first = worst(GROUP, GLOBAL, unions=unions).items
    assert worst(GROUP, GLOBAL, unions=unions).items is first
    for pair in ((NEXT, OTHER), (OTHER, FAR), (FAR, NEXT)):
        assert unions.of(*pair).is_equal(pair[0].union(pair[1]))
    assert unions.of(NEXT, FAR) is first


def test_memory_and_kinds_are_kept_apart():
    first = [
        Accessed(0, 1, "write", Span("k.py", 1, "")),
        Accessed(1, 2, "read", Span("k.py", 2, "")),
    ]
    second = [
        Accessed(4, 2, "write", Span("k.py", 3, "")),
        Accessed(5, 1, "write", Span("k.py", 4, "")),
    ]
    found = dependences_between(3, 5, first, second, lambda a, b: GLOBAL, Unions())
    assert {(f.producer, f.consumer) for f in found} == {(3, 5)}
    assert [(f.kind, f.producer_argument, f.consumer_argument, f.number) for f in found] == [
        ("WAW", 0, 5, 0), ("WAR", 1, 4, 1),
    ]  # fmt: skip


# ------------------------------------------------------------------------------- reasons
def reason(*calls):
    (found,) = dependences(analyse(submissions(*calls)))
    return found.scope, found.reason


def vectors(count=4):
    return [np.zeros(N, np.float32) for _ in range(count)]


def test_an_index_that_is_not_known_is_named():
    a, b, c, _ = vectors()
    index = np.zeros(N, np.int64)
    why = (
        "is not an affine function of ids, loop variables, sizes and integer scalars, so it may "
        "touch any element"
    )
    (found,) = dependences(analyse(submissions((copy, N, a, b), (gather, N, index, b, c))))
    assert found.consumer_span.text == "out[i] = a[index[i]]"
    assert found.scope == "UNKNOWN"
    assert found.reason == f"the index at {found.consumer_span} {why}"
    (found,) = dependences(analyse(submissions((scatter, N, index, a, b), (copy, N, b, c))))
    assert found.producer_span.text == "out[index[i]] = a[i]"
    assert found.reason == f"the index at {found.producer_span} {why}"


def test_why_nothing_is_shared():
    a, b, c, _ = vectors()
    assert reason((nobody, N, a, b), (copy, N, b, c)) == ("NONE", "one of the two never happens")
    assert reason((copy, N // 4, a, b[: N // 2]), (copy, N // 4, b[N // 4 :], c)) == (
        "NONE", "they touch different elements of the same memory",
    )  # fmt: skip


def test_why_no_work_item_waits():
    a, b, c, _ = vectors()
    expected = ("ITEM", "each element is touched by one and the same work-item")
    assert reason((copy, N, a, b), (copy, N, b, c)) == expected


def test_why_a_work_group_has_to_wait():
    a, b, c, _ = vectors()
    range_ = NdRange(N, 4)
    expected = ("GROUP", "each element is touched inside one work-group of 4 only")
    assert reason((mirrored, range_, a, b), (own, range_, b, c)) == expected
    assert inside_groups((4, 2)) == "each element is touched inside one work-group of 4 x 2 only"


def test_why_submissions_have_no_common_work_items():
    a, b, c, _ = vectors()
    scope, text = reason((own, NdRange(N, 4), a, b), (own, NdRange(N, 6), b, c))
    assert (scope, text) == ("GLOBAL", "explicit work-group sizes differ ((4,) and (6,))")


@pytest.mark.parametrize("turned", [False, True])
def test_linear_ids_hold_for_todays_rows_only(turned):
    """Whose linear ids are compared says how long a row is, of the one and of the other."""
    a, b, c, _ = vectors()
    calls = [(copy, N, a, b), (flat, (3, 4), b, c)]
    if turned:
        calls = [(flat, (3, 4), a, b), (copy, N, b, c)]
    analysis = analyse(submissions(*calls))
    (found,) = dependences(analysis)
    assert found.scope == "ITEM"
    assert 4 in {analysis.symbols.values[name] for name in analysis.pinned}


# ---------------------------------------------------------------------- relations as text
class Text:
    """Stands for a relation that isl writes as this text."""

    def __init__(self, text):
        self.text = text

    def coalesce(self):
        return self

    def to_str(self):
        return self.text


def test_relations_are_written_without_parameters():
    assert describe(isl.Map("[n, m] -> { [i] -> [i + n] }")) == "{ [i] -> [n + i] }"
    assert describe(Text("[n] -> { [i] -> [{j}] }")) == "{ [i] -> [{j}] }"


def test_long_relations_are_cut():
    whole = "{" + "x" * 158 + "}"
    assert describe(Text(f"[n] -> {whole}")) == whole
    assert describe(Text(f"[n] -> {whole}x")) == whole[:157] + "..."
