"""Files that keep results between processes: found by key, checked when read, bounded in size.

An entry is one file under ``<directory>/v2/<first digit of the key>/``: a header line (format,
key, sha256 and signature) and the contents.  It is written under another name and then moved
into place, so that no reader sees half of it, and no writer waits for another: there are no
locks.  Whatever is wrong with an entry or the directory, the answer is that there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path

from fusionq.base.config import DiskCacheSettings, disk_cache_enabled, disk_cache_settings
from fusionq.base.errors import ArgumentError
from fusionq.base.frozen import dataclass
from fusionq.cache.user_key import signature

FORMAT = "v2"
"""Of the files and their arrangement; what they hold has its version in the key."""

BUCKETS = "0123456789abcdef"
"""Directories by the key's first digit, each bounded by its share of the size: what makes room
in one never reads the others."""

_DIGITS = 32
"""Of the sha256 of an entry's contents, and of the signature: 128 bits each."""

_ENTRY = re.compile(r"[0-9a-f]{64}\.[a-z]+")
_UNFINISHED = re.compile(r"\.[0-9a-f]{64}\.[a-z]+\.[0-9]+-[0-9a-f]+")
_UNFINISHED_SECONDS = 3600.0
"""After which a file under its temporary name is what a killed process has left."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How many entries of one kind there are, and the bytes they take."""

    entries: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class DiskStore:
    """The entries in one directory; beyond ``max_bytes`` the least recently used go.

    Several processes that write at once may each exceed it by an eighth before they notice.
    """

    directory: Path
    max_bytes: int
    _room: dict[str, int] = field(default_factory=dict)
    """Bytes that this process may add to a bucket before it counts again what is there."""
    _broken: bool = False

    def get(self, key: str, kind: str) -> bytes | None:
        """The contents under ``key`` (64 hexadecimal digits), or None; they count as used now."""
        path = self._path(key, kind)
        try:
            # O_NONBLOCK: nothing may wait for whatever stands there instead of a file.
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            return None
        try:
            with open(descriptor, "rb") as file:
                about = os.fstat(descriptor)
                if not stat.S_ISREG(about.st_mode) or not _is_trusted(about):
                    return None
                data = file.read()
                contents = self._unwrapped(data, key, kind, _is_administrators(about))
                if contents is not None:
                    with contextlib.suppress(OSError):
                        os.utime(path)
                    return contents
        except OSError:
            return None
        _remove(path)
        return None

    def put(self, key: str, kind: str, contents: bytes) -> None:
        """Keep ``contents``, in place of what was there.  Where that fails, this process writes
        no more, and a warning says so once."""
        data = self._header(key, kind, contents) + b"\n" + contents
        if self._broken or len(data) > self._most_after_eviction:
            return
        path = self._path(key, kind)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.replace(temporary, path)
            except BaseException:
                _remove(temporary)
                raise
            self._make_room(path.parent, len(data))
        except OSError as error:
            self._broken = True
            _warn(
                f"the cache in {self.directory} cannot be written ({error.strerror or error}); "
                "what this process compiles is not kept.  Make room or allow it, set "
                "FUSIONQ_CACHE_DIR to another directory, or FUSIONQ_CACHE=off"
            )

    def remove(self, key: str, kind: str) -> None:
        """Forget what is kept under ``key``."""
        _remove(self._path(key, kind))

    def contents(self, kind: str) -> Iterator[bytes]:
        """The contents of each entry of ``kind``, in no order."""
        for entry in self._entries():
            key, _, own = entry.name.rpartition(".")
            if own == kind and (found := self.get(key, kind)) is not None:
                yield found

    def usage(self) -> dict[str, Usage]:
        """What there is, by kind."""
        found: dict[str, Usage] = {}
        for entry in self._entries():
            with contextlib.suppress(OSError):
                kind, size = entry.name.rpartition(".")[2], entry.stat().st_size
                before = found.get(kind, Usage())
                found[kind] = Usage(before.entries + 1, before.nbytes + size)
        return found

    def clear(self) -> int:
        """Remove all entries; how many."""
        removed = sum(_remove(entry.path) for entry in self._entries())
        for unfinished in self._unfinished():
            _remove(unfinished.path)
        self._room.clear()
        return removed

    @property
    def is_broken(self) -> bool:
        """Whether it was seen that nothing can be written."""
        return self._broken

    # ------------------------------------------------------------------------- inside
    def _path(self, key: str, kind: str) -> Path:
        return self.directory / FORMAT / key[0] / f"{key}.{kind}"

    def _header(self, key: str, kind: str, contents: bytes) -> bytes:
        """The first line of an entry's file; only this user's processes can make it."""
        start = _unsigned_header(key, kind, contents)
        return start + signature(self.directory, start)[:_DIGITS].encode()

    def _unwrapped(self, data: bytes, key: str, kind: str, by_administrator: bool) -> bytes | None:
        """The contents of an entry's file, or None if it is not what it should be; the
        administrator's need no signature of this user."""
        header, newline, contents = data.partition(b"\n")
        if by_administrator:
            found, expected = header[:-_DIGITS], _unsigned_header(key, kind, contents)
        else:
            found, expected = header, self._header(key, kind, contents)
        return contents if newline and compare_digest(found, expected) else None

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        for bucket in BUCKETS:
            yield from _files(self.directory / FORMAT / bucket, _ENTRY)

    def _unfinished(self) -> Iterator[os.DirEntry[str]]:
        for bucket in BUCKETS:
            yield from _files(self.directory / FORMAT / bucket, _UNFINISHED)

    @property
    def _share(self) -> int:
        """Bytes that one bucket may take."""
        return self.max_bytes // len(BUCKETS)

    @property
    def _most_after_eviction(self) -> int:
        """Bytes that stay at most where a full bucket has made room."""
        return self._share - self._share // 8

    def _make_room(self, bucket: Path, added: int) -> None:
        """Remove what was used least recently, and a little more, where the bucket is full."""
        room = self._room.get(bucket.name, -1) - added
        if room >= 0:
            self._room[bucket.name] = room
            return
        by_age = []
        for entry in _files(bucket, _ENTRY):
            with contextlib.suppress(OSError):
                about = entry.stat()
                by_age.append((about.st_mtime_ns, about.st_size, entry.path))
        total = sum(size for _, size, _ in by_age)
        if total > self._share:
            for _, size, path in sorted(by_age):
                _remove(path)
                total -= size
                if total <= self._most_after_eviction:
                    break
        self._room[bucket.name] = min(self._share - total, self._share // 8)
        now = time.time()
        for entry in _files(bucket, _UNFINISHED):
            with contextlib.suppress(OSError):
                if now - entry.stat().st_mtime > _UNFINISHED_SECONDS:
                    _remove(entry.path)


def _files(directory: Path, named: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if named.fullmatch(entry.name):
                    yield entry
    except OSError:
        return


def _remove(path: str | Path) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _is_trusted(about: os.stat_result) -> bool:
    """Whether the file is this user's or the administrator's: entries hold code for the device."""
    return not hasattr(os, "getuid") or about.st_uid in (os.getuid(), 0)


def _is_administrators(about: os.stat_result) -> bool:
    """Whether the file is the administrator's, who alone can write to it, and this user is
    another."""
    shared = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return hasattr(os, "getuid") and about.st_uid == 0 != os.getuid() and not shared


def _unsigned_header(key: str, kind: str, contents: bytes) -> bytes:
    digest = hashlib.sha256(contents).hexdigest()[:_DIGITS]
    return f"fusionq {FORMAT} {kind} {key} {digest}".encode()


# ---------------------------------------------------------------------- the process's own
@lru_cache(maxsize=8)
def _store(settings: DiskCacheSettings) -> DiskStore:
    return DiskStore(settings.directory, settings.max_bytes)


def disk_store() -> DiskStore | None:
    """The store by the settings in force; None where it is switched off."""
    try:
        settings = disk_cache_settings()
        return _store(settings) if settings.enabled else None
    except ArgumentError as error:
        with contextlib.suppress(ArgumentError):
            if not disk_cache_enabled():  # and nobody asks how large it may be
                return None
        _warn(f"{error}; until then, what this process compiles is not kept")
        return None


@lru_cache(maxsize=64)
def _warn(message: str) -> None:
    """Say ``message``, once.  No filter makes an exception of it: a cache breaks no run."""
    with contextlib.suppress(Warning):
        warnings.warn(f"fusionq: {message}", RuntimeWarning, stacklevel=2)
