"""Strings, None and members of enumerations as arguments, for which kernels are compiled, and the
defaults of parameters."""

import enum

import numpy as np
import pytest

import fusionq as fq


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Other:
    class Mode(enum.Enum):
        FAST = 1
        SLOW = 2


@fq.kernel
def linear(item: fq.Item, x, out, bias=None, scale=2, activation="relu", mode=Mode.FAST):
    i = item.get_id(0)
    s = scale * x[i]
    if bias is not None:
        s += bias[i]
    if activation == "relu":
        s = max(s, 0)
    elif activation in ("negate", "minus"):
        s = -s
    if mode is Mode.SLOW:
        s += 100
    out[i] = s


X = np.arange(-3, 5, dtype=np.float32)
BIAS = np.full(8, 0.5, np.float32)


def expected(bias=None, scale=2, activation="relu", mode=Mode.FAST):
    s = scale * X + (0 if bias is None else bias)
    if activation == "relu":
        s = np.maximum(s, 0)
    elif activation in ("negate", "minus"):
        s = -s
    return s + 100 if mode is Mode.SLOW else s


@pytest.fixture(params=["reference", None])
def queue(request):
    with fq.FusionQueue(*[request.param] * (request.param is not None)) as made:
        yield made


CASES = [
    (), (None,), (BIAS,), (BIAS, 3), (None, 1, "negate"), (None, 1, "minus"), (None, 1, "none"),
    (BIAS, 1.5, "none", Mode.SLOW), (None, 2, "relu", Mode.FAST),
    (None, 1, "none", Other.Mode.SLOW),
]  # fmt: skip


@pytest.mark.parametrize("is_fused", [False, True])
def test_kernels_are_compiled_for_them(queue, is_fused):
    """Each of them twice, between the others."""
    x, bias, out = fq.Buffer(X), fq.Buffer(BIAS), fq.Buffer(8, np.float32)
    for case in (*CASES, *CASES):
        given = [bias if value is BIAS else value for value in case]
        if is_fused:
            kept = fq.Buffer(8, np.float32)
            with fq.fusion(queue):
                queue.submit(linear, 8, x, kept, *given)
                queue.submit(linear, 8, kept, out, None, 1, "none")
        else:
            queue.submit(linear, 8, x, out, *given)
        np.testing.assert_array_equal(out.numpy(), expected(*case), str(case))


@fq.kernel
def summed(item: fq.Item, a, total, factor=3):
    total.combine(a[item.get_id(0)] * factor)


def test_defaults_of_kernels_with_reductions(queue):
    total = fq.Buffer(np.zeros(1, np.int64))
    a = fq.Buffer(np.arange(10))
    queue.submit(summed, 10, a, fq.Reduction(total, "add"))
    assert total.numpy()[0] == 135
    queue.submit(summed, 10, a, fq.Reduction(total, "add"), 1)
    assert total.numpy()[0] == 180


@fq.kernel
def without_item(a, out, by=2):
    out[0] = a[0] + by


def test_a_kernel_without_an_item_is_given_all_its_arguments(queue):
    a, out = fq.Buffer(np.float32([5])), fq.Buffer(1, np.float32)
    queue.submit(without_item, 1, a, out, 7)
    assert out.numpy()[0] == 12
    with pytest.raises(fq.KernelLanguageError, match="the Item cannot be indexed"):
        queue.submit(without_item, 1, out, 7)
    assert out.numpy()[0] == 12


def test_they_are_told_by_name_where_they_do_not_fit(queue):
    x, out = fq.Buffer(X), fq.Buffer(8, np.float32)
    with pytest.raises(fq.KernelLanguageError, match="a number is needed here, not None"):
        queue.submit(linear, 8, x, out, None, None)
    with pytest.raises(fq.ArgumentError, match=r"activation='relu', mode=<Mode.FAST: 1>\), not 1"):
        queue.submit(linear, 8, x)
    with pytest.raises(fq.ArgumentError, match="is of type object"):
        queue.submit(linear, 8, x, out, None, 1, object())


def test_replay_keeps_them(queue):
    x, out, bias = fq.Buffer(X), fq.Buffer(8, np.float32), fq.Buffer(BIAS)
    with fq.fusion(queue) as fusion:
        queue.submit(linear, 8, x, out, bias)
        queue.submit(linear, 8, out, out, None, 1, "negate")
    fusion.replay(scale=3)  # of both
    np.testing.assert_array_equal(out.numpy(), -3 * expected(BIAS, 3))
