"""Graphs: recorded without running, launched many times, with other arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from fusionq.base import call_site
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, scale, shift


@pytest.fixture(autouse=True)
def _nothing_ends_fusion_mode():
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        yield


ONE_TO_EIGHT = np.arange(1, 9, dtype=np.float32)


class Scaled:
    """A graph of a chain: ``out = a * factor + 1``, over a temporary."""

    def __init__(self, queue, n=8, factor=2.0, **options):
        self.a, self.tmp, self.out = floats(n), empty(n, promote_private=True), empty(n)
        self.graph = fq.Graph()
        a, tmp, out = self.a, self.tmp, self.out
        with self.graph.record(queue, **options):
            self.event = queue.submit(scale, n, a, factor, tmp)
            queue.memcpy(out, tmp)
            queue.submit(increment, n, out)


def test_nothing_runs_before_the_launch(queue):
    made = Scaled(queue)
    assert not queue.is_in_fusion_mode()
    assert not made.out.numpy().any()
    for _ in range(3):
        event = made.graph.launch()
        event.wait()
        assert event.is_complete
        assert np.array_equal(made.out.numpy(), ONE_TO_EIGHT * 2 + 1)
        made.out.write(np.zeros(8, np.float32))
    (report,) = made.graph.reports
    assert report.strategy == "fused"
    assert [p.scope for p in report.promotions] == ["private"]
    assert not made.tmp.is_allocated
    assert "3 submissions in 1 part" in repr(made.graph)


def test_names_are_those_of_the_recorded_calls(queue):
    """Also where the same was submitted before, from elsewhere, under other names."""
    a, b, factor = floats(), empty(), 2.0
    first, second = a, b
    for _ in range(3):
        queue.submit(scale, 8, first, 2.0, second)
    other_a, other_b = b, a
    queue.submit(scale, 8, other_b, 3.0, other_a)
    for round_ in range(3):
        graph = fq.Graph()
        with graph.record(queue):
            queue.submit(scale, 8, a, factor, b)
        out = empty()
        graph.update(factor=5.0 + round_, b=out)
        graph.launch().wait()
        assert np.array_equal(out.numpy(), ONE_TO_EIGHT * (5 + round_))
    second, first = a, b  # and a name that stands for the other one now
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(scale, 8, second, factor, first)
    out = empty()
    graph.update(first=out)
    graph.launch().wait()
    assert np.array_equal(out.numpy(), ONE_TO_EIGHT * 2)
    queue.submit(scale, 8, a, 2.0, b).wait()  # as before
    assert np.array_equal(b.numpy(), ONE_TO_EIGHT * 2)


def two_on_a_line(queue, a, b, out):
    """A graph in which the kernel's parameters are called as other arguments are."""
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(copy, 8, a, b); queue.submit(copy, 8, b, out)  # fmt: skip  # noqa: E702
    return graph


def test_calls_on_one_line_have_names_of_their_own(queue):
    """`out` is also a parameter of the other call, whose argument stays as it is."""
    a, b, out, other = floats(), empty(), empty(), empty()
    for _ in range(3):
        graph = two_on_a_line(queue, a, b, out)
        other.write(np.zeros(8, np.float32))
        b.write(np.zeros(8, np.float32))
        graph.update(out=other)
        graph.launch().wait()
        assert np.array_equal(other.numpy(), ONE_TO_EIGHT)
        assert np.array_equal(b.numpy(), ONE_TO_EIGHT)
        assert not out.numpy().any()


def test_calls_on_one_line_that_python_does_not_tell_apart_are_ambiguous(queue, monkeypatch):
    """Before PEP 657, or with ``-X no_debug_ranges``."""
    monkeypatch.setattr(call_site, "labels_of_call", lambda code, instruction: None)
    graph = two_on_a_line(queue, floats(), empty(), empty())
    for name in ("a", "b", "out"):
        with pytest.raises(fq.ArgumentError, match=f"{name}.* is ambiguous.*on a line of its own"):
            graph.update(**{name: empty()})


def test_launches_repeat_what_accumulates(queue):
    a, graph = floats(), fq.Graph()
    with graph.record(queue):
        queue.submit(increment, 8, a)
        queue.submit(add, 8, a, a, a)
    expected = ONE_TO_EIGHT
    for _ in range(4):
        graph.launch()
        expected = (expected + 1) * 2
    assert np.array_equal(a.numpy(), expected)


def test_scalars_and_buffers_are_updated_for_all_launches_that_follow(queue):
    made = Scaled(queue)
    made.graph.update(factor=3.0)
    made.graph.launch()
    assert np.array_equal(made.out.numpy(), ONE_TO_EIGHT * 3 + 1)
    made.graph.update(factor=-0.0)
    for _ in range(2):
        made.graph.launch()
        assert np.array_equal(made.out.numpy(), np.ones(8))
    other, target = floats(start=10), empty()
    made.graph.update(factor=1.0, a=other, out=target)
    made.graph.launch()
    made.graph.launch()
    assert np.array_equal(target.numpy(), np.arange(11, 19))
    assert np.array_equal(made.out.numpy(), np.ones(8))
    made.graph.update(out=made.out)
    made.graph.launch()
    assert np.array_equal(made.out.numpy(), np.arange(11, 19))
    assert made.graph.reports[0].strategy == "fused"


