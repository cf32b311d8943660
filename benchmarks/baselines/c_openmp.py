"""A hand-written C/OpenMP loop, compiled here: the limit that memory sets."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from fusionq.benchmarks.case import Baseline, Unavailable, Workload
from fusionq.benchmarks.timing import Start

LIMITS = ("C/OpenMP", "C/OpenMP, non-temporal")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-shared", "-fPIC")


def c_baselines(expression: str) -> tuple[Baseline, Baseline]:
    """The loop with ordinary and with non-temporal stores.

    ``expression``: C over GCC vectors, with the inputs' names.
    """
    return (
        _c_baseline(LIMITS[0], expression, ()),
        _c_baseline(LIMITS[1], expression, ("-DNON_TEMPORAL",)),
    )


def compiler() -> str:
    """The C compiler: ``$CC``, else cc, gcc or clang; Unavailable if there is none."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    raise Unavailable("no C compiler found: install gcc, or set CC")


def _c_baseline(name: str, expression: str, flags: tuple[str, ...]) -> Baseline:
    def prepare(workload: Workload) -> Start:
        names = workload.case.names("input")
        function = _build(names, expression, flags)
        addresses = (ctypes.c_void_p * len(names))(*(workload.host[n].ctypes.data for n in names))
        output = workload.out.ctypes.data
        if output % 64:
            raise Unavailable("the output is not 64-byte aligned, as streaming stores need it")

        def run() -> None:
            function(addresses, output, workload.out.size)

        return run

    return Baseline(name, "promoted", prepare)


def _build(
    names: tuple[str, ...], expression: str, flags: tuple[str, ...]
) -> Callable[..., object]:
    source = files("fusionq.benchmarks.baselines").joinpath("streaming_loop.c").read_text()
    inputs = [f"-D{name}=values[{k}]" for k, name in enumerate(names)]
    defines = (f"-DINPUTS={len(names)}", f"-DEXPRESSION=({expression})", *inputs)
    with tempfile.TemporaryDirectory(prefix="fusionq-bench-") as folder:
        library = Path(folder) / "loop.so"
        command = [compiler(), *FLAGS, *flags, *defines, "-x", "c", "-", "-o", str(library)]
        # close_fds=False spawns without a fork, which thread pools in this process complain of.
        done = subprocess.run(
            command, input=source, text=True, capture_output=True, check=False, close_fds=False
        )
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "")
            raise Unavailable(f"{command[0]} could not compile the loop: {first}")
        try:
            function = ctypes.CDLL(str(library)).run
        except OSError as error:
            raise Unavailable(f"the compiled loop does not load: {error}") from None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t]
    function.restype = None
    return function
