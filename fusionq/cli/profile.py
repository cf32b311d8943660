"""``fusionq profile``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fusionq.base.errors import FusionqError
from fusionq.cli.console import check_files, failed, output
from fusionq.cli.explain import check_plot
from fusionq.cli.scripts import run_script


def profile_script(
    script: Path,
    arguments: Sequence[str],
    trace: Path | None,
    plot: Path | None,
    json_file: Path | None,
    compare: bool,
) -> int:
    """Run ``script`` with a profile of all its queues; print the summary, write the files.

    Returns the script's exit code.
    """
    from fusionq.profiling import profile

    check_files(json_file, trace)
    if plot is not None:
        check_plot(plot)
    with profile(compare=compare) as taken:
        code = run_script(script, arguments)
    output().print(taken.summary(), markup=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(taken.to_dict(), indent=1) + "\n", encoding="utf-8")
    try:
        if trace is not None:
            taken.trace(trace)
        if plot is not None:
            taken.plot(plot)
    except FusionqError as error:
        failed(str(error))
    return code
