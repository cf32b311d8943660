"""What is no reduction, and what kernels cannot do with one: refused with file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.language.combine import COMBINE
from tests.unit.runtime.reduced import add_all, reads, two_of_one


# ------------------------------------------------------------------------------- errors
@fq.kernel
def reads_itself(item, a, r):
    r = r + a[item.get_id(0)]


@fq.kernel
def another_operator(item, a, r):
    r *= a[item.get_id(0)]


@fq.kernel
def another_method(item, a, r):
    r.value(a[0])


@fq.kernel
def two_values(item, a, r):
    r.combine(a[0], 1)


@fq.kernel
def too_large(item, a, r):
    r += 300


@fq.kernel
def complex_value(item, a, r):
    r += a[0] * 1j


@fq.kernel
def of_nd_items(item: fq.NdItem, a, r):
    r += a[item.get_global_id(0)]


@pytest.mark.parametrize(
    "kernel,op,dtype,message",
    [
        (reads, "add", "f4", "not the reduction 'r'.*\n.*\n.*\n.*in a kernel that is submitted"),
        (reads_itself, "add", "f4", "not the reduction 'r'"),
        (another_operator, "add", "f4", r"'r' is a reduction by 'add'\n.*\n.*\n.*r \+= x"),
        (another_operator, "min", "f4", r"by 'min'\n.*\n.*\n.*Write r.combine\(x\)\."),
        (another_method, "add", "f4", r"a reduction has no 'value'\n.*\n.*\n.*combine\(x\)"),
        (two_values, "add", "f4", "combine takes one value"),
        (too_large, "add", "i1", "300 is out of the range of int8"),
        (complex_value, "add", "f4", "not a complex number"),
        (of_nd_items, "add", "f4", "annotated with NdItem, but was submitted over a Range"),
    ],
)
def test_what_kernels_cannot_do_with_a_reduction(kernel, op, dtype, message):
    with fq.FusionQueue("reference") as queue:
        a, out = fq.Buffer(8, "f4"), fq.Buffer(1, dtype)
        with pytest.raises(fq.FusionqError, match=message) as error:
            queue.submit(kernel, 8, a, fq.Reduction(out, op))
        assert f"{Path(__file__).name}:" in str(error.value)


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: fq.Reduction(fq.Buffer(8, "f4"), "add"), "one element, not of shape.*view"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), "addd"), "did you mean 'add'"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), 7), "there is no operation 7"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), np.exp), "there is no operation 'exp'"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), "bit_or"), "no 'bit_or' of float32"),
        (lambda: fq.Reduction(fq.Buffer(1, bool), "add"), "no 'add' of bool"),
        (lambda: fq.Reduction(fq.Buffer(1, "c8"), "add"), "no 'add' of complex64.*two reductions"),
        (lambda: fq.Reduction(fq.Buffer(1, "bfloat16"), "add"), "combine in float32"),
        (lambda: fq.Reduction(fq.Buffer(1, [("x", "f4")]), "add"), r"one of its fields.*\['x'\]"),
        (lambda: fq.Reduction(5.0, "add"), "takes a Buffer or an array of one element, not float"),
        (lambda: fq.Reduction(np.float32(5), "add"), "one element, not float32"),
        (lambda: fq.Reduction(np.zeros(1, "O"), "add"), "object"),
        (lambda: fq.Reduction(np.zeros((2, 2)), "add"), r"not of shape \(2, 2\)"),
        (lambda: fq.Reduction(fq.access(fq.Buffer(1, "f4")), "add"), "not an AccessorArgument"),
        (lambda: fq.Reduction(np.broadcast_to(np.float32(1), (1,)), "add"), "read-only"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), "add", initialise=True), "'initialize'"),
        (lambda: fq.Reduction(fq.Buffer(1, "f4"), "add", initialize=2), "True or False"),
    ],
)
def test_what_is_no_reduction(make, message):
    with pytest.raises(fq.ArgumentError, match=message) as error:
        make()
    assert f"{Path(__file__).name}:" in str(error.value)


def not_a_kernel(item, a, r):
    pass


def test_what_cannot_be_submitted():
    with fq.FusionQueue("reference") as queue:
        a, both = fq.Buffer(8, "f4"), fq.Buffer(2, "f4")
        r = fq.Reduction(a[2:3], "add")
        out = fq.Reduction(both[:1], "add")
        fixed = fq.kernel(work_group_size=64)(add_all.function)
        for call, message in (
            (lambda: queue.submit(add_all, 8, a, r), "shares memory with the argument 'a'"),
            (lambda: queue.submit(add_all, 8, fq.access(a), r), "shares memory with the argument"),
            (lambda: queue.submit(two_of_one, 8, a, out, out), "the argument 's'"),
            (lambda: queue.submit(add_all, 8, out), r"takes 2 arguments after its item \(a, r\)"),
            (lambda: queue.submit(add_all, 8, a, out, 3), "not 3"),
            (lambda: queue.submit(add_all, 8.5, a, out), "a range takes integers"),
            (lambda: queue.submit(not_a_kernel, 8, a, out), "made with @fusionq.kernel, not"),
            (lambda: queue.submit(fixed, 8, a, out), r"NdRange\(global_range, \(64,\)\)"),
            (lambda: queue.fill(out, 1), "not Reduction"),
        ):
            with pytest.raises(fq.ArgumentError, match=message) as error:
                call()
            assert f"{Path(__file__).name}:" in str(error.value)
        queue.submit(two_of_one, 8, a, out, fq.Reduction(both[1:], "max"))
    with pytest.raises(fq.FusionStateError, match="closed"):
        queue.submit(add_all, 8, a, out)


def test_reductions_say_what_they_are():
    assert repr(fq.Reduction(fq.Buffer(1, "f4"), np.add)) == "<Reduction of float32 by 'add'>"
    assert "initialize=True" in repr(fq.Reduction(fq.Buffer(1, "i4"), min, initialize=True))
    assert set(COMBINE) >= {fq.Reduction(fq.Buffer(1, "i4"), "bit_xor").op}
