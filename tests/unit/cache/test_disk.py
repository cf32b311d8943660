"""The store: what comes back, what counts as missing, how much it holds."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.base.config import DEFAULT_CACHE_BYTES, disk_cache_settings
from fusionq.cache import disk
from fusionq.cache.disk import BUCKETS, FORMAT, DiskStore, Usage, disk_store


def key_of(number: int, bucket: str | None = None) -> str:
    digits = hashlib.sha256(str(number).encode()).hexdigest()
    return digits if bucket is None else bucket + digits[1:]


KEY = key_of(0)


def path_of(directory: Path, key: str = KEY, kind: str = "plan") -> Path:
    return directory / FORMAT / key[0] / f"{key}.{kind}"


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("contents", [b"", b"x", b"line\nline\n\0\xff", bytes(10_000)])
def test_what_was_put_comes_back(store: DiskStore, contents: bytes) -> None:
    store.put(KEY, "plan", contents)
    assert DiskStore(store.directory, 1).get(KEY, "plan") == contents


def test_what_was_not_put_is_missing(store: DiskStore) -> None:
    assert store.get(KEY, "plan") is None
    store.put(KEY, "plan", b"x")
    assert store.get(KEY, "program") is None
    assert store.get(key_of(1), "plan") is None
    assert files(store.directory) == [path_of(store.directory)]


def test_the_latest_put_is_what_comes_back(store: DiskStore) -> None:
    for contents in (b"first and longer", b"second", b""):
        store.put(KEY, "plan", contents)
        assert store.get(KEY, "plan") == contents


def test_only_the_user_can_read_and_write_entries(store: DiskStore) -> None:
    store.put(KEY, "plan", b"x")
    path = path_of(store.directory)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# ---------------------------------------------------------------------- damaged and foreign
def damaged(data: bytes) -> dict[str, bytes]:
    header, _, contents = data.partition(b"\n")
    words = header.split(b" ")
    return {
        "zero bytes": b"",
        "truncated": data[:-1],
        "truncated header": data[: len(header) // 2],
        "header only": header,
        "longer": data + b"x",
        "a bit flipped": data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        "a bit of the header flipped": bytes([data[0] ^ 1]) + data[1:],
        "foreign text": b"hello\nworld\n",
        "foreign binary": bytes(range(256)) * 10,
        "a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
        "another format": data.replace(FORMAT.encode(), b"v0", 1),
        "another program's": data.replace(b"fusionq", b"nofusion", 1),
        "another kind": data.replace(b" plan ", b" check ", 1),
        "another key": header.replace(words[3], b"0" * 64) + b"\n" + contents,
        "another digest": header.replace(words[4], b"0" * 64) + b"\n" + contents,
        "no newline": data.replace(b"\n", b" "),
    }


@pytest.mark.parametrize(
    "how", damaged(b"fusionq v2 plan " + b"k" * 64 + b" " + b"d" * 64 + b"\nc")
)
def test_a_damaged_or_foreign_file_is_missing_and_replaced(store: DiskStore, how: str) -> None:
    store.put(KEY, "plan", b"some contents")
    path = path_of(store.directory)
    changed = damaged(path.read_bytes())[how]
    path.write_bytes(changed)
    assert store.get(KEY, "plan") is None
    assert not path.exists()
    store.put(KEY, "plan", b"again")
    assert store.get(KEY, "plan") == b"again"


def test_an_entry_under_another_name_is_missing(store: DiskStore) -> None:
    store.put(KEY, "plan", b"x")
    other = key_of(1)
    path_of(store.directory, other).parent.mkdir(exist_ok=True)
    os.replace(path_of(store.directory), path_of(store.directory, other))
    assert store.get(other, "plan") is None


def test_what_is_no_file_is_missing(store: DiskStore) -> None:
    path = path_of(store.directory)
    path.mkdir(parents=True)
    assert store.get(KEY, "plan") is None
    path.rmdir()
    path.symlink_to(path)  # a loop
    assert store.get(KEY, "plan") is None
    path.unlink()
    path.symlink_to("nowhere")
    assert store.get(KEY, "plan") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
def test_a_pipe_is_missing_and_nobody_waits_for_it(store: DiskStore) -> None:
    path = path_of(store.directory)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert store.get(KEY, "plan") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
def test_another_users_file_is_missing(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, "plan", b"x")
    monkeypatch.setattr(os, "fstat", other_owner(os.fstat, os.getuid() + 1))
    assert store.get(KEY, "plan") is None
    monkeypatch.setattr(os, "fstat", other_owner(os.stat, 0))
    assert store.get(KEY, "plan") == b"x"


def other_owner(original, uid):
    def changed(descriptor):
        about = list(original(descriptor))
        about[stat.ST_UID] = uid
        return os.stat_result(about)

    return changed


# ------------------------------------------------------------------ directories that refuse
def warned(action) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if w.category is RuntimeWarning]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EROFS, "Read-only file system"),
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
    ],
    ids=lambda error: error.strerror,
)
def test_where_nothing_can_be_written_it_says_so_once(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    store.put(KEY, "plan", b"kept")
    original = os.open

    def refuse(path, flags, *mode, **options):
        if flags & os.O_WRONLY:
            raise error
        return original(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", refuse)
    (message,) = warned(lambda: [store.put(key_of(k), "plan", b"x") for k in (1, 2, 3)])
    assert str(store.directory) in message
    assert error.strerror in message
    assert "FUSIONQ_CACHE=off" in message
    assert store.get(KEY, "plan") == b"kept"
    assert files(store.directory) == [path_of(store.directory)]


def test_a_disk_that_fills_while_writing_leaves_nothing(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert len(warned(lambda: store.put(KEY, "plan", b"x"))) == 1
    assert files(store.directory) == []


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    store = DiskStore(tmp_path / "file", 1 << 20)
    assert store.get(KEY, "plan") is None
    assert len(warned(lambda: store.put(KEY, "plan", b"x"))) == 1
    assert store.usage() == {}
    assert store.clear() == 0
    assert (tmp_path / "file").read_text() == "not a directory"


READ_ONLY = """
import os, tempfile, warnings
from pathlib import Path
from fusionq.cache.disk import DiskStore

