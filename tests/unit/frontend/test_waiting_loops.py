"""Loops that wait for other work-items are refused where that is certain; the reference backend
reports the others."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.unit.tables import defined


@fq.kernel
def handover(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    if i == 0:
        ref.store(1)
    while ref.load() == 0:
        pass
    out[i] = 1


@fq.kernel
def in_turn(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    seen = ref.load()
    while seen != i:
        seen = ref.load()
    ref.fetch_add(1)
    out[i] = seen


@fq.kernel
def without_atomics(item: fq.Item, flag, out):
    i = item.get_id(0)
    while flag[0] == 0:
        if flag[0] == 2:
            break
    flag[0] = i
    out[i] = 1


@fq.kernel
def at_most_a_thousand_times(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    looks = 0
    while ref.load() == 0 and looks < 1000:
        looks += 1
    ref.fetch_add(1)
    out[i] = looks


@fq.kernel
def counts_down(item: fq.Item, flag, out):
    i = item.get_id(0)
    while out[i] > 0:
        out[i] = out[i] - 1
    flag[0] = 1


@fq.kernel
def for_the_host(item: fq.Item, flag, out):
    i = item.get_id(0)
    ref = fq.AtomicRef(flag, 0)
    while ref.load() == 0:
        pass
    out[i] = 1


@fq.kernel
def set_until_it_was_free(item: fq.Item, flag, out):
    """A lock by ``exchange``."""
    ref = fq.AtomicRef(flag, 0)
    while ref.exchange(1) != 0:
        pass
    out[0] += 1
    ref.store(0)


@fq.kernel
def set_with_branches(item: fq.Item, flag, out):
    while True:
        held = fq.AtomicRef(flag, 0).exchange(1)
        if out[1] > 0:
            held = 1
        if not held:
            break
    fq.AtomicRef(flag, 0).exchange(0)


@fq.kernel
def looks_by_adding_nothing(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    if item.get_id(0) == 0:
        ref.store(1)
    while ref.fetch_add(0) == 0:
        pass
    out[item.get_id(0)] = 1


@fq.kernel
def sets_a_bit(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while ref.fetch_or(1) & 1:
        pass
    ref.fetch_and(~1)


@fq.kernel
def waits_for_another_bit(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while not (ref.fetch_or(1) & 2):
        pass
    ref.fetch_or(2)


@fq.kernel
def takes_the_greater(item: fq.Item, flag, out):
    held = 1
    while held != 0:
        held = fq.AtomicRef(flag, 0).fetch_max(1)
    fq.AtomicRef(flag, 0).store(0)


@fq.kernel
def takes_the_smaller(item: fq.Item, flag, out):
    """Free is 1."""
    ref = fq.AtomicRef(flag, 0)
    while True:
        if ref.fetch_min(0) >= 1:
            break
    ref.exchange(1)


@fq.kernel
def clears_all_bits(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while ref.fetch_and(0) == 0:
        pass
    ref.store(1)


@fq.kernel
def takes_back_what_it_added(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while ref.fetch_add(1) != 0:
        ref.fetch_sub(1)
    out[0] += 1
    ref.fetch_sub(1)


@fq.kernel
def looks_before_it_sets(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while True:
        if ref.load() == 0 and ref.exchange(1) == 0:
            break
    ref.store(0)


@fq.kernel
def owned(item: fq.Item, flag, out):
    """The lock has its owner's number; ``tries`` is nobody else's."""
    me = np.int32(item.get_id(0) + 1)
    tries = fq.PrivateArray(1, np.int32, fill_zeros=True)
    ref = fq.AtomicRef(flag, 0)
    while ref.exchange(me) != 0:
        tries[0] = tries[0] + 1
    out[0] = tries[0]
    ref.store(0)


@fq.kernel
def sets_a_bit_once(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while ref.fetch_or(4) & 4 == 0:
        pass
    ref.fetch_and(~4)
    i = np.int32(item.get_id(0))
    while ref.fetch_max(i) < i:
        pass
    again = 0
    while ref.fetch_and(0) != 0:
        again += 1
    while ref.fetch_add(1) < 7:
        again += 1
    while ref.fetch_xor(1) & 1:
        again += 1
    out[i] = again


@fq.kernel
def greatest_of_unknown(item: fq.Item, flag, out):
    """Ends at once: no element is smaller than what it was made."""
    ref = fq.AtomicRef(flag, 0)
    value = out[item.get_id(0)]
    while ref.fetch_max(value) < value:
        pass
    ref.fetch_min(100)


@fq.kernel
def ends_at_the_second_exchange(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    while ref.exchange(5) != 5:
        pass
    ref.store(3)


@fq.kernel
def exchanges_another_value(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    k = 0
    while ref.exchange(k) != 1:
        k += 1
    ref.store(7)


@fq.kernel
def exchanges_elsewhere(item: fq.Item, flag, out):
    k = 0
    while fq.AtomicRef(out, k).exchange(9) == 9:
        k += 1
    out[0] = 2


@fq.kernel
def gives_up(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    looks = 0
    while ref.exchange(1) != 0:
        looks += 1
        if looks > 100:
            break
    out[item.get_id(0)] = looks
    if looks < 0:
        ref.store(0)


@fq.kernel
def takes_tickets(item: fq.Item, flag, out):
    ticket = fq.AtomicRef(flag, 0).fetch_add(1)
    while ticket < 10:
        ticket = fq.AtomicRef(flag, 0).fetch_add(1)
    out[item.get_id(0)] = ticket


def submit(kernel: fq.KernelFunction, flag: int = 0) -> list[int]:
    out = fq.Buffer(np.full(3, 2, np.int32))
    with fq.FusionQueue("reference") as queue:
        queue.submit(kernel, 3, fq.Buffer(np.full(1, flag, np.int32)), out)
        return out.numpy().tolist()


WAITING = [
    handover, in_turn, without_atomics, set_until_it_was_free, set_with_branches,
    looks_by_adding_nothing, sets_a_bit, waits_for_another_bit, takes_the_greater,
    takes_the_smaller, clears_all_bits, takes_back_what_it_added, looks_before_it_sets, owned,
]  # fmt: skip


@pytest.mark.parametrize("kernel", WAITING)
def test_waiting_for_another_work_item_is_refused(kernel: fq.KernelFunction) -> None:
    with pytest.raises(fq.KernelLanguageError) as caught:
        submit(kernel)
    text = str(caught.value)
    assert "ends only when another work-item has changed 'flag'" in text
    assert "test_waiting_loops.py:" in text and "while " in text


def test_loops_that_end_by_themselves_are_kernels() -> None:
    assert sorted(submit(at_most_a_thousand_times)) == [0, 0, 1000]
    assert submit(counts_down) == [0, 0, 0]
    assert submit(ends_at_the_second_exchange) == [2, 2, 2]
    assert submit(exchanges_another_value) == [2, 2, 2]
    assert submit(exchanges_elsewhere, flag=1)[0] == 2
    assert sorted(submit(gives_up)) == [0, 101, 101]
    assert sorted(submit(takes_tickets)) == [10, 11, 12]
    assert min(submit(sets_a_bit_once)) >= 1
    assert submit(greatest_of_unknown) == [2, 2, 2]


def test_the_reference_backend_reports_a_livelock() -> None:
    assert submit(for_the_host, flag=1) == [1, 1, 1]
    with pytest.raises(fq.DeviceError, match="livelock: this loop waits until memory") as e:
        submit(for_the_host)
    assert "while ref.load() == 0:" in str(e.value)


@fq.kernel
def lock(item: fq.Item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    expected = fq.PrivateArray(1, np.int32)
    expected[0] = 0
    while not ref.compare_exchange(expected, 1):
        expected[0] = 0
    out[0] += 1
    ref.store(0)


@fq.kernel
def lock_with_break(item: fq.Item, flag, out):
    expected = fq.PrivateArray(1, np.int32)
    free = 0
    while True:
        expected[0] = free
        if fq.AtomicRef(flag, 0).compare_exchange(expected, 1):
            break
    out[0] += 1
    fq.AtomicRef(flag, 0).store(free)


@fq.kernel
def expected_in_memory(item: fq.Item, flag, out):
    while not fq.AtomicRef(flag, 0).compare_exchange(out, 1):
        pass


@fq.kernel
def another_arrays_value(item: fq.Item, flag, out):
    expected = fq.PrivateArray(1, np.int32)
    while not fq.AtomicRef(flag, 0).compare_exchange(expected, 1):
        expected[0] = out[0]


@pytest.mark.parametrize(
    "kernel", [lock, lock_with_break, expected_in_memory, another_arrays_value]
)
def test_trying_again_until_another_work_item_stores_is_refused(kernel: fq.KernelFunction) -> None:
    with pytest.raises(fq.KernelLanguageError) as caught:
        submit(kernel)
    text = str(caught.value)
    assert "repeats a compare_exchange on 'flag' until another work-item has stored" in text
    assert "test_waiting_loops.py:" in text and "while " in text


@fq.kernel
def insert(item: fq.Item, flag, out):
    """Open addressing: another place each time."""
    slot = 0
    expected = fq.PrivateArray(1, np.int32)
    while slot < out.shape[0]:
        expected[0] = 2
        if fq.AtomicRef(out, slot).compare_exchange(expected, np.int32(item.get_id(0))):
            break
        slot += 1


@fq.kernel
def greatest(item: fq.Item, flag, out):
    ref = fq.AtomicRef(out, 0)
    expected = fq.PrivateArray(1, np.int32)
    seen = ref.load()
    while seen < 10 + item.get_id(0):
        expected[0] = seen
        if ref.compare_exchange(expected, np.int32(10 + item.get_id(0))):
            break
        seen = expected[0]
    again = fq.PrivateArray(1, np.int32)
    for _ in range(3):
        again[0] = 0
        fq.AtomicRef(flag, 0).compare_exchange(again, 1)


def test_lock_free_loops_are_kernels() -> None:
    assert sorted(submit(insert)) == [0, 1, 2]
    assert submit(greatest)[0] == 12


LOCK_IN_A_LOOP = """
def k(item, flag, out):
    ref = fq.AtomicRef(flag, 0)
    expected = fq.PrivateArray(1, np.int32)
    tries, most, done = {start}, 3, False
    while {condition}:
        {turn}
        expected[0] = 5
        done = ref.compare_exchange(expected, 1)
    out[0] = tries
