"""What a new process finds on disk: all that the key holds decides, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.device_info import DeviceInfo
from fusionq.cache.disk import disk_store
from fusionq.cache.keys import code_version
from tests.unit.cache.conftest import forget
from tests.unit.cache.programs import (
    BASE,
    COPY,
    FIRST_2D,
    HELPER,
    SECOND,
    SECOND_2D,
    Program,
    changed,
    kernels,
    run,
    without_cache,
)
from tests.unit.frontend.running import define
from tests.unit.runtime.test_records import PARTICLE, gather, particles, push

NESTED = (
    "\ndef helper(x, factor):\n    return x + innermost(factor)\n\n"
    "def innermost(x):\n    return x{}\n"
)
DEFAULTS = "\ndef helper(x, factor, more={}):\n    return x + factor + more\n"
IDS = {
    "first": COPY.replace("get_id", "get_global_id"),
    "second": SECOND.replace("get_id", "get_global_id"),
}

DIFFERENT: dict[str, Program | tuple[Program, Program]] = {
    "kernel text": changed(first=COPY.replace("* C", "+ C")),
    "kernel text of the second": changed(second=SECOND.replace("helper(", "1 + helper(")),
    "kernel name": changed(first=COPY.replace("first", "other") + "\nfirst = other\n"),
    "a comment": changed(first=COPY.replace("* C", "* C  # a comment")),
    "an early return": changed(
        first=COPY.replace("    out", "    if i == 1:\n        return\n    out")
    ),
    "helper text": changed(helper=HELPER.replace("+", "-")),
    "helper of a helper": changed(helper=NESTED.format("")),
    "helper of a helper, another": changed(helper=NESTED.format(" * 2")),
    "default of a helper": changed(helper=DEFAULTS.format("0")),
    "default of a helper, another": changed(helper=DEFAULTS.format("1")),
    "constant": changed(constant=4),
    "constant's type": changed(constant=2.0),
    "constant's NumPy type": changed(constant=np.float32(2)),
    "constant, bool": changed(constant=True),
    "dtype": changed(dtype=np.float64),
    "dtype, integer": changed(dtype=np.int32, factor=3),
    "dtype of the buffer between": changed(tmp_dtype=np.float64),
    "scalar's type": changed(factor=np.float32(3.0)),
    "scalar, integer": changed(factor=3),
    "aliasing": changed(in_place=True),
    "overlapping views": changed(overlapping=True),
    "a strided view": changed(step=2),
    "dimensions": changed(first=FIRST_2D, second=SECOND_2D, shape=(3, 4)),
    "equal extents": (
        changed(first=FIRST_2D, second=SECOND_2D, shape=(3, 4)),
        changed(first=FIRST_2D, second=SECOND_2D, shape=(4, 4)),
    ),
    "order of the extents": (
        changed(first=FIRST_2D, second=SECOND_2D, shape=(3, 4)),
        changed(first=FIRST_2D, second=SECOND_2D, shape=(4, 3)),
    ),
    "work-groups": changed(**IDS, local=(4,)),
    "work-groups, another size": (changed(**IDS, local=(4,)), changed(**IDS, local=(6,))),
    "flag, private": changed(tmp_flags={"promote_private": True}),
    "flag, local": (
        changed(**IDS, local=(4,)),
        changed(**IDS, local=(4,), tmp_flags={"promote_local": True}),
    ),
    "flag, internal": changed(tmp_flags={"internal": True}),
    "flag of the access": changed(access={"promote": "private"}),
    "option strategy": changed(options={"strategy": "unfused"}),
    "option strategy, sequence": changed(options={"strategy": "sequence"}),
    "option strategy, megakernel": changed(options={"strategy": "megakernel"}),
    "option barriers": changed(options={"barriers": "all"}),
    "option require": changed(options={"require": True}),
    "option promote": changed(options={"promote": "none"}),
    "option fp": changed(options={"fp": "fast"}),
}


_OF_BASE: dict[str, Any] = {}


def base_result(queue: fq.FusionQueue) -> Any:
    """What ``BASE`` gives without a cache, once for each device."""
    device = queue.device.name
    if device not in _OF_BASE:
        _OF_BASE[device] = without_cache(BASE, queue).out
    return _OF_BASE[device]


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_the_key_holds(what: str, queue: fq.FusionQueue) -> None:
    different = DIFFERENT[what]
    programs = (BASE, different) if isinstance(different, Program) else different
    expected = [base_result(queue) if p is BASE else without_cache(p, queue).out for p in programs]
    for outcome in ("miss", "disk"):
        for program, out in zip(programs, expected, strict=True):
            forget()
            ran = run(program, queue)
            assert ran.cache == outcome
            assert np.array_equal(ran.out, out)
            assert ran.out.dtype == out.dtype


def test_what_the_key_holds_of_types_of_two_bytes(queue: fq.FusionQueue) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")
    bfloat16 = ml_dtypes.bfloat16
    programs = [
        changed(dtype=bfloat16),
        changed(dtype=np.float16),
        changed(dtype=np.uint16, factor=3),
        changed(constant=bfloat16(2)),
        changed(constant=np.float16(2)),
        changed(factor=bfloat16(3)),
        changed(factor=np.float16(3)),
    ]
    expected = [without_cache(program, queue).out for program in programs]
    for outcome in ("miss", "disk"):
        for program, out in zip(programs, expected, strict=True):
            forget()
            ran = run(program, queue)
            assert ran.cache == outcome
            np.testing.assert_array_equal(ran.out, out)
            assert ran.out.dtype == out.dtype


SAME = {
    "nothing": BASE,
    "size": changed(shape=(40,)),
    "large size": changed(shape=(4000,)),
    "scalar value": changed(factor=-0.5),
    "scalar nan": changed(factor=float("nan")),
    "file": changed(file="<elsewhere>"),
    "line": changed(line=100),
}


@pytest.mark.parametrize("what", SAME)
def test_what_the_key_does_not_hold(what: str, queue: fq.FusionQueue, nothing_is_compiled) -> None:
    expected = without_cache(SAME[what], queue, seed=1).out
    assert run(BASE, queue).cache == "miss"
    forget()
    nothing_is_compiled()
    again = run(SAME[what], queue, seed=1)
    assert again.cache == "disk"
    assert np.array_equal(again.out, expected, equal_nan=True)


def test_in_memory_goes_before_disk(queue: fq.FusionQueue) -> None:
    assert [run(BASE, queue).cache for _ in range(3)] == ["miss", "memory", "memory"]
    forget(queue)
    assert [run(BASE, queue).cache for _ in range(3)] == ["disk", "memory", "memory"]


def test_closure_constants(queue: fq.FusionQueue) -> None:
    def run_with(constant: int) -> tuple[str, list[int]]:
        @fq.kernel
        def put(item: fq.Item, out):
            out[item.get_id(0)] = constant

        out = fq.Buffer(3, np.int64)
        with fq.fusion(queue) as f:
            queue.submit(put, 3, out)
        assert f.event is not None
        f.event.wait()
        return f.report.cache, out.numpy().tolist()

    found = []
    for constant in (1, 2, 1, 2):
        forget()
        found.append(run_with(constant))
    assert found == [("miss", [1] * 3), ("miss", [2] * 3), ("disk", [1] * 3), ("disk", [2] * 3)]


# -------------------------------------------------------------------------------- devices
def another(value: object) -> object:
    """A device's property, differently."""
    if isinstance(value, bool):
        return not value
    if value == "reference":  # a kind
        return "accelerator"
    if isinstance(value, tuple):
        return (*value, 128)
    return value + 1 if isinstance(value, int) else f"another {value}"