with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    os.chmod(folder, 0o777)
    if os.getuid() == 0:
        os.setuid(65534)  # root may write anywhere
    own = Path(folder) / "cache"
    bucket = own / "v2" / "a"
    store = DiskStore(own, 1 << 20)
    store.put("a" * 64, "plan", b"kept")
    for path in (bucket, bucket.parent, own):
        path.chmod(0o500)
    try:
        for key in ("a" * 64, "b" * 64, "a" * 63 + "b"):
            store.put(key, "plan", b"x")
        print([store.get(key, "plan") for key in ("a" * 64, "b" * 64)], len(caught))
    finally:
        for path in (own, bucket.parent, bucket):
            path.chmod(0o700)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="files have no owners")
def test_a_read_only_directory_can_be_read() -> None:
    command = [sys.executable, "-c", READ_ONLY]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "[b'kept', None] 1\n", done.stderr


def test_a_warning_that_is_an_error_elsewhere_breaks_nothing(
    tmp_path: Path, no_warnings: None
) -> None:
    (tmp_path / "file").write_text("not a directory")
    store = DiskStore(tmp_path / "file", 1 << 20)
    with pytest.raises(UserWarning):  # the caller's filter does turn warnings into errors
        warnings.warn("told", UserWarning, stacklevel=1)
    store.put(KEY, "plan", b"x")
    assert store.get(KEY, "plan") is None
    assert (tmp_path / "file").read_text() == "not a directory"


# --------------------------------------------------------------------------- how much
def put_many(store: DiskStore, numbers: range, nbytes: int, bucket: str = "0") -> None:
    for number in numbers:
        store.put(key_of(number, bucket), "plan", bytes(nbytes))
        age(store, number, bucket)


def age(store: DiskStore, number: int, bucket: str, now: float = 1.6e9) -> None:
    """Make entry ``number`` as old as its number says."""
    path = path_of(store.directory, key_of(number, bucket))
    if path.exists():
        os.utime(path, (now + number, now + number))


def held(store: DiskStore) -> int:
    return sum(used.nbytes for used in store.usage().values())


def test_the_size_stays_below_the_bound(directory: Path) -> None:
    store = DiskStore(directory, 320_000)
    for number in range(1000):
        store.put(key_of(number), "plan", bytes(1000))
        if number % 50 == 0:
            assert held(store) <= 320_000
    assert held(store) <= 320_000
    assert held(store) > 320_000 // 2
    assert {path.parent.name for path in files(directory)} == set(BUCKETS)


def test_the_least_recently_used_go_first(directory: Path) -> None:
    store = DiskStore(directory, 16 * 10_000)
    put_many(store, range(8), 1000)
    assert store.get(key_of(0, "0"), "plan") is not None  # used now: the youngest
    put_many(store, range(8, 10), 1000)
    assert store.get(key_of(0, "0"), "plan") is not None
    assert store.get(key_of(1, "0"), "plan") is None
    assert store.get(key_of(9, "0"), "plan") is not None


def test_other_processes_entries_count(directory: Path) -> None:
    first, second = DiskStore(directory, 16 * 10_000), DiskStore(directory, 16 * 10_000)
    for number in range(0, 400, 2):
        first.put(key_of(number, "0"), "plan", bytes(1000))
        second.put(key_of(number + 1, "0"), "plan", bytes(1000))
    assert held(first) <= 10_000 + 2 * 10_000 // 8 + 2 * 1200


def test_what_is_larger_than_the_bound_is_not_kept(directory: Path) -> None:
    store = DiskStore(directory, 160_000)
    store.put(key_of(1, "0"), "plan", b"x")
    store.put(key_of(0, "0"), "plan", bytes(10_000))
    assert store.get(key_of(0, "0"), "plan") is None
    assert store.get(key_of(1, "0"), "plan") == b"x"
    largest = 8750 - len(f"fusionq {FORMAT} plan {KEY} {KEY}\n")
    store.put(key_of(0, "0"), "plan", bytes(largest))
    for number in range(2, 10):
        store.put(key_of(number, "0"), "plan", bytes(largest))
        assert store.get(key_of(number, "0"), "plan") == bytes(largest)


