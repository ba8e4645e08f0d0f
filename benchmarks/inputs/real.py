"""Benchmarks of real rows: ``checks/make_benchmark.py`` of the inputs writes their folders, once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

#: Where the inputs are: beside the checkout.
INPUTS = Path(__file__).resolve().parents[3] / "shared"
#: Where benchmark folders are written unless told otherwise.
WORK = Path(tempfile.gettempdir()) / "equirank-benchmarks"
#: Sources whose tools are known to be equivalent, and by what; the others have one label a query.
BASIS = {"gorilla-tensor": "identical api_call", "bfcl": "BFCL"}


def benchmark_folder(source: str, inputs: Path = INPUTS, work: Path = WORK) -> Path:
    """The folder of one source's benchmark in ``work``.

    Args:
        source: such as ``apibank`` or ``gorilla-tensor``.
        inputs: holds ``data`` and ``checks``.
        work: the folder of folders; made where it is absent.

    Raises:
        subprocess.CalledProcessError: the script failed; it has said why.
    """
    folder = work / source
    if not (folder / "ground_truth.jsonl").exists():
        work.mkdir(parents=True, exist_ok=True)
        basis = ["--basis", BASIS[source]] if source in BASIS else []
        script = [str(inputs / "checks" / "make_benchmark.py"), str(inputs / "data"), str(work), source]
        subprocess.run([sys.executable, *script, "--source", source, *basis], check=True, stdout=sys.stderr)
    return folder
