"""Quantities with units, as people write and read them."""

from __future__ import annotations

_PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3}


def parse_quantity(text: str, step: int = 1000) -> int:
    """A whole number such as ``1000``, ``1_000``, ``1k``, ``1.5M`` or ``2G``; a prefix counts
    ``step`` times the one before it.  ValueError for anything else, and below 0."""
    number = text.strip()
    prefix = number[-1:] if number[-1:] in _PREFIXES else ""
    value = float(number.removesuffix(prefix)) * step ** _PREFIXES[prefix]
    if not 0 <= value < 1 << 62 or value != int(value):
        raise ValueError(f"{text!r} is no whole number")
    return int(value)


def shown(value: object) -> str:
    """``repr(value)``; of an integer with more digits than anyone reads, its size."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' * (len(value) == 1)})"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"about {'-' if value < 0 else ''}2**{value.bit_length() - 1}"
    return repr(value)


def format_seconds(seconds: float) -> str:
    """Seconds with three digits and a unit that suits their size."""
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def format_bytes(count: float, binary: bool = False) -> str:
    """Bytes with three digits and a unit that suits their number: of powers of 1000, or of 1024
    (``binary``), in which sizes of memory and caches are set."""
    step, units = (1024, ("KiB", "MiB", "GiB")) if binary else (1000, ("kB", "MB", "GB"))
    if abs(count) < step:
        return f"{count:.0f} B"
    scales = tuple((float(step**k), unit) for k, unit in enumerate(units, 1))
    return _scaled(count, scales[::-1])


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """``value`` in the largest unit of which it is at least one, else in the smallest."""
    if value == 0:
        return f"0 {units[-1][1]}"
    size, unit = next((u for u in units if abs(value) >= u[0]), units[-1])
    scaled = value / size
    digits = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
    return f"{scaled:.{digits}f} {unit}"
