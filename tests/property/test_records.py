"""Random lists over records leave, byte for byte, what NumPy does, fused or not; bytes between the
fields stay as they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.frontend.kernel import kernel
from fusionq.language.ranges import as_range
from tests.property.kernel_parameters import define
from tests.property.launches import Array
from tests.property.record_programs import N, RecordProgram, record_programs
from tests.property.running import contents, examples, needs_device

STRATEGIES = st.sampled_from(("unfused", "auto", "fused", "sequence", "megakernel"))


def by_numpy(program: RecordProgram) -> list[bytes]:
    held = program.contents()
    for text, views in program.submissions:
        run_function(define(text, "k"), as_range(N), [view.of(held[view.buffer]) for view in views])
    return [array.tobytes() for array in held]


def fields(array: Array) -> list[bytes]:
    """What ``array`` holds, without the bytes between fields, which a Buffer of its own has not."""
    names = array.dtype.names
    if names is None:
        return [array.tobytes()]
    return [held for name in names for held in fields(array[name])]


def by(target: str | None, program: RecordProgram, strategy: Any, holder: str) -> list[bytes]:
    arrays = program.contents()
    held: Sequence[Any] = arrays
    if holder != "array":
        held = [fq.Buffer(array, copy=holder == "copied") for array in arrays]
    with fq.FusionQueue(target) as queue:
        with fq.fusion(queue, strategy=strategy):
            for text, views in program.submissions:
                arguments = [view.of(held[view.buffer]) for view in views]
                queue.submit(kernel(define(text, "k")), N, *arguments)
        queue.wait()
        return [contents(h).tobytes() for h in (held if holder == "copied" else arrays)]


@examples(60)
@given(record_programs(), STRATEGIES, st.sampled_from(("array", "buffer")))
def test_the_reference_leaves_what_numpy_does(
    program: RecordProgram, strategy: Any, holder: str
) -> None:
    assert by("reference", program, strategy, holder) == by_numpy(program)


@needs_device
@examples(12)
@given(record_programs(), STRATEGIES)
def test_the_device_leaves_what_numpy_does(program: RecordProgram, strategy: Any) -> None:
    assert by(None, program, strategy, "buffer") == by_numpy(program)