@pytest.mark.parametrize("what", [field.name for field in fields(DeviceInfo)])
def test_another_device_or_driver(what: str) -> None:
    def run_on(info: DeviceInfo) -> str:
        forget()
        with fq.FusionQueue("reference") as queue:
            backend = queue._state.launcher.backend
            backend.target = replace(backend.target, device=info)
            return run(changed(dtype=np.int32, factor=3), queue).cache

    with fq.FusionQueue("reference") as queue:
        own = queue.device
    other = replace(own, **{what: another(getattr(own, what))})
    assert [run_on(info) for info in (own, other, own, other)] == ["miss", "miss", "disk", "disk"]


def test_another_version_of_fusionq(queue: fq.FusionQueue, monkeypatch) -> None:
    run(BASE, queue)
    monkeypatch.setattr("fusionq.base.version.__version__", "99.0")
    forget(), code_version.cache_clear()
    assert run(BASE, queue).cache == "miss"
    monkeypatch.undo()
    code_version.cache_clear()


# ----------------------------------------------------------------------- sizes and scalars
SHIFT = """
def second(item, a, factor, out):
    i = item.get_id(0)
    if i + factor < a.shape[0]:
        out[i] = a[i + factor] + 0 * helper(1, 1)
"""


def test_a_scalar_at_which_a_proof_changes(queue: fq.FusionQueue) -> None:
    """A second plan joins the first in the entry; both are found again, by any later process."""
    programs = [changed(second=SHIFT, factor=distance) for distance in (0, 1, 5, 0, 1, 2)]
    expected = [without_cache(program, queue).out for program in programs]
    for _ in range(2):
        for program, out in zip(programs, expected, strict=True):
            forget()
            assert np.array_equal(run(program, queue).out, out)
    for program in programs:
        forget()
        assert run(program, queue).cache == "disk"


