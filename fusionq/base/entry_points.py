"""What packages register by entry points: backends and dialects of kernels.

Those of fusionq itself stand in a table here too, which is looked up first.  So they work where
the installed metadata is older than the source, or is not there at all, and ``importlib.metadata``
is not imported for them; nobody else's package can take their names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from fusionq.base.errors import DeviceError
from fusionq.base.frozen import dataclass

Group = Literal["fusionq.backends", "fusionq.dialects"]


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """``reference``: ``module:attribute``, as in an entry point.  ``package``: what an extra
    installs and it is of no use without, if anything."""

    reference: str
    package: str | None = None


BUILT_IN: dict[Group, dict[str, _BuiltIn]] = {
    "fusionq.backends": {
        "sycl": _BuiltIn("fusionq.backends.sycl.platform:PLATFORM"),
        "reference": _BuiltIn("fusionq.backends.reference.platform:PLATFORM"),
        "cuda": _BuiltIn("fusionq.backends.cuda.platform:PLATFORM", "cuda"),
        "dpex": _BuiltIn("fusionq.dpex.platform:PLATFORM", "numba_dpex"),
    },
    "fusionq.dialects": {
        "numba_dpex": _BuiltIn("fusionq.dpex.dialect:DIALECT", "numba_dpex"),
    },
}
"""As in pyproject.toml, by group and name."""


def registered(group: Group, name: str) -> Any:
    """The object that is registered under ``name``; None if there is none.

    DeviceError where the package that registers it cannot be imported.
    """
    own = BUILT_IN[group].get(name)
    if own is not None:
        module, _, attribute = own.reference.partition(":")
        return getattr(import_module(module), attribute)
    entry = _of_other_packages(group).get(name)
    if entry is None:
        return None
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise DeviceError(
            f"the entry point {name!r} of the group {group!r} cannot be loaded: {entry.value} "
            f"({error}); reinstall or remove the package that registers it"
            + (f", {entry.dist.name}" if entry.dist else "")
        ) from error


def names(group: Group) -> Iterator[str]:
    """What is registered, fusionq's own first, without what needs a package that is missing."""
    own = BUILT_IN[group]
    for name, built_in in own.items():
        if built_in.package is None or find_spec(built_in.package) is not None:
            yield name
    yield from (name for name in _of_other_packages(group) if name not in own)


@functools.cache
def _of_other_packages(group: Group) -> dict[str, Any]:
    """Each ``importlib.metadata.EntryPoint`` of the group, by its name."""
    from importlib import metadata  # slow to import, and fusionq's own do without

    return {entry.name: entry for entry in metadata.entry_points(group=group)}