"""


@pytest.mark.parametrize(
    ("start", "condition", "turn", "tries"),
    [
        ("0", "tries < most and not done", "tries += 1", 3),
        ("0", "not done and not tries >= most", "tries = tries + 2", 4),
        ("0", "not (done or most <= tries)", "tries += 1", 3),
        ("9", "tries > most and not done", "tries -= 1", 3),
        ("0", "not done", "tries += 1\n        if done or tries > 7: break", 8),
        ("0", "not done", "if tries >= item.get_range(0): break\n        tries += 1", 3),
        # Nothing bounds these.
        ("0", "tries < most and not done", "tries -= 1", None),
        ("0", "tries < most or not done", "tries += 1", None),
        ("0", "tries < flag[0] and not done", "tries += 1", None),
        ("0", "tries < most and not done", "tries += 1\n        most += 1", None),
        ("0", "tries < most and not done", "tries += 1\n        tries = 0", None),
        ("0", "tries < most and not done", "if out[0] == 0: tries += 1", None),
        ("0", "tries != most and not done", "tries += 2", None),
        ("0", "tries < most and not done", "if out[0]: continue\n        tries += 1", None),
        ("0.0", "tries < most and not done", "tries += 1", None),
        ("0", "not done", "tries += 1\n        if done and tries > 7: break", None),
    ],
)
def test_a_number_of_tries_is_no_waiting(
    start: str, condition: str, turn: str, tries: int | None
) -> None:
    kernel = defined(LOCK_IN_A_LOOP.format(start=start, condition=condition, turn=turn))
    if tries is not None:
        assert submit(kernel)[0] == tries
        return
    with pytest.raises(fq.KernelLanguageError, match="repeats a compare_exchange on 'flag'"):
        submit(kernel)


@fq.kernel
def by_name(item: fq.Item, flag, out):
    """As numba-dpex's own tests call it."""
    ref = fq.AtomicRef(out, 1)
    out[0] = 1 if ref.compare_exchange(expected_ref=out, desired=7, expected_idx=2) else 0


