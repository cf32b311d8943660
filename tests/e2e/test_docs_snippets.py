"""Every snippet of the documentation runs.

The ``python`` blocks of one page run in order, in one namespace, as a reader would type them;
``print`` calls may be followed by a ``text`` block, which must then hold what they print.
``console`` blocks run the ``fusionq`` command.  Sizes that only make sense for a benchmark are
cut down.  A block after ``<!-- not run: reason -->`` is left out.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fusionq.cli.main import app
from tests.unit.runtime.conftest import has_sycl

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(
    r"(?P<skip><!-- not run: [^\n]+ -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SMALLER = {"100_000_000": "100_000", "200, 20_000": "20, 2_000"}


@dataclass(frozen=True)
class Snippet:
    language: str
    text: str
    line: int
    skipped: bool


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(
            found["language"],
            found["text"],
            text.count("\n", 0, found.start("text")) + 1,
            found["skip"] is not None,
        )
        for found in _FENCE.finditer(text)
    ]


def matches(printed: str, shown: str) -> bool:
    """Whether ``printed`` is what the page shows; ``…`` stands for any text."""
    pattern = ".*?".join(re.escape(part) for part in shown.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def pages_with(language: str) -> list[Path]:
    return [p for p in PAGES if any(s.language == language for s in snippets(p))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_python_snippets(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_sycl() and "reference" not in page.read_text(encoding="utf-8"):
        pytest.skip("no SYCL device")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    found = snippets(page)
    if find_spec("numba_dpex") is None and any("import numba_dpex" in s.text for s in found):
        pytest.skip("numba-dpex is not installed; .ci/dpex runs this page")
    for number, snippet in enumerate(found):
        if snippet.language != "python" or snippet.skipped:
            continue
        text = snippet.text
        for large, small in _SMALLER.items():
            text = text.replace(large, small)
        # Kernels are compiled from source, which must be found under the code's file name.
        file = str(tmp_path / f"{page.stem}_{snippet.line}.py")
        Path(file).write_text(text, encoding="utf-8")
        linecache.checkcache(file)
        printed = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore")
            try:
                exec(compile(text, file, "exec"), namespace)
            except Exception as error:
                raise AssertionError(f"{name_of(page)}:{snippet.line}: {error!r}") from error
        following = found[number + 1] if number + 1 < len(found) else None
        if following is not None and following.language == "text" and not following.skipped:
            assert matches(printed.getvalue(), following.text), (
                f"{name_of(page)}:{following.line} shows something else than\n{printed.getvalue()}"
            )


def commands() -> list[tuple[Path, Snippet]]:
    return [
        (page, s)
        for page in PAGES
        for s in snippets(page)
        if s.language == "console" and not s.skipped
    ]


@pytest.mark.parametrize(
    ("page", "snippet"),
    commands(),
    ids=lambda value: name_of(value) if isinstance(value, Path) else str(value.line),
)
def test_console_snippets(
    page: Path, snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process; tests/unit/cli/test_command_line.py begins others."""
    if not has_sycl():
        pytest.skip("no SYCL device")
    example = next((s.text for s in snippets(page) if s.text.startswith("# example.py")), "")
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for line in snippet.text.splitlines():
        if not line.startswith("$ "):
            continue
        command = line[2:]
        words = shlex.split(command)
        with pytest.MonkeyPatch.context() as environment:
            while "=" in words[0]:
                environment.setenv(*words.pop(0).split("=", 1))
            assert words[0] == "fusionq", f"{name_of(page)}: what is `{command}`?"
            run = CliRunner().invoke(app, words[1:])
        assert run.exit_code == 0, f"{name_of(page)}: `{command}`: {run.output}"


def test_a_missing_ellipsis_is_noticed() -> None:
    assert matches("a 1 b\n", "a … b")
    assert not matches("a 1 b\n", "a 2 b")


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if (
                not target.startswith(("http://", "https://"))
                and not (page.parent / target).exists()
            ):
                broken.append(f"{name_of(page)}: {target}")
    assert not broken
