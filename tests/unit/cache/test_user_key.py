"""Entries are signed with the user's key: what somebody else has made is not loaded."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from fusionq.cache import user_key
from fusionq.cache.disk import DiskStore

KEY = "a" * 64


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data directory, without a key."""
    directory = tmp_path / "data"
    monkeypatch.setattr(user_key, "_data_directory", lambda: directory)
    user_key._key.cache_clear()
    yield directory
    user_key._key.cache_clear()


def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "cache", 1 << 20)


def entry(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "cache").glob("v2/*/*.program")
    return path


def again() -> None:
    """As another process of the same user would read the key."""
    user_key._key.cache_clear()


def test_the_key_is_made_once_and_is_the_users_alone(tmp_path: Path, data: Path) -> None:
    store(tmp_path).put(KEY, "program", b"code")
    key = data / "cache.key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    assert [p.name for p in data.iterdir()] == ["cache.key"]
    before = key.read_bytes()
    again()
    assert store(tmp_path).get(KEY, "program") == b"code"
    assert key.read_bytes() == before


@pytest.mark.parametrize("digest", [hashlib.sha256, hashlib.sha512])
def test_a_checksum_that_was_made_to_fit(tmp_path: Path, data: Path, digest) -> None:
    store(tmp_path).put(KEY, "program", b"code")
    start = entry(tmp_path).read_bytes().partition(b"\n")[0].rpartition(b" ")[0]
    forged = b"evil"
    entry(tmp_path).write_bytes(start + b" " + digest(forged).hexdigest().encode() + b"\n" + forged)
    assert store(tmp_path).get(KEY, "program") is None
    assert not list((tmp_path / "cache").glob("v2/*/*.program"))


def test_an_entry_under_another_name_or_of_another_kind(tmp_path: Path, data: Path) -> None:
    store(tmp_path).put(KEY, "program", b"code")
    header, _, rest = entry(tmp_path).read_bytes().partition(b"\n")
    for old, new, kind in ((b"a" * 64, b"b" * 64, "program"), (b"program", b"plan", "plan")):
        moved = header.replace(old, new)
        key = "b" * 64 if kind == "program" else KEY
        path = tmp_path / "cache" / "v2" / key[0] / f"{key}.{kind}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(moved + b"\n" + rest)
        assert store(tmp_path).get(key, kind) is None


def test_another_users_key(tmp_path: Path, data: Path) -> None:
    store(tmp_path).put(KEY, "program", b"code")
    (data / "cache.key").write_bytes(os.urandom(32))
    again()
    assert store(tmp_path).get(KEY, "program") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
@pytest.mark.parametrize(("mode", "found"), [(0o644, b"code"), (0o664, None), (0o646, None)])
def test_an_administrators_entry_that_others_can_write_needs_the_users_signature(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, mode: int, found: bytes | None
) -> None:
    store(tmp_path).put(KEY, "program", b"code")
    monkeypatch.setattr(os, "getuid", lambda: 1 + os.stat(tmp_path).st_uid)
    user_key._key.cache_clear()  # another user, who has another key
    made = os.fstat

    def administrators(descriptor: int) -> os.stat_result:
        about = list(made(descriptor))
        if about[stat.ST_SIZE] != len(b"x" * 32):  # an entry, no key
            about[stat.ST_UID] = 0
        return os.stat_result(about)

    monkeypatch.setattr(os, "fstat", administrators)
    entry(tmp_path).chmod(mode)
    assert store(tmp_path).get(KEY, "program") == found


@pytest.mark.parametrize("spoil", ["mode", "length", "link", "directory"])
def test_what_is_no_key_is_replaced_or_passed_over(tmp_path: Path, data: Path, spoil: str) -> None:
    data.mkdir()
    key = data / "cache.key"
    if spoil == "mode":
        key.write_bytes(b"x" * 32)
        key.chmod(0o644)
    elif spoil == "length":
        key.write_bytes(b"x" * 31)
        key.chmod(0o600)
    elif spoil == "link":
        other = tmp_path / "other"
        other.write_bytes(b"x" * 32)
        other.chmod(0o600)
        key.symlink_to(other)
    else:
        key.mkdir()
    store(tmp_path).put(KEY, "program", b"code")
    again()
    assert store(tmp_path).get(KEY, "program") == b"code"
    if spoil == "directory":
        assert (tmp_path / "cache" / "cache.key").exists()
    else:
        assert key.read_bytes() != b"x" * 32 and not key.is_symlink()


def test_without_any_directory_nothing_is_found_and_nothing_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(user_key, "_data_directory", lambda: blocked / "data")
    user_key._key.cache_clear()
    first = user_key.signature(blocked / "cache", b"x")
    assert first == user_key.signature(blocked / "cache", b"x")
    user_key._key.cache_clear()
    assert first != user_key.signature(blocked / "cache", b"x")
    user_key._key.cache_clear()
