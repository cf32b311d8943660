"""Entries about a list are named by what they depend on, and the structure is written out once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.submission import Submission
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.base.options import FusionOptions
from fusionq.cache import list_keys
from fusionq.cache.entries import _structure
from fusionq.execution import adaptive, list_record


@fq.kernel
def add(item: fq.Item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


def recorded(sizes: tuple[int, ...] = (8, 8), steps: int = 2) -> tuple[Submission, ...]:
    """The submissions of a list."""
    queue = fq.FusionQueue("reference")
    queue.start_fusion()
    for n in sizes[:steps]:
        a, b, c = (fq.Buffer(n, np.float32) for _ in range(3))
        queue.submit(add, n, a, b, c)
    pending = queue._state.list
    assert pending is not None
    submissions = pending.submissions()
    queue.cancel_fusion()
    return submissions


def test_lists_of_one_structure_have_one_name_and_others_another() -> None:
    target = ReferenceBackend().target
    lists = [recorded(), recorded(), recorded((9, 9)), recorded((8, 9)), recorded(steps=1)]
    found = [list_keys.structure_digest(p, target) for p in lists]
    assert found[0] == found[1] == found[2] is not None
    assert len({found[0], found[3], found[4]}) == 3
    other = replace(target, worker_cache_share=target.worker_cache_share + 1)
    assert list_keys.structure_digest(lists[0], other) != found[0]
    same = replace(target)
    assert list_keys.structure_digest(lists[0], same) == found[0]


def test_kinds_and_options_are_in_the_name() -> None:
    target, submissions = ReferenceBackend().target, recorded()
    options = [FusionOptions(), FusionOptions(strategy="overlap"), FusionOptions(fp="fast")]
    names = {_structure(k, submissions, o, target)() for o in options for k in ("plan", "check")}
    assert len(names) == 6 and None not in names
    asked = _structure("plan", submissions, FusionOptions(adapt=True), target)()
    assert asked == _structure("plan", submissions, FusionOptions(), target)()


def test_what_nothing_is_kept_about_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = recorded()
    target = ReferenceBackend().target
    assert list_keys.structure_digest((replace(first, text=None), *others), target) is None


def test_few_are_remembered() -> None:
    target = ReferenceBackend().target
    for steps in range(1, list_keys.CAPACITY + 5):
        list_keys.structure_digest(recorded((8,) * 30, steps), target)
    assert len(list_keys._digests) == list_keys.CAPACITY


def test_the_first_call_writes_the_structure_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_ADAPT", "1")
    monkeypatch.setattr(adaptive, "unavailable", lambda backend: None)
    lengths = []
    original = list_keys.structure_text

    def text(submissions, target):  # type: ignore[no-untyped-def]
        lengths.append(len(submissions))
        return original(submissions, target)

    monkeypatch.setattr(list_keys, "structure_text", text)
    list_keys._digests.clear()
    list_record.RECORDS.clear()
    queue = fq.FusionQueue("reference")
    buffers = [fq.Buffer(np.ones(8, np.float32)) for _ in range(6)]
    with fq.fusion(queue):
        for k in range(5):
            queue.submit(add, 8, buffers[0], buffers[k], buffers[k + 1])
    list_record.RECORDS.clear()
    assert lengths.count(5) == 1
    assert (buffers[5].numpy() == 6).all()
