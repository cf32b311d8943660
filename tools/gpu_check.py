"""What has to be seen on a real NVIDIA GPU, in one command; CI has none.

    python tools/gpu_check.py tests                    # conformance, interop, faults, random lists
    python tools/gpu_check.py sanitize                 # conformance under compute-sanitizer
    python tools/gpu_check.py bench --json gpu.json    # fusionq bench --device cuda

Further arguments are those of pytest, or of ``fusionq bench``.  CuPy, PyTorch, JAX and numba-cuda
take part where they are installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROFILE = ("--hypothesis-profile", "ci")
"""As in CI: with more parameters than tests have without."""
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")


def tests(more: list[str]) -> int:
    """The tests that need a GPU; 0 if none fails."""
    places = ["tests/cuda", "tests/conformance"]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", *PROFILE, *places, *more]
    return subprocess.run(command, cwd=ROOT).returncode


def sanitize(more: list[str]) -> int:
    """The conformance suite under each tool of compute-sanitizer; 0 if none finds anything."""
    codes = []
    for tool in SANITIZERS:
        print(f"compute-sanitizer --tool {tool}", flush=True)
        command = [
            "compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
            "--target-processes", "all",
            # Rings of persistent kernels have some dozens of them a block, begun in one place.
            "--num-cuda-barriers", "128",
            # A test asks for more memory than there is; that call fails, as it should.
            "--report-api-errors", "no",
            sys.executable, "-m", "pytest", "-p", "tools.exact_memory", "-q", "-m", "cuda",
            *PROFILE, "tests/conformance", *more,
        ]  # fmt: skip
        codes.append(subprocess.run(command, cwd=ROOT).returncode)
    return max(codes)


def bench(more: list[str]) -> int:
    """Every case of ``fusionq bench`` on the GPU."""
    command = [sys.executable, "-m", "fusionq", "bench", "--device", "cuda", *more]
    return subprocess.run(command, cwd=ROOT).returncode


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = {"tests": tests, "sanitize": sanitize, "bench": bench}
    parser.add_argument("command", choices=commands)
    given, more = parser.parse_known_args()
    return commands[given.command](more)


if __name__ == "__main__":
    sys.exit(main())
