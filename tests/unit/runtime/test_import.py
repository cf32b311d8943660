from __future__ import annotations

import subprocess
import sys

import fusionq as fq


def test_importing_the_package_is_light():
    code = (
        "import sys, fusionq; "
        "print([m for m in ('dpctl', 'islpy', 'numba', 'rich', 'typer') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_are_there():
    for name in fq.__all__:
        assert getattr(fq, name) is not None
    assert set(dir(fq)) >= set(fq.__all__) - {"Report", "bfloat16", "profile"}


def test_a_script_that_leaves_everything_to_the_end_of_the_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, fusionq as fq\n"
        "@fq.kernel\n"
        "def k(item, a):\n"
        "    a[item.get_id(0)] = 1\n"
        "queue = fq.FusionQueue('reference')\n"
        "a = fq.Buffer(8, np.float32)\n"
        "array = np.zeros(8)\n"
        "queue.submit(k, 8, array)\n"
        "queue.start_fusion()\n"
        "queue.submit(k, 8, a)\n"
    )
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (out.returncode, out.stdout) == (0, "")
    assert "FusionAborted" in out.stderr and "the program ended" in out.stderr
    assert "Traceback" not in out.stderr
