"""The user's key: entries of the disk cache are signed with it, since they hold code for devices.

It lies in the user's data directory, not with the entries: who can write to the cache, or has got a
copy of one, cannot make an entry that is loaded.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import stat
from functools import lru_cache
from pathlib import Path

from platformdirs import user_data_path

_LENGTH = 32
_NAME = "cache.key"


def signature(directory: Path, *parts: bytes) -> str:
    """HMAC-SHA256 (RFC 2104; hex) of ``parts`` with the user's key; ``directory`` is the cache's,
    which has the key where the user has no writable data directory."""
    message = b"\0".join(parts)
    return hmac.digest(_key(_data_directory(), directory), message, "sha256").hex()


@lru_cache(maxsize=8)
def _key(*directories: Path) -> bytes:
    """The key in the first of ``directories`` that has one or takes one; else this process's."""
    for directory in directories:
        path = directory / _NAME
        found = _read(path) or _made(path)
        if found is not None:
            return found
    return os.urandom(_LENGTH)


def _read(path: Path) -> bytes | None:
    """The key; None where there is none that only this user can read and write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
            if not mine or not stat.S_ISREG(about.st_mode) or about.st_mode & 0o077:
                return None
            key = file.read(_LENGTH + 1)
    except OSError:
        return None
    return key if len(key) == _LENGTH else None


def _made(path: Path) -> bytes | None:
    """A new key in place of what is there; that of another process that was faster."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(os.urandom(_LENGTH))
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
                return _read(path)
            if _read(path) is None:  # there is something that is no key of this user's
                os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    except OSError:
        return None
    return _read(path)


def _data_directory() -> Path:
    return user_data_path("fusionq", appauthor=False)