def test_arguments_by_name() -> None:
    """The first swaps, the second does not and sees 7, with which the third swaps."""
    assert submit(by_name) == [1, 7, 7]


def test_its_arguments() -> None:
    def call(text: str) -> str:
        kernel = defined(f"def k(item, flag, out):\n    ref = fq.AtomicRef(flag, 0)\n    {text}\n")
        with pytest.raises(fq.KernelLanguageError) as caught:
            submit(kernel)
        return str(caught.value)

    assert "takes an array, a value, and an index" in call("ref.compare_exchange(out)")
    wrong = ("out, 1, 0, 0", "out, 1, expected=out", "out, other=1", "expected_idx=0, desired=1")
    for arguments in wrong:
        assert "takes an array, a value, and an" in call(f"ref.compare_exchange({arguments})")
    assert "expected is a 1-d array of int32" in call("ref.compare_exchange(3, 1)")
    assert "fq.PrivateArray(1, np.int32)" in call(
        "e = fq.PrivateArray(1, np.float32)\n    ref.compare_exchange(e, 1)"
    )
    assert "of float on elements of int32" in call("ref.compare_exchange(out, 1.5)")
    assert "fetch_add of float64 on elements of int32" in call("ref.fetch_add(np.float64(1))")
    assert "Convert the operand: np.int32(…)" in call("ref.exchange(item.get_id(0))")


