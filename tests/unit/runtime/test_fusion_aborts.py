"""What ends fusion mode by itself: the list runs unfused, and one warning says why."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, put


class Chain:
    """A list of two submissions over ``a``, ``tmp`` and ``out``, in fusion mode."""

    def __init__(self, queue):
        self.queue = queue
        self.a, self.tmp, self.out = floats(), empty(promote_private=True), empty()
        self.other, self.other_out = floats(8, 100.0), empty()
        queue.start_fusion()
        self.events = [
            queue.submit(copy, 8, self.a, self.tmp),
            queue.submit(add, 8, self.tmp, self.a, self.out),
        ]

    def check(self, cause):
        assert not self.queue.is_in_fusion_mode()
        event = self.queue.complete_fusion()
        event.wait()
        assert all(e.is_complete for e in self.events)
        assert (self.out.numpy() == np.arange(1, 9) * 2).all()
        report = self.queue.last_report
        assert report.strategy == "unfused"
        assert cause in report.fallback
        assert len(report.submissions) == 2
        with pytest.raises(fq.FusionStateError):
            self.queue.complete_fusion()


@pytest.fixture
def chain(queue):
    return Chain(queue)


ACTIONS = {
    "Event.wait()": lambda c: c.events[0].wait(),
    "FusionQueue.wait()": lambda c: c.queue.wait(),
    "Buffer.numpy()": lambda c: c.out.numpy(),
    "Buffer.numpy() ": lambda c: c.a.numpy(),
    "Buffer.numpy()  ": lambda c: np.asarray(c.tmp[1:]),
    "memcpy": lambda c: c.queue.memcpy(np.empty(8, np.float32), c.out),
    "memcpy ": lambda c: c.queue.memcpy(c.tmp, np.zeros(8, np.float32)),
    "host_task": lambda c: c.queue.host_task(lambda x: None, c.out),
}


@pytest.mark.parametrize("cause", ACTIONS)
def test_these_end_it(chain, cause):
    with pytest.warns(fq.FusionAborted) as caught:
        ACTIONS[cause](chain)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert cause.strip() in message
    assert f"{__file__}:" in message
    assert caught[0].filename == __file__
    chain.check(cause.strip())


def test_writing_ends_it_before_the_write(chain):
    with pytest.warns(fq.FusionAborted, match=r"Buffer\.write\(\)"):
        chain.a.write(np.zeros(8, np.float32))
    chain.check("Buffer.write()")


def test_filling_memory_that_a_buffer_shares_ends_it_before_the_fill(queue):
    array = np.arange(1, 9, dtype=np.float32)
    out = empty()
    queue.start_fusion()
    shared = fq.Buffer(array, copy=False)
    queue.submit(copy, 8, shared, out)
    with pytest.warns(fq.FusionAborted, match="fill depends on the list"):
        queue.fill(array, 0.0)
    queue.complete_fusion()
    assert (out.numpy() == np.arange(1, 9)).all()
    assert not array.any()


def test_deletion_does_not_end_it(chain):
    """Nobody can look at a buffer's own memory when the last reference has gone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del chain.tmp
        gc.collect()
        assert chain.queue.is_in_fusion_mode()
        chain.queue.complete_fusion().wait()
    assert (chain.out.numpy() == np.arange(1, 9) * 2).all()
    assert chain.queue.last_report.strategy == "fused"


def test_deletion_of_a_buffer_around_memory_of_others_ends_it(queue):
    array = np.zeros(8, np.float32)
    chain = Chain(queue)
    chain.adopted = fq.Buffer(array, copy=False)
    queue.submit(copy, 8, chain.out, chain.adopted)
    with pytest.warns(fq.FusionAborted, match="deleted"):
        del chain.adopted
        gc.collect()
    queue.wait()
    assert (array == np.arange(1, 9) * 2).all()
    assert "deleted" in queue.last_report.fallback


def test_deletion_of_a_view_does_not(chain):
    view = chain.a[1:]
    del view
    gc.collect()
    assert chain.queue.is_in_fusion_mode()
    chain.queue.complete_fusion()


def test_a_view_given_to_submit_does_not_count_as_deleted(queue):
    a, out = floats(), empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fq.fusion(queue) as f:
            queue.submit(copy, 4, a[::2], out[4:])
    assert f.report.strategy == "fused"
    assert out.numpy().tolist() == [0, 0, 0, 0, 1, 3, 5, 7]


def test_the_usm_interface_ends_it(sycl_queue):
    chain = Chain(sycl_queue)
    with pytest.warns(fq.FusionAborted, match="__sycl_usm_array_interface__"):
        chain.out.__sycl_usm_array_interface__  # noqa: B018
    chain.check("__sycl_usm_array_interface__")


def test_closing_the_queue_ends_it(target):
    queue = fq.FusionQueue(target)
    chain = Chain(queue)
    with pytest.warns(fq.FusionAborted, match="closed"):
        queue.close()
    chain.check("closed")