SIZED = """
def first(item, a, out):
    i = item.get_id(0)
    if i < 20:
        out[i] = a[i] * C
"""
NEIGHBOUR = """
def second(item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[(i + 16) % a.shape[0]] + factor
"""


def test_sizes_at_which_a_proof_changes(queue: fq.FusionQueue) -> None:
    programs = [changed(first=SIZED, second=NEIGHBOUR, shape=(n,)) for n in (16, 12, 40, 8, 64)]
    expected = [without_cache(program, queue).out for program in programs]
    for _ in range(3):
        for program, out in zip(programs, expected, strict=True):
            forget()
            assert np.array_equal(run(program, queue).out, out)
    forget()
    assert run(programs[0], queue).cache == "disk"


def test_an_entry_holds_a_bounded_number_of_plans(queue: fq.FusionQueue) -> None:
    for distance in range(40):
        forget()
        run(changed(second=SHIFT, factor=distance, constant=1), queue)
    store = disk_store()
    assert store is not None
    assert store.usage()["plan"].entries <= 2
    assert store.usage()["plan"].nbytes < 100_000


# ---------------------------------------------------------------------- what is refused
BEYOND = """
def first(item, a, out):
    i = item.get_id(0)
    out[i] = a[i + C]
"""


def test_an_access_outside_is_refused_on_a_warm_start_too(queue: fq.FusionQueue) -> None:
    """What was found right for one size is not right for all."""
    text = "def stretch(item, a, out):\n    i = item.get_id(0)\n    out[i] = a[2 * i]\n"

    def submit(n: int, extent: int) -> None:
        a, out = fq.Buffer(np.ones(extent)), fq.Buffer(n, np.float64)
        queue.submit(fq.kernel(define(text)), n, a, out).wait()

    for _ in range(3):
        forget()
        submit(5, 10)
        with pytest.raises(fq.ArgumentError, match=r"a\[2 \* i\]"):
            submit(7, 10)
        forget()
        with pytest.raises(fq.ArgumentError):
            submit(7, 10)
        submit(5, 10)


def test_an_access_that_is_always_outside(queue: fq.FusionQueue) -> None:
    for _ in range(3):
        forget()
        with pytest.raises(fq.ArgumentError, match="first"):
            run(changed(first=BEYOND, constant=5), queue)


def test_an_int_that_does_not_fit_is_refused_on_a_warm_start_too(queue: fq.FusionQueue) -> None:
    fits = changed(dtype=np.int8, factor=5)
    for _ in range(2):
        forget()
        run(fits, queue)
        forget()
        with pytest.raises(fq.ArgumentError, match="300"):
            run(replace(fits, factor=300), queue)


def test_a_read_only_array_is_refused_on_a_warm_start_too(queue: fq.FusionQueue) -> None:
    array = np.zeros(4)
    text = "def put(item, out):\n    out[item.get_id(0)] = 1\n"
    for _ in range(2):
        forget()
        array.flags.writeable = True
        queue.submit(fq.kernel(define(text)), 4, array).wait()
        forget()
        array.flags.writeable = False
        with pytest.raises(fq.ArgumentError, match="read-only"):
            queue.submit(fq.kernel(define(text)), 4, array)


