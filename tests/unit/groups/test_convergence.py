"""Barriers that some work-items of a group provably miss are refused at the submission."""

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.test_group_functions import made

BARRIER = "fq.group_barrier(group)"
CALL = "out[index] = fq.reduce_over_group(group, x[index])"


def submit(queue, lines, space=((64,), (16,))):
    x, out = np.ones(space[0], "int32"), fq.Buffer(np.zeros(space[0], "int32"))
    kernel = made(lines, len(space[0]))
    queue.submit(kernel, fq.NdRange(*space), x, out)
    return out.numpy()


@pytest.mark.parametrize(
    "lines",
    [
        f"if own == 0:\n        {BARRIER}",
        f"if own < 15:\n        {CALL}",
        f"if index[0] >= 40:\n        return\n    {BARRIER}",
        f"if index[0] % 2 == 0:\n        out[index] = 1\n    else:\n        {BARRIER}",
        f"for k in range(own):\n        {BARRIER}",
        f"for k in range(3):\n        if k == own:\n            {BARRIER}",
        f"if index[0] < 60:\n        if group.leader:\n            {BARRIER}",
        # Behind one that all reach, or about which nothing is known.
        f"{CALL}\n    if own < 15:\n        {CALL}",
        f"if x[0] > 0:\n        {CALL}\n    if own < 15:\n        {CALL}",
    ],
)
def test_refused(queue, lines):
    with pytest.raises(fq.KernelLanguageError) as error:
        submit(queue, lines)
    message = str(error.value)
    assert "some work-items of a work-group of (16,) reach this barrier or group" in message
    line = next(text.strip() for text in lines.splitlines() if BARRIER in text or CALL in text)
    remedy = "  Move it out of the condition, or make the condition the same for the whole group."
    assert remedy in message.splitlines()
    assert line in message and "<generated kernel" in message and __file__ in message


def test_refused_in_two_dimensions(queue):
    line = f"if index[1] < 6:\n        {BARRIER}"
    with pytest.raises(fq.KernelLanguageError, match="some work-items"):
        submit(queue, line, ((8, 8), (2, 4)))
    submit(queue, line, ((8, 8), (4, 2)))


@pytest.mark.parametrize(
    ("lines", "total"),
    [
        (f"if group.get_group_id(0) > 1:\n        {CALL}", 2 * 16 * 16),
        (f"if index[0] < 32:\n        {CALL}", 2 * 16 * 16),
        (f"for k in range(group.get_group_id(0)):\n        {CALL}", 3 * 16 * 16),
        (f"if index[0] // 16 == 1:\n        return\n    {CALL}", 3 * 16 * 16),
        (f"if x[0] > 0:\n        {CALL}", 4 * 16 * 16),
        (f"n = 0\n    while n < 3:\n        {CALL}\n        n += 1", 4 * 16 * 16),
    ],
)
def test_the_same_for_the_whole_group(queue, lines, total):
    assert submit(queue, lines).sum() == total


def test_the_queue_stays_usable(queue):
    with pytest.raises(fq.KernelLanguageError), fq.fusion(queue):
        submit(queue, f"if own == 0:\n        {BARRIER}")
    assert submit(queue, CALL).sum() == 4 * 16 * 16


def test_the_reference_finds_divergence_that_depends_on_data():
    with (
        fq.FusionQueue("reference") as queue,
        pytest.raises(fq.DeviceError, match="15 of the 16 work-items of a group wait"),
    ):
        x, out = np.arange(64, dtype="int32"), fq.Buffer(np.zeros(64, "int32"))
        queue.submit(made(f"if x[index] != 5:\n        {CALL}", 1), fq.NdRange(64, 16), x, out)