def test_commands_without_a_dependence_leave_it(chain):
    q = chain.queue
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copied, filled = np.zeros(8, np.float32), np.zeros(8, np.float32)
        q.memcpy(copied, chain.a)  # both only read it
        q.fill(filled, 5.0)
        q.memcpy(chain.other, filled)
        seen = []
        q.host_task(lambda x: seen.append(x.sum()), chain.other)
        q.host_task(lambda: seen.append("called"))
        assert chain.other.numpy()[0] == 5
    assert seen == [40, "called"]
    assert q.is_in_fusion_mode()
    assert (copied == np.arange(1, 9)).all()
    assert not chain.events[0].is_complete
    q.complete_fusion()
    assert q.last_report.strategy == "fused"
    assert (chain.out.numpy() == np.arange(1, 9) * 2).all()


def test_asking_an_event_whether_it_is_complete_leaves_it(chain):
    assert not chain.events[1].is_complete
    assert "pending" in repr(chain.events[1])
    assert chain.queue.is_in_fusion_mode()
    chain.queue.complete_fusion()


def test_submissions_after_the_abort_run_plainly_and_in_order(chain):
    with pytest.warns(fq.FusionAborted):
        chain.events[0].wait()
    chain.queue.submit(increment, 8, chain.out)
    chain.queue.complete_fusion().wait()
    assert (chain.out.numpy() == np.arange(1, 9) * 2 + 1).all()


def test_an_abort_inside_the_block(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        event = queue.submit(copy, 8, a, out)
        with pytest.warns(fq.FusionAborted, match=r"Event\.wait"):
            event.wait()
        queue.submit(increment, 8, out)
    f.event.wait()
    assert np.array_equal(out.numpy(), a.numpy() + 1)
    assert f.report.strategy == "unfused"
    assert "Event.wait" in f.report.fallback
    assert len(f.report.submissions) == 1
    f.replay().wait()
    assert np.array_equal(out.numpy(), a.numpy())


def test_start_after_an_abort(chain):
    with pytest.warns(fq.FusionAborted):
        chain.queue.wait()
    chain.queue.start_fusion()
    with pytest.warns(fq.FusionAborted, match="nothing"):
        chain.queue.complete_fusion()


def test_cancel_after_an_abort_gives_the_event(chain):
    with pytest.warns(fq.FusionAborted):
        chain.queue.wait()
    chain.queue.cancel_fusion().wait()
    with pytest.raises(fq.FusionStateError):
        chain.queue.complete_fusion()


def test_warnings_as_errors_still_leave_a_queue_that_works(chain):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fq.FusionAborted):
            chain.events[0].wait()
    chain.check("Event.wait()")


def test_a_long_list_is_aborted_without_analysing_it(queue):
    total = fq.Buffer(np.zeros(1, np.int64))
    queue.start_fusion()
    for _ in range(3000):
        queue.submit(increment, 1, total)
    with pytest.warns(fq.FusionAborted, match="list of 3000"):
        queue.wait()
    assert total.numpy()[0] == 3000


# ----------------------------------------------------------------------- a second queue
@pytest.fixture
def second(target):
    with fq.FusionQueue(target) as queue:
        yield queue


def test_another_queues_kernel_that_depends_by_buffer(chain, second):
    result = empty()
    with pytest.warns(fq.FusionAborted, match="depends on it"):
        second.submit(copy, 8, chain.out, result)
    assert (result.numpy() == np.arange(1, 9) * 2).all()
    chain.check("depends on it")


def test_another_queues_kernel_that_overwrites_an_input(chain, second):
    with pytest.warns(fq.FusionAborted):
        second.submit(put, 8, 0.0, chain.a)
    assert not chain.a.numpy().any()
    chain.check("depends on it")


def test_another_queues_kernel_that_only_reads_what_the_list_reads(chain, second):
    result = empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second.submit(copy, 8, chain.a, result)
        assert (result.numpy() == np.arange(1, 9)).all()
    assert chain.queue.is_in_fusion_mode()
    chain.queue.complete_fusion()


def test_another_queues_kernel_that_depends_by_event(chain, second):
    result = empty()
    with pytest.warns(fq.FusionAborted, match="depends on an event"):
        second.submit(copy, 8, chain.other, result, depends_on=[chain.events[1]])
    chain.check("depends on an event")


def test_a_fusing_queue_that_depends_by_event_goes_on(chain, second):
    result = empty()
    with fq.fusion(second) as f:
        with pytest.warns(fq.FusionAborted, match="depends on an event"):
            second.submit(copy, 8, chain.other, result, depends_on=chain.events[0])
        assert second.is_in_fusion_mode()
    assert f.report.strategy == "fused"
    chain.check("depends on an event")


def test_two_fusing_queues_that_share_an_input_go_on(queue, second):
    a, x, y = floats(), empty(), empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fq.fusion(queue) as one, fq.fusion(second) as two:
            queue.submit(copy, 8, a, x)
            second.submit(copy, 8, a, y)
            queue.submit(increment, 8, x)
            second.submit(increment, 8, y)
    assert one.report.strategy == two.report.strategy == "fused"
    assert np.array_equal(x.numpy(), y.numpy())


