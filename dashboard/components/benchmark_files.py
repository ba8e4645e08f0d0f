"""A benchmark's folder as one zip file, in JSON Lines or Parquet."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from dashboard.current_site import the_site
from pipeline.formats.benchmark_folder import write_benchmark_folder
from pipeline.jobs.benchmark_library import load_benchmark


def folder_zip(version_id: int, file_format: str) -> bytes:
    """The folder that ``equirank benchmark import`` reads back, zipped.

    Args:
        version_id: of a benchmark with content.
        file_format: ``jsonl`` or ``parquet``.
    """
    benchmark = load_benchmark(the_site(), version_id)
    name = f"{benchmark.info.slug}-{benchmark.info.version}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "benchmark"
        write_benchmark_folder(benchmark, folder, file_format)  # type: ignore[arg-type]
        packed = io.BytesIO()
        method = zipfile.ZIP_DEFLATED if file_format == "jsonl" else zipfile.ZIP_STORED
        with zipfile.ZipFile(packed, "w", method) as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{name}/{path.name}")
        return packed.getvalue()
