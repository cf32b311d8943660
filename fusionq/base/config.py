"""Settings from the environment, and those that a program makes itself."""

from __future__ import annotations

import os
from functools import lru_cache
from operator import index
from pathlib import Path

from fusionq.base.call_site import argument_error
from fusionq.base.errors import ArgumentError
from fusionq.base.frozen import dataclass
from fusionq.base.options import Check
from fusionq.base.units import parse_quantity

DEFAULT_CACHE_BYTES = 256 << 20
DEFAULT_PLANNING_SECONDS = 1.0
_OFF = ("off", "0", "no", "false")
_ON = ("on", "1", "yes", "true")


def debug_level() -> int:
    """``FUSIONQ_DEBUG``: 0 (nothing, the default), 1 (the report of each new fusion on standard
    error), 2 (also each pass's kernel before and after), 3 (also the analysis: access relations
    and dependences as isl prints them), 4 (also the device source).  Read at each call.

    ArgumentError for words that are no level.
    """
    text = os.environ.get("FUSIONQ_DEBUG", "").strip().lower()
    if text in ("", *_OFF):
        return 0
    if text in _ON:
        return 1
    if not text.isdecimal():
        raise ArgumentError(f"FUSIONQ_DEBUG={text!r} is no level; write 0, 1, 2, 3 or 4")
    return int(text)


def always_checked() -> Check:
    """``FUSIONQ_CHECK``: what of every access of every kernel is tested on the device, as ``check``
    says in ``fusion()``: ``1`` for True, or ``initialized``.  Read whenever launches are prepared.

    ArgumentError for other words.
    """
    text = os.environ.get("FUSIONQ_CHECK", "").strip().lower()
    if text == "initialized":
        return "initialized"
    if text in ("", *_OFF):
        return False
    if text not in _ON:
        raise ArgumentError(
            f"FUSIONQ_CHECK={text!r} says nothing that can be checked; write 1, initialized or 0"
        )
    return True


def adapts() -> bool | None:
    """``FUSIONQ_ADAPT``: whether ``strategy="auto"`` learns from the times of runs where a fusion
    does not say; None: on CPUs and NVIDIA GPUs.  Read whenever a list is prepared.

    ArgumentError for words that are neither on nor off.
    """
    return _switch("FUSIONQ_ADAPT")


def _switch(name: str) -> bool | None:
    """Whether a variable switches something on or off; None where it is not set."""
    text = os.environ.get(name, "").strip()
    if text.lower() in (*_ON, *_OFF):
        return text.lower() in _ON
    if text:
        raise ArgumentError(f"{name}={text!r} is neither on nor off; write 1 or 0")
    return None


def keeps_apart() -> bool:
    """``FUSIONQ_THREADS``: ``free`` where threads of fusionq run on whatever processor the system
    puts them on; else they leave those alone that a device's runtime keeps threads of its own to.
    Read when such a thread starts.

    ArgumentError for other words.
    """
    text = os.environ.get("FUSIONQ_THREADS", "").strip().lower()
    if text not in ("", "apart", "free"):
        raise ArgumentError(f"FUSIONQ_THREADS={text!r} is neither apart nor free; write one")
    return text != "free"


def planning_seconds() -> float:
    """``FUSIONQ_PLANNING_SECONDS``: the seconds of processor time that planning may keep a new list
    from its first result, beside what the list itself takes; 1 by default, ``inf`` for as long as
    it takes.  Read whenever a list is planned.

    ArgumentError where it is no number of seconds.
    """
    text = os.environ.get("FUSIONQ_PLANNING_SECONDS", "").strip()
    try:
        seconds = float(text or DEFAULT_PLANNING_SECONDS)
        if not seconds >= 0:
            raise ValueError(text)
    except ValueError:
        raise ArgumentError(
            f"FUSIONQ_PLANNING_SECONDS={text!r} is no number of seconds; write such as 0.5, 10 or "
            "inf"
        ) from None
    return seconds


