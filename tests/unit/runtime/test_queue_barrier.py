"""queue.barrier, event.get_wait_list and device.supports_fusion."""

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def increment(item: fq.Item, a):
    a[item.get_id(0)] += 1


class Held:
    """An event that has not happened until somebody waits for it."""

    native = None

    def __init__(self):
        self.complete = False
        self.waits = 0

    def wait(self):
        self.waits += 1
        self.complete = True

    def times(self):
        return None


def test_later_work_waits_for_its_events(queue):
    a, held = fq.Buffer(np.zeros(4)), Held()
    queue.submit(increment, 4, a)
    event = queue.barrier(fq.Event(held))
    assert not event.is_complete and held.waits == 0
    assert [e.is_complete for e in event.get_wait_list()] == [False]
    queue.submit(increment, 4, a)  # no device knows this event: it is waited for here
    assert held.waits == 1
    event.wait()
    assert held.waits >= 1 and event.is_complete and event.get_wait_list() == []


def test_without_events_it_is_the_queues_order(queue):
    a = fq.Buffer(np.zeros(4))
    queue.submit(increment, 4, a)
    event = queue.barrier()
    event.wait()
    assert event.is_complete and a.numpy().tolist() == [1] * 4
    assert queue.barrier([]).get_wait_list() == []


def test_in_a_list_fusion_goes_on(queue):
    a, held = fq.Buffer(np.zeros(4)), Held()
    with fq.fusion(queue, strategy="fused") as f:
        first = queue.submit(increment, 4, a)
        event = queue.barrier([first])
        assert event.get_wait_list() == []  # the list keeps its order
        queue.submit(increment, 4, a)
        before = queue.barrier(fq.Event(held))
        assert len(before.get_wait_list()) == 1 and not before.is_complete
        assert len(first.get_wait_list()) == 1  # the list waits as a whole
        assert queue.is_in_fusion_mode()
    f.event.wait()
    assert a.numpy().tolist() == [2] * 4 and len(f.report.stages) == 1 and f.report.fallback is None
    assert event.is_complete and held.waits == 1 and first.get_wait_list() == []


def test_events_of_another_queues_list_end_its_fusion(queue):
    a, b = fq.Buffer(np.zeros(4)), fq.Buffer(np.zeros(4))
    with fq.FusionQueue("reference") as other:
        other.start_fusion()
        event = other.submit(increment, 4, b)
        with pytest.warns(fq.FusionAborted, match="depends on an event of the list"):
            queue.barrier(event)
        assert not other.is_in_fusion_mode()
        queue.submit(increment, 4, a)
    assert a.numpy().tolist() == b.numpy().tolist() == [1] * 4


def test_commands_on_the_host_wait_too(queue):
    a, held = np.zeros(4), Held()
    queue.barrier(fq.Event(held))
    queue.fill(a, 3)
    assert held.waits == 1


def test_depends_on_shows_in_the_wait_list():
    with fq.FusionQueue() as queue, fq.FusionQueue() as other:
        a, b = fq.Buffer(np.zeros(1 << 20)), fq.Buffer(np.zeros(4))
        before = other.submit(increment, 1 << 20, a)
        event = queue.submit(increment, 4, b, depends_on=before)
        assert all(isinstance(e, fq.Event) for e in event.get_wait_list())
        event.wait()
        assert event.get_wait_list() == [] and before.is_complete


def test_refused(queue):
    with pytest.raises(fq.ArgumentError, match="depends_on takes Events"):
        queue.barrier([3])
    queue.close()
    with pytest.raises(fq.FusionStateError, match="barrier on a closed queue"):
        queue.barrier()


def test_devices_support_fusion(queue):
    assert queue.device.supports_fusion is True
