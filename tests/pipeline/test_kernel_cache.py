"""Compiled kernels of other sources are never used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba

from pipeline import kernel_cache


def test_a_change_in_any_kernel_module_gives_another_folder(tmp_path: Path) -> None:
    package = tmp_path / "pipeline"
    package.mkdir()
    (package / "kernel.py").write_text("import numba\nA = 1\n")
    (package / "other.py").write_text("B = 1\n")
    code = Path(kernel_cache.__file__).read_text()
    (package / "kernel_cache.py").write_text(code)
    (package / "__init__.py").write_text("")

    def folder() -> str:
        script = (
            "import os, pipeline.kernel_cache as k; k.separate_kernel_cache(); print(os.environ['NUMBA_CACHE_DIR'])"
        )
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment | {"PYTHONPATH": "."},
                              capture_output=True, text=True, check=True)  # fmt: skip
        return done.stdout.strip()

    first = folder()
    (package / "other.py").write_text("B = 2\n")
    assert folder() == first
    (package / "kernel.py").write_text("import numba\nA = 2\n")
    assert folder() != first


def test_numba_uses_the_folder_of_these_sources() -> None:
    assert Path(numba.config.CACHE_DIR).name == f"kernels-{kernel_cache.sources_hash()}"


def test_child_processes_do_not_nest_folders() -> None:
    script = "import pipeline, os; print(os.environ['NUMBA_CACHE_DIR'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == os.environ["NUMBA_CACHE_DIR"]
