"""Running a user's script from a command."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from fusionq.cli.console import bad_use


def run_script(script: Path, arguments: Sequence[str]) -> int:
    """Run ``script`` as ``__main__``.

    Returns the script's exit code: its own, or 1 where an exception ended it.
    """
    if not script.is_file():
        bad_use(f"there is no file {script}")
    path = str(script)
    old_argv, old_path = sys.argv, list(sys.path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as exit_:
        return _exit_code(exit_)
    except BaseException as error:
        if _is_no_text(error, path):
            bad_use(f"{script} is no Python script: {error}")
        _show_traceback(error, path)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.argv, sys.path = old_argv, old_path
    return 0


def _exit_code(exit_: SystemExit) -> int:
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    print(exit_.code, file=sys.stderr)
    return 1


def _is_no_text(error: BaseException, path: str) -> bool:
    """Whether a script could not be read as Python's text; errors of its own code name the file."""
    if not isinstance(error, (SyntaxError, ValueError)) or getattr(error, "filename", None) == path:
        return False
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != path:
        frames = frames.tb_next
    return frames is None


def _show_traceback(error: BaseException, path: str) -> None:
    """The traceback from the script's own first line on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != path:
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)