def test_a_bound_of_nothing_keeps_nothing(directory: Path, no_warnings: None) -> None:
    store = DiskStore(directory, 0)
    store.put(KEY, "plan", b"")
    assert not directory.exists()


def test_what_killed_processes_left_is_removed(store: DiskStore) -> None:
    store.put(key_of(0, "0"), "plan", b"x")
    folder = path_of(store.directory, key_of(0, "0")).parent
    old, new = (folder / f".{key_of(k, '0')}.plan.123-abcdef01" for k in (1, 2))
    foreign = folder / "README"
    for path in (old, new, foreign):
        path.write_bytes(b"half of it")
    os.utime(old, (time.time() - 7200,) * 2)
    DiskStore(store.directory, 1 << 20).put(key_of(3, "0"), "plan", b"x")
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()


# --------------------------------------------------------------------- usage and clearing
def test_usage_by_kind(store: DiskStore) -> None:
    assert store.usage() == {}
    for number in range(3):
        store.put(key_of(number), "plan", b"x")
    store.put(KEY, "program", bytes(100))
    header = len(f"fusionq {FORMAT} plan {KEY} {KEY}\n")
    assert store.usage() == {
        "plan": Usage(3, 3 * (header + 1)),
        "program": Usage(1, header + 3 + 100),
    }


def test_clear_removes_all_entries_and_nothing_else(store: DiskStore) -> None:
    assert store.clear() == 0
    for number in range(20):
        store.put(key_of(number), "plan", b"x")
    mine = store.directory / "mine.txt"
    mine.write_text("keep")
    beside = path_of(store.directory).with_name("mine.plan")
    beside.write_text("keep")
    unfinished = path_of(store.directory).with_name(f".{KEY}.plan.1-00000000")
    unfinished.write_text("half")
    assert store.clear() == 20
    assert files(store.directory) == sorted([mine, beside])
    store.put(KEY, "plan", b"again")
    assert store.get(KEY, "plan") == b"again"


# --------------------------------------------------------------------------- settings
def test_on_by_default_in_the_directory_of_the_environment(directory: Path) -> None:
    store = disk_store()
    assert store is not None
    assert (store.directory, store.max_bytes) == (directory, DEFAULT_CACHE_BYTES)


def test_the_default_directory_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    from platformdirs import user_cache_path

    monkeypatch.delenv("FUSIONQ_CACHE_DIR")
    assert disk_cache_settings().directory == user_cache_path("fusionq", appauthor=False)
    monkeypatch.setenv("FUSIONQ_CACHE_DIR", "~/elsewhere")
    assert disk_cache_settings().directory == Path.home() / "elsewhere"


@pytest.mark.parametrize("text", ["off", "OFF", "0", "no", "false", " off "])
def test_switched_off_by_the_environment(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", text)
    assert disk_store() is None
    fq.set_disk_cache(enabled=True)
    assert disk_store() is not None


@pytest.mark.parametrize("text", ["on", "1", "", "yes"])
def test_the_program_goes_before_the_environment(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", text)
    monkeypatch.setenv("FUSIONQ_CACHE_SIZE", "3K")
    found = disk_store()
    assert found is not None
    assert found.max_bytes == 3 << 10
    fq.set_disk_cache(directory=tmp_path / "own", max_bytes=1000)
    found = disk_store()
    assert found is not None
    assert (found.directory, found.max_bytes) == (tmp_path / "own", 1000)
    fq.set_disk_cache(enabled=False)
    assert disk_store() is None
    fq.set_disk_cache()
    assert disk_store() is not None


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("0", 0), ("1000", 1000), ("512K", 512 << 10), ("64 MiB", 64 << 20), ("1.5g", 3 << 29)],
)
def test_sizes(text: str, nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE_SIZE", text)
    assert disk_cache_settings().max_bytes == nbytes


@pytest.mark.parametrize("text", ["many", "-1", "nan", "inf", "1T", "K", "1e99"])
def test_a_size_that_is_none_switches_the_cache_off_and_says_so_once(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE_SIZE", text)
    found = []
    (message,) = warned(lambda: found.extend([disk_store(), disk_store()]))
    assert found == [None, None]
    assert f"FUSIONQ_CACHE_SIZE={text!r}" in message
    with pytest.raises(fq.ArgumentError, match="number of bytes"):
        disk_cache_settings()


def test_a_word_that_is_neither_on_nor_off_switches_the_cache_off_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FUSIONQ_CACHE", "None")
    found = []
    (message,) = warned(lambda: found.append(disk_store()))
    assert found == [None]
    assert "FUSIONQ_CACHE='None' is neither on nor off" in message


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(fq.ArgumentError, match="-1"):
        fq.set_disk_cache(max_bytes=-1)


def test_the_store_is_the_same_for_the_same_settings() -> None:
    assert disk_store() is disk_store()
    assert disk._store.cache_info().currsize == 1