@fq.kernel
def without_an_end(item: fq.Item, flag, out):
    i = item.get_id(0)
    while True:
        out[i] += 1
        for k in range(3):
            if k == i:
                break


@fq.kernel
def always_true(item: fq.Item, flag, out):
    i = item.get_id(0)
    if flag[0] == 1:
        while 1 < 2:
            flag[i] += 1


@fq.kernel
def left_by_break(item: fq.Item, flag, out):
    i = item.get_id(0)
    while True:
        out[i] += 1
        if out[i] > 3:
            out[i] += 1
            if flag[0] == 0:
                break
    out[i] += 10


@fq.kernel
def left_by_return(item: fq.Item, flag, out):
    i = item.get_id(0)
    while True:
        while True:
            out[i] += 1
            if out[i] > 3:
                return


@pytest.mark.parametrize("kernel", [without_an_end, always_true])
def test_a_loop_that_nothing_leaves_is_refused(kernel):
    flag, out = fq.Buffer(4, np.int64), fq.Buffer(4, np.int64)
    with pytest.raises(fq.KernelLanguageError, match="this loop has no end") as caught:
        fq.FusionQueue("reference").submit(kernel, 4, flag, out)
    assert "while" in str(caught.value) and __file__ in str(caught.value)


@pytest.mark.parametrize(("kernel", "last"), [(left_by_break, 15), (left_by_return, 4)])
def test_a_loop_that_something_leaves_is_a_kernel(kernel, last):
    flag, out = fq.Buffer(np.zeros(4, np.int64)), fq.Buffer(np.zeros(4, np.int64))
    queue = fq.FusionQueue("reference")
    queue.submit(kernel, 4, flag, out)
    assert out.numpy().tolist() == [last] * 4
