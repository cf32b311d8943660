"""Backends and dialects of kernels that packages register by entry points."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.platform import Platform
from fusionq.backends.reference.backend import REFERENCE_DEVICE, ReferenceBackend
from fusionq.backends.registry import backend_for, list_devices
from fusionq.base import entry_points
from fusionq.base.entry_points import BUILT_IN, names, registered
from fusionq.frontend import dialect
from tests.unit.runtime.conftest import default_runtime

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
OTHER = "fusionq_tests_other"
"""The module of the package that ``other_package`` installs."""


@fq.kernel
def add_one(item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + np.float32(1)


class ForeignQueue:
    """A queue of another runtime."""


class ForeignKernel:
    """What another package's decorator makes of a function."""

    __module__ = f"{OTHER}.kernels"

    def __init__(self, function):
        self.function = function


class ForeignRange:
    """Another package's range."""

    __module__ = f"{OTHER}.ranges"

    def __init__(self, n):
        self.n = n


def _foreign_counterpart(obj):
    return fq.Range(obj.n) if isinstance(obj, ForeignRange) else obj


@pytest.fixture
def other_package(monkeypatch, tmp_path):
    """A package with a platform, a dialect, and entry points that lead nowhere, installed."""
    opened = []

    def open_queue(target, profiling):
        opened.append((target, profiling))
        return ReferenceBackend()

    module = ModuleType(OTHER)
    own = REFERENCE_DEVICE.__class__(
        **{**{n: getattr(REFERENCE_DEVICE, n) for n in REFERENCE_DEVICE.__slots__},
           "kind": "accelerator", "filter_string": "other:0"}
    )  # fmt: skip
    module.PLATFORM = Platform(
        open_queue, lambda: [own], lambda target: isinstance(target, ForeignQueue)
    )
    module.DIALECT = dialect.KernelDialect(
        lambda obj: add_one if isinstance(obj, ForeignKernel) else None, _foreign_counterpart
    )
    monkeypatch.setitem(sys.modules, OTHER, module)
    info = tmp_path / f"{OTHER}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {OTHER}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[fusionq.backends]\nother = {OTHER}:PLATFORM\nbroken = {OTHER}:MISSING\n"
        f"reference = {OTHER}:PLATFORM\n[fusionq.dialects]\n{OTHER} = {OTHER}:DIALECT\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(dialect, "_DIALECTS", dict(dialect._DIALECTS))
    entry_points._of_other_packages.cache_clear()
    yield SimpleNamespace(opened=opened)
    entry_points._of_other_packages.cache_clear()


# ------------------------------------------------------------------------ fusionq's own
def test_pyproject_registers_what_the_table_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = {group: {n: b.reference for n, b in own.items()} for group, own in BUILT_IN.items()}
    assert project["entry-points"] == table


@pytest.mark.parametrize("name", BUILT_IN["fusionq.backends"])
def test_the_table_leads_to_platforms(name):
    assert isinstance(registered("fusionq.backends", name), Platform)


def test_metadata_is_not_read_for_them(monkeypatch):
    """So an old installation's, or none at all, does no harm, and no time is spent on it."""

    def fail(**_):
        raise AssertionError("metadata was read")

    monkeypatch.setattr(metadata, "entry_points", fail)
    entry_points._of_other_packages.cache_clear()
    assert backend_for("reference").info == REFERENCE_DEVICE
    with fq.FusionQueue("reference") as queue:
        a, out = np.arange(4, dtype=np.float32), fq.Buffer(4, np.float32)
        queue.submit(add_one, 4, a, out)
        assert (out.numpy() == a + 1).all()


def test_the_reference_platform_has_one_device():
    with pytest.raises(fq.DeviceError, match="no 'reference:1'"):
        backend_for("reference:1")


NOTHING_OF_DPEX = """
import sys
import numpy as np
import fusionq as fq
from fusionq.backends.registry import list_devices

@fq.kernel
def double(item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + a[i]

for target in {info.filter_string for info in list_devices()} | {"reference"}:
    with fq.FusionQueue(target) as queue:
        a, b, out = np.ones(8, np.float32), fq.Buffer(8, np.float32), fq.Buffer(8, np.float32)
        with fq.fusion(queue):
            queue.submit(double, fq.Range(8), a, b)
            queue.submit(double, fq.Range(8), b, out)
        assert (out.numpy() == 4).all()
try:
    fq.FusionQueue("reference").submit(np.sin, 8)
except fq.ArgumentError:
    pass
print(sorted(name for name in sys.modules if "dpex" in name))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba_dpex") is not None, reason="numba-dpex is installed")
def test_nothing_of_numba_dpex_is_imported_without_its_extra(tmp_path):
    if default_runtime() == "cuda":
        pytest.skip("the default device reaches no NumPy arrays")
    script = tmp_path / "script.py"
    script.write_text(NOTHING_OF_DPEX)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_only_what_is_installed_is_named():
    missing = find_spec("numba_dpex") is None
    assert ("dpex" not in names("fusionq.backends")) is missing
    assert ("numba_dpex" not in names("fusionq.dialects")) is missing


# ------------------------------------------------------------------- of other packages
def test_a_target_selects_another_packages_platform(other_package):
    backend_for("other")
    backend_for("other:7", profiling=True)
    queue = ForeignQueue()
    backend_for(queue)
    assert other_package.opened == [(None, False), ("7", True), (queue, False)]


def test_its_devices_are_listed(other_package, monkeypatch):
    monkeypatch.setattr(
        "fusionq.backends.registry.names", lambda group: ["reference", "sycl", "other"]
    )
    listed = [info.filter_string for info in list_devices()]
    assert listed[-2:] == ["other:0", "reference"]


def test_it_cannot_take_a_name_of_ours(other_package):
    assert backend_for("reference").info == REFERENCE_DEVICE
    assert not other_package.opened
    assert list(names("fusionq.backends")).count("reference") == 1


def test_an_entry_point_that_leads_nowhere_is_named(other_package):
    with pytest.raises(fq.DeviceError, match=f"'broken'.*{OTHER}:MISSING.*reinstall or remove"):
        backend_for("broken")


def test_its_kernels_and_ranges_are_taken(other_package):
    with fq.FusionQueue("reference") as queue:
        a, out = np.arange(4, dtype=np.float32), fq.Buffer(4, np.float32)
        queue.submit(ForeignKernel(lambda item: None), ForeignRange(4), a, out)
        assert (out.numpy() == a + 1).all()
        with pytest.raises(fq.ArgumentError, match="a kernel first, not ForeignRange"):
            queue.submit(ForeignRange(4), 4, a, out)
