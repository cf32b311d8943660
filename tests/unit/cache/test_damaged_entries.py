"""Entries that are not what they should be: the run is as if they were not there."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache import entries
from fusionq.cache.disk import DiskStore, disk_store
from fusionq.cache.entries import kept_program
from tests.in_turn import is_whole
from tests.unit.cache.conftest import forget
from tests.unit.cache.programs import BASE, SECOND, changed, run, without_cache

PROGRAM = changed(tmp_flags={"promote_private": True}, shape=(9,))


def own_store() -> DiskStore:
    found = disk_store()
    assert found is not None
    return found


def kept(directory: Path, kind: str = "*") -> list[Path]:
    return sorted(directory.glob(f"v2/*/*.{kind}"))


def contents_of(path: Path) -> bytes:
    found = own_store().get(path.stem, path.suffix[1:])
    assert found is not None
    return found


def replace_contents(path: Path, contents: bytes) -> None:
    """Another entry under the same key, whole as a file."""
    own_store().put(path.stem, path.suffix[1:], contents)


@pytest.fixture
def target_queue(target: str | None) -> Iterator[fq.FusionQueue]:
    with fq.FusionQueue(target) as made:
        yield made


OTHER_KEY = "0" * 64
OTHER_ENTRY = (
    f"fusionq v2 plan {OTHER_KEY} {hashlib.sha256(b'[]').hexdigest()}\n[]".encode()
)  # fmt: skip

DAMAGE: dict[str, Callable[[Path], object]] = {
    "zero bytes": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "another entry": lambda path: path.write_bytes(OTHER_ENTRY),
    "removed": lambda path: path.unlink(),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_files(how: str, target_queue: fq.FusionQueue, directory: Path) -> None:
    expected = without_cache(PROGRAM, target_queue).out
    run(PROGRAM, target_queue)
    count = len(kept(directory))
    for path in kept(directory):
        DAMAGE[how](path)
    forget()
    again = run(PROGRAM, target_queue)
    assert again.cache == "miss"
    assert np.array_equal(again.out, expected)
    if how != "a directory":
        forget()
        assert run(PROGRAM, target_queue).cache == "disk"
        assert len(kept(directory)) == count


@pytest.mark.parametrize("kind", ["check", "plan", "program"])
def test_one_kind_missing(kind: str, target_queue: fq.FusionQueue, directory: Path) -> None:
    """Each kind is of use without the others."""
    ran = run(PROGRAM, target_queue)
    for path in kept(directory, kind):
        path.unlink()
    forget()
    again = run(PROGRAM, target_queue)
    assert again.cache == ("miss" if kind == "plan" else "disk")
    assert np.array_equal(again.out, ran.out)


FOREIGN = [
    b"", b"\n", b"{}", b"[]", b"null", b"[[]]", b'["Plan"]', b"5", b'"x"', b"NaN", b"\xff\xfe",
    b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"\x80\x04.", b"cos\nsystem\n(S'true'\ntR.",
]  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("contents", FOREIGN, ids=lambda c: repr(c[:12]))
def test_whole_files_with_foreign_contents(
    contents: bytes, target_queue: fq.FusionQueue, directory: Path
) -> None:
    expected = run(PROGRAM, target_queue).out
    for path in kept(directory):
        replace_contents(path, contents)
    forget()
    again = run(PROGRAM, target_queue)
    assert again.cache == "miss"
    assert np.array_equal(again.out, expected)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, item in (
        enumerate(data)
        if isinstance(data, list)
        else data.items()
        if isinstance(data, dict)
        else ()
    ):
        yield from places(item, (*path, key))


def with_other(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = list(data) if isinstance(data, list) else dict(data)
    copy[path[0]] = with_other(copy[path[0]], path[1:], value)
    return copy


EVIL = "__import__('os').abort()"
OTHER = (None, "x", 10**30, -1, 2.5, [], {}, ["Store", 1], EVIL)


@pytest.mark.parametrize("kind", ["check", "plan"])
def test_whole_files_with_one_wrong_value(
    kind: str, queue: fq.FusionQueue, directory: Path
) -> None:
    """Wherever something else stands, the run neither fails nor computes anything else."""
    expected = run(PROGRAM, queue).out
    choose = random.Random(7)
    for path in kept(directory, kind):
        contents = contents_of(path)
        data = json.loads(contents)
        candidates = [
            (place, other)
            for place in places(data)
            for other in OTHER
            if not is_another_value(data, place, other)
        ]
        refused = 0
        tried = 60 if is_whole() else 20
        for place, other in choose.sample(candidates, tried):
            replace_contents(path, json.dumps(with_other(data, place, other)).encode())
            forget()
            ran = run(PROGRAM, queue)
            assert np.array_equal(ran.out, expected), (place, other)
            refused += ran.cache == "miss"
        assert kind == "check" or refused > tried * 2 // 3
        replace_contents(path, contents)


def is_another_value(data: Any, place: tuple[Any, ...], other: Any) -> bool:
    """Whether what stands there may be another of its kind, and the entry a whole one of another
    program: a number for a number, a name for a name."""
    for key in place:
        data = data[key]
    return type(data) is type(other) and isinstance(other, (int, float, str)) and other != EVIL


# --------------------------------------------------------------------------- never code
def with_condition(data: Any, condition: str) -> Any:
    """The data with another condition in every Validity."""
    if isinstance(data, dict):
        return {key: with_condition(item, condition) for key, item in data.items()}
    if not isinstance(data, list):
        return data
    if data[:1] == ["Validity"]:
        return [*data[:4], [["Condition", condition, [], [[]]]], *data[5:]]
    return [with_condition(item, condition) for item in data]


def test_a_condition_is_never_evaluated_unchecked(
    queue: fq.FusionQueue, directory: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "executed"
    expected = run(PROGRAM, queue).out
    for path in (*kept(directory, "check"), *kept(directory, "plan")):
        data = json.loads(contents_of(path))
        trapped = with_condition(data, f"[open({str(trap)!r}, 'w')] != []")
        assert trapped != data
        replace_contents(path, json.dumps(trapped).encode())
    forget()
    again = run(PROGRAM, queue)
    assert not trap.exists()
    assert again.cache == "miss"
    assert np.array_equal(again.out, expected)


def test_nothing_is_unpickled_or_executed(queue: fq.FusionQueue, monkeypatch) -> None:
    """On a warm start, the only text that is evaluated is a condition that the grammar passed and
    annotations of fusionq's own sources."""
    import builtins
    import marshal
    import pickle

    from fusionq.cache.condition import is_condition

    conditional = changed(second=SECOND.replace("a[i]", "a[i % 7]"))
    run(conditional, queue)
    forget()
    evaluated: list[object] = []
    original = builtins.compile

    def watched(source, file, *more, **options):
        if file == "<validity>":
            evaluated.append(source)
        return original(source, file, *more, **options)

    def forbidden(*arguments, **options):
        raise AssertionError("entries are data")

    for module, name in ((pickle, "loads"), (pickle, "load"), (marshal, "loads")):
        monkeypatch.setattr(module, name, forbidden)
    from fusionq.analysis import validity_function

    validity_function.condition_function.cache_clear()
    monkeypatch.setattr(builtins, "compile", watched)
    assert run(conditional, queue).cache == "disk"
    assert evaluated
    for source in evaluated:
        assert isinstance(source, str)
        names, text = source.removeprefix("lambda ").split(": ", 1)
        assert is_condition(text, names.split(", "))