def test_an_update_that_makes_buffers_one_is_planned_anew(queue):
    """What was two arrays may become one, and then depends on itself."""
    n = 5000
    a, b, out = floats(n), floats(n), empty(n)
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(increment, n, a)
        queue.submit(shift, n, b, 1, out)
    graph.launch()
    assert len(graph.reports[0].stages) == 1
    graph.update(b=a)
    graph.launch()
    assert np.array_equal(out.numpy()[:-1], np.arange(4, n + 3))
    assert out.numpy()[-1] == 0
    assert [d.kind for d in graph.reports[0].dependences] == ["RAW"]


def test_a_whole_graph_is_updated_with_other_sizes(queue):
    one, two = Scaled(queue), Scaled(queue, 100, 5.0)
    one.graph.launch()
    one.graph.update(two.graph)
    one.graph.launch()
    assert np.array_equal(two.out.numpy(), np.arange(1, 101) * 5 + 1)
    one.graph.update(factor=1.0)
    one.graph.launch()
    two.graph.update(factor=0.5)
    assert np.array_equal(two.out.numpy(), np.arange(1, 101) + 1)
    two.graph.launch()
    assert np.array_equal(two.out.numpy(), np.arange(1, 101) * 0.5 + 1)


def refused_updates(queue, made):
    other = fq.Graph()
    with other.record(queue):
        queue.submit(copy, 8, made.a, made.out)
    read_only = np.zeros(8, np.float32)
    read_only.flags.writeable = False
    return [
        ({"factor": 2}, "takes a float"),
        ({"nobody": 2.0}, "no scalar argument 'nobody'"),
        ({"nobody": made.a}, "no array argument is called 'nobody'"),
        ({"a": floats(9)}, "shape is"),
        ({"a": fq.Buffer(8, np.float64)}, "dtype is|strides is"),
        ({"a": floats(16)[::2]}, "strides is"),
        ({"a": empty(promote_private=True)}, "promotion is"),
        ({"out": fq.Buffer(read_only, copy=False)}, "memory of its own"),
        ({"a": 2.0}, "no scalar argument 'a'"),
        ({"factor": 9.0, "a": floats(9)}, "shape is"),
        (other, "this one has scale, copy_1d, increment, that one copy"),
        (made.a, "takes a Graph"),
    ]


def test_updates_that_do_not_fit_change_nothing(queue):
    made = Scaled(queue)
    for change, message in refused_updates(queue, made):
        with pytest.raises(fq.ArgumentError, match=message) as caught:
            if isinstance(change, dict):
                made.graph.update(**change)
            else:
                made.graph.update(change)
        assert f"{__file__}:" in str(caught.value)
    made.graph.launch()
    assert np.array_equal(made.out.numpy(), ONE_TO_EIGHT * 2 + 1)


def test_integers_are_checked_again(queue):
    a, out, distance = floats(), empty(), 1
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(shift, 8, a, distance, out)
    for value in (3, 0, 7):
        graph.update(distance=value)
        out.write(np.zeros(8, np.float32))
        graph.launch()
        expected = np.zeros(8)
        expected[: 8 - value] = ONE_TO_EIGHT[value:]
        assert np.array_equal(out.numpy(), expected)


def test_what_needs_a_result_ends_the_recording(queue):
    a, out = floats(), empty()
    actions = {
        r"Event\.wait": lambda event: event.wait(),
        r"FusionQueue\.wait": lambda event: queue.wait(),
        "host_task runs on the host": lambda event: queue.host_task(lambda: None),
        "an array of the host": lambda event: queue.memcpy(out, np.zeros(8, np.float32)),
        "with graph.record": lambda event: queue.complete_fusion(),
        "a graph records what": lambda event: queue.start_fusion(),
        "belongs behind": lambda event: graph.launch(),
        "another recording belongs": lambda event: graph.record(queue).__enter__(),
    }
    for message, action in actions.items():
        graph = fq.Graph()
        with pytest.raises(fq.FusionStateError, match=message) as caught, graph.record(queue):
            action(queue.submit(copy, 8, a, out))
        assert f"{__file__}:" in str(caught.value)
        assert "of 0 submissions" in repr(graph)
        queue.submit(increment, 8, a)
    assert not out.numpy().any()
    assert a.numpy()[0] == 1 + len(actions)


def test_a_wait_that_is_caught_leaves_the_graph_without_the_part(queue):
    a, out, graph = floats(), empty(), fq.Graph()
    with pytest.raises(fq.FusionStateError, match="recording of a graph was ended"):  # noqa: SIM117
        with graph.record(queue):
            event = queue.submit(copy, 8, a, out)
            with pytest.raises(fq.FusionStateError):
                event.wait()
    with pytest.warns(fq.FusionAborted, match="nothing was recorded"):
        graph.launch()
    assert not out.numpy().any()


