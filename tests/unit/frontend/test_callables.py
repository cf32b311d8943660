"""Kernels and functions that are methods, functors and partial applications; kernels that ask for
no id; objects from outside, whose attributes are constants."""

import functools
import operator
from enum import Enum, IntEnum
from types import SimpleNamespace

import numpy as np
import pytest

import fusionq as fq
from tests.unit.frontend.running import define

A = np.array([0.5, -1.5, 2.5, 3.0], "float32")


class Mode(Enum):
    HALF = 0.5
    COUNT = 3


class Level(IntEnum):
    LOW = 2


class Filter:
    """A functor with a method, an object of its own, and a static method."""

    offset = np.float32(0.25)

    def __init__(self, gain, options=None):
        self.gain = np.float32(gain)
        self.options = options or SimpleNamespace(power=2)

    def __call__(self, item, a, out):
        i = item.get_id(0)
        out[i] = self.shaped(a[i])

    def method(self, item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = self.shaped(a[i]) + self.base(a[i])

    def shaped(self, x):
        return x * self.gain + self.offset * self.options.power

    @staticmethod
    def base(x):
        return x - 1

    @classmethod
    def of_class(cls, item, a, out):
        i = item.get_id(0)
        out[i] = a[i] + cls.offset


def scaled(factor, item, a, shift, out):
    i = item.get_id(0)
    out[i] = a[i] * factor + shift


@pytest.fixture
def queue():
    with fq.FusionQueue("reference") as made:
        yield made


def result(queue, function, *before, **options):
    out = np.zeros(4, np.float32)
    queue.submit(fq.kernel(function), 4, A, *before, out)
    queue.wait()
    return out


def test_functors_and_methods(queue):
    for gain in (2, 3):
        made = Filter(gain)
        shaped = A * np.float32(gain) + np.float32(0.5)
        np.testing.assert_array_equal(result(queue, made), shaped)
        np.testing.assert_array_equal(result(queue, made.method), shaped + A - 1)
    np.testing.assert_array_equal(result(queue, Filter.of_class), A + np.float32(0.25))
    static = staticmethod(define("def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = a[i]"))
    np.testing.assert_array_equal(result(queue, static), A)


def test_partial_applications(queue):
    two = functools.partial(scaled, np.float32(2))
    np.testing.assert_array_equal(result(queue, two, 1), A * 2 + 1)
    both = functools.partial(two, shift=np.float32(3))
    np.testing.assert_array_equal(result(queue, both), A * 2 + 3)
    with pytest.raises(fq.ArgumentError, match=r"2 arguments after its item \(a, out\), not 3"):
        result(queue, both, 1)


def test_defaults_and_names_that_are_bound(queue):
    """What is bound by name may have had a default, or be a parameter that is given by name only;
    a default is taken where no argument is given."""
    text = "def k(item, a, b=3, out=None):\n    i = item.get_id(0)\n    out[i] = a[i] * b\n"
    made = define(text)
    np.testing.assert_array_equal(result(queue, functools.partial(made, b=2)), A * 2)
    np.testing.assert_array_equal(result(queue, made, np.float32(5)), A * 5)
    with pytest.raises(fq.KernelLanguageError, match="None cannot be indexed"):
        result(queue, made)  # whose out is None
    by_name = define(text.replace("b=3, out=None", "out, *, b=3"))
    np.testing.assert_array_equal(result(queue, functools.partial(by_name, b=2)), A * 2)
    with pytest.raises(fq.KernelLanguageError, match="positional parameters only"):
        result(queue, by_name)


def test_what_a_kernel_calls(queue):
    names = {
        "f": functools.partial(define("def f(x, y=1, *, z):\n    return x * z + y\n"), z=4),
        "g": Filter(3).shaped, "operator": operator, "mode": Mode.HALF, "Mode": Mode,
        "Level": Level, "FIELD": "gain", "filter": Filter(3),
        "call": define("def call(s, x):\n    return s.shaped(x)\n"),
    }  # fmt: skip
    text = "def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {}\n"
    for expression, expected in (
        ("f(a[i])", A * 4 + 1),
        ("f(a[i], z=np.float32(2))", A * 2 + 1),
        ("g(a[i])", A * 3 + np.float32(0.5)),
        ("call(filter, a[i])", A * 3 + np.float32(0.5)),
        ("operator.sub(a[i], operator.neg(2))", A + 2),
        ("1.0 if operator.and_(operator.lt(a[i], 1), True) else 0.0", (A < 1) * 1.0),
        ("a[i] * Mode.COUNT.value * mode.value * Level.LOW", A * 3),
        ("a[i] * Level.LOW.value + getattr(filter, FIELD)", A * 2 + 3),
        ("1 if mode == Mode.HALF else 2", A * 0 + 1),
        ("1 if mode is Mode.COUNT else 2", A * 0 + 2),
    ):
        made = define(text.format(expression), **names)
        np.testing.assert_array_equal(result(queue, made), np.float32(expected))


def test_what_is_bound_is_part_of_the_fingerprint():
    made = {
        fq.kernel(function).fingerprint
        for function in (
            Filter(2), Filter(3), Filter(3, SimpleNamespace(power=3)), Filter(2).method,
            functools.partial(scaled, 1), functools.partial(scaled, 2),
            functools.partial(scaled, 2, shift=1),
        )
    }  # fmt: skip
    assert len(made) == 7
    assert fq.kernel(Filter(2)).fingerprint == fq.kernel(Filter(2)).fingerprint


def test_an_attribute_that_the_fingerprint_does_not_have(queue):
    inner = define("def inner(s, x):\n    return s.gain * x\n")
    made = define(
        "def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = inner(filter, a[i])\n",
        inner=inner, filter=SimpleNamespace(gain=3),
    )  # fmt: skip
    with pytest.raises(fq.KernelLanguageError, match=r"s\.gain is an attribute of an object"):
        result(queue, made)


@pytest.mark.parametrize("range", [4, fq.NdRange(4, 2)])
def test_a_kernel_that_asks_for_no_id(queue, range):
    out = np.zeros(2, np.int32)
    queue.submit(fq.kernel(define("def k(out):\n    out[1] = 7\n")), range, out)
    queue.submit(fq.kernel(define("def k():\n    pass\n")), range)
    queue.submit(fq.kernel(define("def k(unused, out):\n    out[0] = 5\n")), range, out)
    queue.wait()
    assert out.tolist() == [5, 7]


def test_an_item_over_an_nd_range(queue):
    out = np.zeros(4, np.int32)
    made = define(
        "def k(item: Item, out):\n    out[item.get_global_id(0)] = item.get_local_id(0)\n",
        Item=fq.Item,
    )
    queue.submit(fq.kernel(made), fq.NdRange(4, 2), out)
    queue.wait()
    assert out.tolist() == [0, 1, 0, 1]


def test_one_argument_too_many_is_not_a_kernel_without_an_item(queue):
    made = define("def k(item, a):\n    a[item.get_id(0)] = 1\n")
    with pytest.raises(fq.ArgumentError, match=r"takes 1 arguments after its item \(a\), not 2"):
        queue.submit(fq.kernel(made), 4, A.copy(), A.copy())


def test_the_decorator_with_parentheses(queue):
    made = fq.kernel()(define("def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = a[i]\n"))
    out = np.zeros(4, np.float32)
    queue.submit(made, 4, A, out)
    queue.wait()
    np.testing.assert_array_equal(out, A)