# ------------------------------------------------------------------------------ programs
def test_a_program_without_binary_is_built_from_its_source(
    target_queue: fq.FusionQueue, directory: Path, nothing_is_compiled
) -> None:
    expected = run(PROGRAM, target_queue).out
    for path in kept(directory, "program"):
        head, _, _ = contents_of(path).partition(b"\n")
        replace_contents(path, head + b"\n")
    forget()
    nothing_is_compiled()
    again = run(PROGRAM, target_queue)
    assert again.cache == "disk"
    assert np.array_equal(again.out, expected)


@pytest.mark.parametrize("binary", [b"x", bytes(100), b"\x7fELF" + bytes(300)], ids=repr)
def test_a_binary_that_the_runtime_refuses(
    binary: bytes, target_queue: fq.FusionQueue, directory: Path
) -> None:
    expected = run(PROGRAM, target_queue).out
    for path in kept(directory, "program"):
        head, _, _ = contents_of(path).partition(b"\n")
        replace_contents(path, head + b"\n" + binary)
    forget()
    again = run(PROGRAM, target_queue)
    assert again.cache == "disk"
    assert np.array_equal(again.out, expected)


def test_a_program_of_another_kernel(target_queue: fq.FusionQueue, directory: Path) -> None:
    """Its arguments are none of the kernel's: it is built anew."""
    expected = run(PROGRAM, target_queue).out
    for path in kept(directory, "program"):
        contents = contents_of(path).replace(b'"Pointer", "', b'"Pointer", "no')
        replace_contents(path, contents)
    forget()
    assert np.array_equal(run(PROGRAM, target_queue).out, expected)


def test_a_program_without_the_kernel_that_it_names(
    target_queue: fq.FusionQueue, directory: Path
) -> None:
    """The runtime would look for it in vain, and take the process down."""
    expected = run(PROGRAM, target_queue).out
    for path in kept(directory, "program"):
        head, _, binary = contents_of(path).partition(b"\n")
        data = json.loads(head)
        data[data.index(next(word for word in data[2:] if isinstance(word, str)))] = "x"
        replace_contents(path, json.dumps(data).encode() + b"\n" + binary)
    forget()
    assert np.array_equal(run(PROGRAM, target_queue).out, expected)


def test_what_cannot_be_kept_is_not(queue: fq.FusionQueue, monkeypatch, directory: Path) -> None:
    def refuse(value: object) -> Any:
        raise TypeError("cannot be kept")

    monkeypatch.setattr(entries, "encode", refuse)
    expected = without_cache(BASE, queue).out
    ran = run(BASE, queue)
    assert ran.cache == "miss"
    assert np.array_equal(ran.out, expected)
    assert kept(directory) == []


def test_programs_are_looked_up_by_kernel_and_mode(
    target_queue: fq.FusionQueue, directory: Path
) -> None:
    backend = target_queue._state.launcher.backend
    if not backend.abilities.keeps_programs:
        assert run(PROGRAM, target_queue).report.plan.stages
        assert kept(directory, "program") == []
        return
    (stage,) = run(PROGRAM, target_queue).report.plan.stages
    assert kept_program(backend, stage.kernel, "strict") is not None
    assert kept_program(backend, stage.kernel, "fast") is None