def test_the_events_of_a_recording_name_the_launch(queue):
    made = Scaled(queue)
    with pytest.raises(fq.FusionStateError, match=r"event that its launch\(\) returns"):
        made.event.wait()
    with pytest.raises(fq.FusionStateError, match=r"launch\(\)"):
        queue.submit(increment, 8, made.a, depends_on=made.event)


def test_buffers_can_be_used_while_a_graph_records(queue):
    a, out, graph = floats(), empty(), fq.Graph()
    with graph.record(queue):
        queue.submit(copy, 8, a, out)
        assert a.numpy()[0] == 1
        out.write(ONE_TO_EIGHT * 7)
        queue.submit(increment, 8, out)
    assert np.array_equal(out.numpy(), ONE_TO_EIGHT * 7)
    graph.launch()
    assert np.array_equal(out.numpy(), ONE_TO_EIGHT + 1)


def test_an_exception_leaves_the_graph_as_it_was(queue):
    made = Scaled(queue)
    with pytest.raises(ZeroDivisionError), made.graph.record(queue):
        queue.submit(increment, 8, made.out)
        raise ZeroDivisionError
    made.graph.launch()
    assert np.array_equal(made.out.numpy(), ONE_TO_EIGHT * 2 + 1)


def test_a_graph_joins_a_block(queue):
    made = Scaled(queue)
    for _ in range(2):
        with fq.fusion(queue) as f:
            queue.submit(increment, 8, made.a)
            event = made.graph.launch()
            assert not event.is_complete
        assert len(f.report.submissions) == 4
    assert np.array_equal(made.out.numpy(), (ONE_TO_EIGHT + 2) * 2 + 1)
    with made.graph.record(queue, strategy="sequence"):
        f.replay()
    made.graph.launch()
    assert np.array_equal(made.out.numpy(), (ONE_TO_EIGHT + 3) * 2 + 1)


def test_several_queues(queue):
    n, factor = 2_000, 2.0
    a, b, out, graph = floats(n), empty(n), empty(n), fq.Graph()
    array, copied = np.zeros(n, np.float32), empty(n)
    with fq.FusionQueue(queue.device.filter_string) as other:
        with graph.record(queue):
            queue.submit(scale, n, a, factor, b)
            event = queue.submit(increment, n, b)
            shares = queue.submit(copy, n, b, array)
        with graph.record(other):
            other.submit(copy, n, b, out)
            other.submit(copy, n, array, copied, depends_on=[event, shares])
        with graph.record(queue):
            queue.submit(add, n, out, copied, a)
        expected = np.arange(1, n + 1, dtype=np.float32)
        for round_ in range(4):
            if round_ == 2:
                graph.update(factor=0.25)
            graph.launch().wait()
            expected = (expected * np.float32(0.25 if round_ > 1 else 2) + 1) * 2
            assert np.array_equal(a.numpy(), expected)
        assert len(graph.reports) == 3
        with pytest.raises(fq.FusionStateError, match="of several parts"), fq.fusion(other):
            graph.launch()


def test_a_launch_waits_for_events(queue):
    made = Scaled(queue)
    with fq.FusionQueue(queue.device.filter_string) as other:
        for count in (1, 2):
            made.graph.launch(depends_on=other.submit(increment, 8, made.a))
            assert np.array_equal(made.out.numpy(), (ONE_TO_EIGHT + count) * 2 + 1)
        with (
            pytest.raises(fq.FusionStateError, match=r"launch\(depends_on=…\)"),
            made.graph.record(queue),
        ):
            queue.submit(copy, 8, made.a, made.out, depends_on=other.submit(increment, 8, made.a))


def test_an_empty_graph_and_a_closed_queue(target):
    graph = fq.Graph()
    with pytest.warns(fq.FusionAborted, match="test_graph.py:.* nothing was recorded"):
        assert graph.launch().is_complete
    queue = fq.FusionQueue(target)
    with graph.record(queue):
        pass
    with pytest.warns(fq.FusionAborted, match="nothing was recorded"):
        assert graph.launch().is_complete
    made = Scaled(queue)
    queue.close()
    with pytest.raises(fq.FusionStateError, match="closed queue"):
        made.graph.launch()
    with pytest.raises(fq.FusionStateError, match="no report before launch"):
        assert made.graph.reports
    with pytest.raises(fq.FusionStateError, match="closed queue"), graph.record(queue):
        pass
    with pytest.raises(fq.ArgumentError, match="not Graph"):
        graph.record(graph)
    with pytest.raises(fq.ArgumentError, match="strategy"):
        graph.record(queue, strategy="fastest")


def test_require_is_told_by_the_launch(queue):
    n = 20_000
    a, out, graph = floats(n), empty(n), fq.Graph()
    with graph.record(queue, require=True, strategy="fused"):
        queue.submit(increment, n, a)
        queue.submit(shift, n, a, 1, out)
        queue.submit(increment, n, a)
    with pytest.raises(fq.FusionRefused):
        graph.launch()