def test_a_wrong_number_of_arguments_is_refused_on_a_warm_start_too(queue: fq.FusionQueue) -> None:
    run(BASE, queue)
    forget()
    with pytest.raises(fq.ArgumentError, match="takes 2 arguments"):
        queue.submit(kernels(BASE)[0], 4, fq.Buffer(4, np.float32))


CONFLICT = changed(
    second=SECOND.replace("a[i]", "a[a.shape[0] - 1 - i]"),
    options={"require": True, "strategy": "fused"},
    shape=(5000,),
)


def test_require_is_refused_on_a_warm_start_too(queue: fq.FusionQueue) -> None:
    for _ in range(2):
        forget()
        with pytest.raises(fq.FusionRefused):
            run(CONFLICT, queue)
    forget()
    ran = run(replace(CONFLICT, options={"strategy": "sequence"}), queue)
    assert len(ran.report.stages) == 2


# ------------------------------------------------------------------------------- switched off
def entries() -> int:
    store = disk_store()
    assert store is not None
    return sum(used.entries for used in store.usage().values())


def test_off_reads_and_writes_nothing(queue: fq.FusionQueue, directory, monkeypatch) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    assert run(BASE, queue).cache == "miss"
    assert not directory.exists()
    monkeypatch.setenv("FUSIONQ_CACHE", "on")
    forget()
    run(BASE, queue)
    before = entries()
    assert before >= 3
    monkeypatch.setenv("FUSIONQ_CACHE", "off")
    forget()
    assert run(BASE, queue).cache == "miss"
    assert run(changed(constant=9), queue).cache == "miss"
    monkeypatch.setenv("FUSIONQ_CACHE", "on")
    assert entries() == before


def test_the_program_can_switch_it_off(queue: fq.FusionQueue, directory) -> None:
    fq.set_disk_cache(enabled=False)
    assert run(BASE, queue).cache == "miss"
    assert not directory.exists()


def test_another_directory_is_another_cache(queue: fq.FusionQueue, tmp_path) -> None:
    found = []
    for name in ("one", "two", "one", "two"):
        fq.set_disk_cache(directory=tmp_path / name)
        forget()
        found.append(run(BASE, queue).cache)
    assert found == ["miss", "miss", "disk", "disk"]


def test_who_watches_the_passes_sees_them(queue: fq.FusionQueue, monkeypatch, capsys) -> None:
    run(BASE, queue)
    monkeypatch.setenv("FUSIONQ_DEBUG", "2")
    forget()
    assert run(BASE, queue).cache == "miss"
    assert "first_second" in capsys.readouterr().err


@pytest.fixture
def full(directory) -> Iterator[None]:
    """A cache that holds next to nothing."""
    fq.set_disk_cache(max_bytes=16 * 300)
    yield


def test_a_cache_that_is_too_small_only_costs_time(queue: fq.FusionQueue, full: None) -> None:
    expected = without_cache(BASE, queue).out
    fq.set_disk_cache(max_bytes=16 * 300)
    for _ in range(3):
        forget()
        ran = run(BASE, queue)
        assert ran.cache == "miss"
        assert np.array_equal(ran.out, expected)


def test_records_of_another_layout_and_size_find_the_plan(
    queue: fq.FusionQueue, nothing_is_compiled
) -> None:
    for n, seed, padding in ((64, 0, 0), (50, 1, 16)):
        if padding:
            forget()
            nothing_is_compiled()
        dtype = np.dtype(
            {
                "names": PARTICLE.names,
                "formats": [PARTICLE[name] for name in PARTICLE.names],
                "offsets": [PARTICLE.fields[name][1] + padding for name in PARTICLE.names],
                "itemsize": PARTICLE.itemsize + padding,
            }
        )
        given = particles(seed, n).astype(dtype)
        p, tmp = fq.Buffer(given), fq.Buffer(n, dtype, promote_private=True)
        with fq.fusion(queue) as f:
            queue.submit(push, n, p, tmp)
            queue.submit(gather, n, tmp, p)
        assert f.report.cache == ("disk" if padding else "miss")
        doubled = given["x"] * 2
        last = doubled - (given["v"][:, 1] + given["x"]).astype(np.float32)
        np.testing.assert_array_equal(p["x"].numpy(), last)