@dataclass(frozen=True, slots=True)
class DiskCacheSettings:
    """Where plans and programs are kept between processes, and how many bytes they may take."""

    directory: Path
    enabled: bool
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What the program has set; None for what the environment decides."""

    enabled: bool | None = None
    directory: Path | None = None
    max_bytes: int | None = None


_chosen = _Chosen()


def set_disk_cache(
    *,
    enabled: bool | None = None,
    directory: str | os.PathLike[str] | None = None,
    max_bytes: int | None = None,
) -> None:
    """Switch the disk cache on or off, put it elsewhere, or bound its size, for this process.

    Goes before ``FUSIONQ_CACHE``, ``FUSIONQ_CACHE_DIR`` and ``FUSIONQ_CACHE_SIZE``, which
    decide what is None here.  ArgumentError for what is no size, path or flag.
    """
    global _chosen
    if enabled is not None and not isinstance(enabled, bool):
        raise argument_error(f"enabled is True, False or None, not {enabled!r}")
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise argument_error(f"directory is a path, not {type(directory).__name__}")
    if max_bytes is not None:
        try:
            max_bytes = index(max_bytes)
        except TypeError:
            raise argument_error(
                f"max_bytes is an int, a number of bytes, not {max_bytes!r}; 64 << 20 is 64 MiB"
            ) from None
        if max_bytes < 0:
            raise argument_error(
                f"max_bytes is a number of bytes, not {max_bytes}; 0 keeps nothing"
            )
    _chosen = _Chosen(enabled, None if directory is None else Path(directory), max_bytes)


def disk_cache_enabled() -> bool:
    """Whether plans and programs are kept on disk: as ``set_disk_cache`` says, else unless
    ``FUSIONQ_CACHE`` is off.  ArgumentError where that is neither on nor off."""
    if _chosen.enabled is not None:
        return _chosen.enabled
    return _switch("FUSIONQ_CACHE") is not False


def disk_cache_settings() -> DiskCacheSettings:
    """The settings in force: those of ``set_disk_cache``, of the environment, the defaults.

    ArgumentError where ``FUSIONQ_CACHE_SIZE`` is no number of bytes, or ``FUSIONQ_CACHE`` neither
    on nor off.
    """
    return _settings(_chosen, *[os.environ.get(name) for name in _OF_DISK_CACHE])


_OF_DISK_CACHE = (
    "FUSIONQ_CACHE", "FUSIONQ_CACHE_DIR", "FUSIONQ_CACHE_SIZE", "XDG_CACHE_HOME", "HOME",
)  # fmt: skip
"""The variables that settings depend on; every new list asks for these."""


@lru_cache(maxsize=16)
def _settings(chosen: _Chosen, *environment: str | None) -> DiskCacheSettings:
    """The settings where the program has ``chosen`` so, by the present ``environment``."""
    directory, max_bytes = chosen.directory, chosen.max_bytes
    return DiskCacheSettings(
        _default_directory() if directory is None else directory,
        disk_cache_enabled(),
        _default_size() if max_bytes is None else max_bytes,
    )


def _default_directory() -> Path:
    given = os.environ.get("FUSIONQ_CACHE_DIR", "").strip()
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("fusionq", appauthor=False)


def _default_size() -> int:
    text = os.environ.get("FUSIONQ_CACHE_SIZE", "").strip()
    return parse_bytes(text, "FUSIONQ_CACHE_SIZE") if text else DEFAULT_CACHE_BYTES


def parse_bytes(text: str, what: str) -> int:
    """A number of bytes such as ``1000000``, ``512K``, ``64 MiB`` or ``1.5G`` (powers of 1024).

    ArgumentError, which names ``what``, for anything else.
    """
    number = text.strip().upper().removesuffix("IB").removesuffix("B").rstrip()
    try:
        value = parse_quantity(number, 1024)
        if value >= 1 << 50:
            raise ValueError(number)
    except (ValueError, OverflowError):
        raise ArgumentError(
            f"{what}={text!r} is no number of bytes; write such as 256M, 1G or 0"
        ) from None
    return value
