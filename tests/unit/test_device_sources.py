"""``tools/device_sources.py`` finds what differs between two dumps."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

import fusionq as fq

ROOT = Path(__file__).parents[2]
BEFORE = {"library/axpy": "a;\nb;\n", "library/relu": "c;\n", "library/gone": ""}
AFTER = {"library/axpy": "a;\nB;\n", "library/relu": "c;\n", "library/new": ""}


@fq.kernel
def kept_by_nobody_else(item: fq.Item, a: object) -> None:
    a[item.get_id(0)] = 12345.678  # type: ignore[index]  # an array, once submitted


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    pytest.importorskip("dpctl.program", exc_type=ImportError)
    path = ROOT / "tools" / "device_sources.py"
    spec = importlib.util.spec_from_file_location("device_sources", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_differences_are_named_with_their_lines(tool: ModuleType) -> None:
    gone, new, changed = tool.differences(BEFORE, AFTER)
    assert gone == "library/gone: only before"
    assert new == "library/new: only after"
    assert changed.startswith("library/axpy:\n--- before\n+++ after")
    assert "-b;\n+B;" in changed
    assert tool.differences(BEFORE, dict(BEFORE)) == []


def test_the_command_fails_where_sources_differ(tool: ModuleType, tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(BEFORE))
    after.write_text(json.dumps(AFTER))
    assert tool.main(["compare", str(before), str(after)]) == 1
    assert tool.main(["compare", str(before), str(before)]) == 0


@pytest.mark.usefixtures("every_program_compiled")
def test_the_device_source_of_a_fusion_is_kept(tool: ModuleType) -> None:
    """And all that the compiler gets while a profile of it is taken, which is more."""
    try:
        fq.FusionQueue().close()
    except fq.DeviceError as error:
        pytest.skip(f"no SYCL device: {error}")

    def submit(queue: fq.FusionQueue) -> object:
        buffer = fq.Buffer((17,), "float32")
        queue.submit(kept_by_nobody_else, 17, buffer)
        return buffer

    dump = tool.Dump()
    with dump.listening():
        dump.fused("one", submit)
        dump.profiled("one", submit)
    assert dump.texts["one"].startswith("// fused\n")
    assert dump.texts["one"].count("__kernel") == 1
    assert "record_time" in dump.texts["profile/one"]
    assert dump.texts["compiler options"].startswith("-cl-std=CL3.0")
