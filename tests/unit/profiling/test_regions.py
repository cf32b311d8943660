"""Regions and marks in kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.frontend.signature import ArrayType, Signature
from fusionq.ir.nodes import Record
from fusionq.ir.printer import print_kernel
from fusionq.ir.types import FLOAT32
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from tests.unit.profiling.kernels import with_regions, without_regions
from tests.unit.targets import TWO_CORES

ARRAY = ArrayType(FLOAT32, 1)
SIGNATURE = Signature("item", 1, (ARRAY, ARRAY))


def records(kernel):
    return [s for s in statements(kernel.body) if isinstance(s, Record)]


def test_without_profiling_the_device_source_is_that_of_a_kernel_without_regions() -> None:
    marked = generate(with_regions.specialise(SIGNATURE), "strict", TWO_CORES, OPENCL_C).text
    plain = generate(without_regions.specialise(SIGNATURE), "strict", TWO_CORES, OPENCL_C).text
    renamed = marked.replace("with_regions", "K").replace("helper_with_", "helper_")
    assert renamed == plain.replace("without_regions", "K").replace("helper_without_", "helper_")
    assert "helper" in renamed


def test_with_profiling_every_path_ends_what_it_started() -> None:
    kernel = with_regions.specialise(SIGNATURE, True)
    verify(kernel)
    found = records(kernel)
    assert {r.region for r in found} == {
        "outer", "second", "inner", "helper", "nothing", "after", "end",
    }  # fmt: skip
    text = print_kernel(kernel)
    before_break = text.split("break")[0].splitlines()
    assert "record_region_end('inner')" in before_break[-2]
    assert text.count("record_region_start('outer')") == 1
    # Both early returns leave it, and so does its last line.
    assert text.count("record_region_end('outer')") == 3
    assert text.count("record_region_end('helper')") == 2


def test_both_forms_are_kept() -> None:
    assert not records(with_regions.specialise(SIGNATURE))
    assert records(with_regions.specialise(SIGNATURE, True))
    assert with_regions.specialise(SIGNATURE) is with_regions.specialise(SIGNATURE)


def test_they_run_as_plain_python() -> None:
    a, expected = np.linspace(-200, 200, 64, dtype=np.float32), np.zeros(64, np.float32)
    found = expected.copy()
    run_function(without_regions.function, fq.Range(64), (a, expected))
    run_function(with_regions.function, fq.Range(64), (a, found))
    assert expected.any()
    assert np.array_equal(found, expected)
    with pytest.raises(ZeroDivisionError), fq.region("anything"):  # it hides no error
        fq.mark("anything", 1 // 0)


def test_the_payload_of_a_mark_is_int64() -> None:
    kernel = with_regions.specialise(SIGNATURE, True)
    (mark,) = [r for r in records(kernel) if r.region == "after"]
    assert mark.payload is not None
    assert mark.payload.type.name == "int64"


def refused(function) -> str:
    with pytest.raises(fq.KernelLanguageError) as error:
        fq.kernel(function).specialise(SIGNATURE)
    assert f"{__file__}:" in str(error.value)
    return str(error.value)


def test_with_takes_nothing_else() -> None:
    def opens(item, a, out):
        with open("file"):
            out[0] = a[0]

    assert "with is for regions only" in refused(opens)


def test_a_region_has_no_value() -> None:
    def named(item, a, out):
        with fq.region("x") as _named:
            out[0] = a[0]

    assert "without as" in refused(named)


def test_the_name_is_known_at_compile_time() -> None:
    def computed(item, a, out):
        with fq.region(a[0]):
            out[0] = a[0]

    assert 'Write fq.region("name")' in refused(computed)


def test_a_region_is_entered() -> None:
    def called(item, a, out):
        fq.region("x")
        out[0] = a[0]

    assert "entered by with" in refused(called)


def test_a_mark_has_an_integer() -> None:
    def fraction(item, a, out):
        fq.mark("x", a[0])
        out[0] = a[0]

    assert "value of a mark is an integer" in refused(fraction)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Record("x", "mark", "start"), "the start of a mark"),
        (Record("x", "stage", "instant"), "the instant of a stage"),
        (Record("x", "counter", "instant"), "counts nothing"),
    ],
)
def test_the_verifier_knows_records(record: Record, problem: str) -> None:
    kernel = without_regions.specialise(SIGNATURE)
    with pytest.raises(Exception, match=problem):
        verify(replace(kernel, body=(record, *kernel.body)))


def test_records_change_no_result(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(np.linspace(-200, 200, 64, dtype=np.float32))
    plain, marked = fq.Buffer(64, np.float32), fq.Buffer(64, np.float32)
    queue.submit(without_regions, 64, a, plain)
    with fq.profile(queue):
        queue.submit(with_regions, 64, a, marked)
    assert np.array_equal(plain.numpy(), marked.numpy())