def test_two_fusing_queues_that_pass_a_buffer_on_are_right(queue, second):
    a, x, y = floats(), empty(), empty()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        with fq.fusion(queue), fq.fusion(second):
            queue.submit(copy, 8, a, x)
            second.submit(increment, 8, x)
            queue.submit(copy, 8, x, y)
            second.submit(increment, 8, y)
    assert np.array_equal(y.numpy(), a.numpy() + 2)


def test_two_fusing_queues_that_pass_a_buffer_one_way_both_fuse(queue, second):
    a, x, y, z = floats(), empty(), empty(), empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fq.fusion(second) as two:
            with fq.fusion(queue) as one:
                queue.submit(copy, 8, a, x)
                queue.submit(increment, 8, x)
                second.submit(copy, 8, x, y)
            second.submit(copy, 8, y, z)
    assert one.report.strategy == two.report.strategy == "fused"
    assert np.array_equal(z.numpy(), a.numpy() + 1)


def test_the_queue_that_is_needed_first_ends_its_fusion(queue, second):
    a, x, y = floats(), empty(), empty()
    queue.start_fusion()
    queue.submit(copy, 8, a, x)
    queue.submit(increment, 8, x)
    second.start_fusion()
    second.submit(copy, 8, x, y)
    second.submit(increment, 8, y)
    assert queue.is_in_fusion_mode()
    with pytest.warns(fq.FusionAborted, match="another queue's kernels"):
        second.complete_fusion()
    assert second.last_report.strategy == "fused"
    assert queue.last_report.strategy == "unfused"
    assert not queue.is_in_fusion_mode()
    assert np.array_equal(y.numpy(), a.numpy() + 2)


def test_a_circular_need_runs_both_unfused_in_order(queue, second):
    a, x, y = floats(), empty(), empty()
    queue.start_fusion()
    second.start_fusion()
    queue.submit(copy, 8, a, x)
    second.submit(increment, 8, x)
    queue.submit(copy, 8, x, y)
    second.submit(increment, 8, y)
    queue.submit(increment, 8, y)
    with pytest.warns(fq.FusionAborted, match="in turn"):
        second.complete_fusion()
    assert queue.last_report.strategy == second.last_report.strategy == "unfused"
    assert np.array_equal(y.numpy(), a.numpy() + 3)
    queue.complete_fusion()


def test_an_abort_takes_along_what_must_run_before(queue, second):
    a, x, y = floats(), empty(), empty()
    queue.start_fusion()
    queue.submit(copy, 8, a, x)
    second.start_fusion()
    second.submit(copy, 8, x, y)
    with pytest.warns(fq.FusionAborted):
        assert np.array_equal(y.numpy(), a.numpy())
    assert not queue.is_in_fusion_mode()
    assert not second.is_in_fusion_mode()


# --------------------------------------------------------------------------- depends_on
def test_depends_on_inside_the_list_is_dropped(queue):
    a, out = floats(), empty()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fq.fusion(queue) as f:
            event = queue.submit(copy, 8, a, out)
            queue.submit(increment, 8, out, depends_on=[event])
    assert f.report.strategy == "fused"
    assert np.array_equal(out.numpy(), a.numpy() + 1)


def test_depends_on_outside_the_list_carries_over(queue, second):
    a, b, out = floats(), empty(), empty()
    before = second.submit(copy, 8, a, b)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out, depends_on=[before])
    f.event.wait()
    assert before.is_complete


def test_depends_on_takes_dpctl_events(sycl_queue):
    a, out = floats(), empty()
    native = sycl_queue.submit(copy, 8, a, out).native
    sycl_queue.submit(increment, 8, out, depends_on=[native]).wait()
    assert np.array_equal(out.numpy(), a.numpy() + 1)
    with fq.FusionQueue("reference") as reference:
        reference.submit(increment, 8, out, depends_on=[native]).wait()
    assert np.array_equal(out.numpy(), a.numpy() + 2)


@pytest.mark.parametrize("wrong", [[None], ["event"], 7, [np.zeros(3)]])
def test_other_dependences_are_refused(queue, wrong):
    with pytest.raises(fq.ArgumentError, match=r"depends_on takes"):
        queue.submit(copy, 8, floats(), empty(), depends_on=wrong)


def test_a_block_that_an_exception_ends_before_its_first_submission_has_a_report(queue):
    with pytest.raises(KeyError), fq.fusion(queue):
        raise KeyError("missing")
    report = queue.last_report
    assert report.submissions == ()
    assert "an exception ended the block: KeyError" in report.fallback
    assert "0 submissions" in str(report)


def test_a_list_that_is_cancelled_before_its_first_submission_has_a_report(queue):
    queue.start_fusion()
    queue.cancel_fusion()
    assert queue.last_report.submissions == ()
    assert "fusion was cancelled" in str(queue.last_report)
