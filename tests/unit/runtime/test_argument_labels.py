"""What arguments are called in reports: by the text of the very call that is made."""

import sys

import numpy as np
import pytest

import fusionq as fq
from fusionq.base import call_site


@fq.kernel
def add(item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


def labels(submit):
    queue = fq.FusionQueue("reference")
    with fq.fusion(queue) as fusion:
        submit(queue)
    fusion.event.wait()
    return [tuple(a.text for a in s.arguments) for s in fusion.report.submissions]


@pytest.fixture
def arrays():
    return [fq.Buffer(np.zeros(4)) for _ in range(3)]


def one_line(queue, x, y, z):
    queue.submit(add, 4, x, y, z); queue.submit(add, 4, y, z, x)  # fmt: skip  # noqa: E702


def several_lines(queue, x, y, z):
    (
        queue
        .submit(
            add, 4, fq.access(x),
            y,  # with a remark
            z,
        )
    )  # fmt: skip


def beyond_ascii(queue, x, größe, z):
    "größer", queue.submit(add, 4, x, größe, z)


PLACES = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells no places (PEP 657)")


@pytest.mark.parametrize(
    "submit, expected",
    [
        pytest.param(one_line, [("x", "y", "z"), ("y", "z", "x")], marks=PLACES),
        (several_lines, [("x", "y", "z")]),
        (beyond_ascii, [("x", "größe", "z")]),
    ],
)
def test_labels_are_the_texts_of_the_call(arrays, submit, expected):
    assert labels(lambda queue: submit(queue, *arrays)) == expected


def test_arguments_that_are_unpacked_are_called_as_the_kernel_does(arrays):
    given = (4, *arrays)
    assert labels(lambda queue: queue.submit(add, *given)) == [("a", "b", "c")]


def test_without_places_of_instructions_the_line_tells(arrays, monkeypatch):
    monkeypatch.setattr(call_site, "labels_of_call", lambda code, instruction: None)
    assert labels(lambda queue: beyond_ascii(queue, *arrays)) == [("x", "größe", "z")]
    assert labels(lambda queue: one_line(queue, *arrays)) == [("a", "b", "c"), ("a", "b", "c")]


@PLACES
def test_calls_of_equal_sizes_on_one_line_keep_their_names(arrays):
    """What is known of one such call serves another line's, but no other call's of the line."""
    x, y, z = arrays
    for _ in range(3):
        assert labels(lambda queue: one_line(queue, x, y, z)) == [("x", "y", "z"), ("y", "z", "x")]
