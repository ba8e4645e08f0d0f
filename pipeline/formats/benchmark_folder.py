"""EquiRank's own benchmark folder: ``benchmark.toml`` and one file a table; what is exported can be imported."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import polars as pl

from pipeline.benchmark import TABLES, Benchmark
from pipeline.errors import BenchmarkError, EnvironmentProblem, UsageError
from pipeline.formats.benchmark_table import read_table
from pipeline.formats.benchmark_toml import read_benchmark_toml, write_benchmark_toml
from pipeline.formats.benchmark_validation import validate_benchmark
from pipeline.formats.messages import quote
from pipeline.formats.source_table import ProblemList

TOML = "benchmark.toml"
SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
#: The accepted combinations once more, as the ToolEX paper names their file; not read, since they are a table too.
ACCEPTED = "query_combo_verified.jsonl"


def is_benchmark_folder(path: Path) -> bool:
    """Whether a folder claims to be one of ours."""
    return (path / TOML).is_file()


def read_benchmark_folder(path: Path) -> Benchmark:
    """Read and validate a benchmark folder.

    Faults of single files (bad JSON, wrong types, missing columns) are reported together; only when there are none
    are the tables checked against each other, again with all problems together.

    Raises:
        BenchmarkError: the folder is not a benchmark folder, or its content is refused.
    """
    if not path.is_dir():
        raise BenchmarkError(f"There is no benchmark folder at {path}.")
    if not is_benchmark_folder(path):
        raise BenchmarkError(f"{path} is not a benchmark folder: it has no {TOML}.")
    problems, notes = ProblemList(), list[str]()
    info = read_benchmark_toml(path / TOML, problems, notes)
    files = _table_files(path, problems, notes)
    tables = {name: read_table(name, file, problems, notes) for name, file in files.items()}
    problems.raise_if_any(f"The benchmark folder {path} cannot be read as it is:")
    if info is None:
        raise AssertionError("a refused benchmark.toml left no problem")
    return validate_benchmark(info, tables, notes)


def verify_benchmark(path: Path) -> tuple[Benchmark, tuple[str, ...]]:
    """Read a folder as import would and return it with the notes on what import would change.

    Raises:
        BenchmarkError: import would refuse the folder; the problems say why.
    """
    benchmark = read_benchmark_folder(path)
    return benchmark, benchmark.notes


def write_benchmark_folder(
    benchmark: Benchmark,
    path: Path,
    table_format: Literal["jsonl", "parquet"] = "jsonl",
    *,
    beside: Callable[[Path], object] | None = None,
) -> None:
    """Write a benchmark so that reading it gives the same content hash.

    The folder appears whole or not at all: it is written beside its place and renamed. Empty optional tables and
    columns without any value are left out.

    Args:
        benchmark: the content.
        path: a folder that is not there yet, or empty.
        table_format: ``jsonl`` or ``parquet``.
        beside: given the folder before it appears, to put other files into it.

    Raises:
        UsageError: the target exists and is not an empty folder, or the format is unknown.
        EnvironmentProblem: the folder cannot be written.
    """
    if table_format not in ("jsonl", "parquet"):
        raise UsageError(f"Unknown table format {table_format!r}; choose jsonl or parquet.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} exists and is not empty; choose another place or remove it first.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            temporary.chmod(0o755)
            write_benchmark_toml(benchmark.info, temporary / TOML)
            for name, schema in TABLES.items():
                frame = _worth_writing(getattr(benchmark, name).select(schema.keys()))
                if frame.height and table_format == "jsonl":
                    frame.write_ndjson(temporary / f"{name}.jsonl")
                elif frame.height:
                    frame.write_parquet(temporary / f"{name}.parquet", compression="zstd")
            if beside is not None:
                beside(temporary)
            for file in [*temporary.iterdir(), temporary]:
                _flush_to_disk(file)
            temporary.rename(path)
            _flush_to_disk(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise EnvironmentProblem(f"The benchmark cannot be written to {path}: {error}.") from error


def _table_files(path: Path, problems: ProblemList, notes: list[str]) -> dict[str, Path]:
    """The file of each table; two files for one table are a problem, unknown ones a note."""
    files: dict[str, Path] = {}
    known = {TOML, ACCEPTED}
    for name in TABLES:
        present = [path / (name + suffix) for suffix in SUFFIXES if (path / (name + suffix)).is_file()]
        known.update(file.name for file in present)
        if len(present) > 1:
            names = " and ".join(file.name for file in present)
            problems.add(f"{names} both exist; keep one, so that it is clear which counts", name)
        if present:
            files[name] = present[0]
        elif name in ("tools", "queries", "ground_truth"):
            problems.add(f"{name}: no {name}.jsonl, {name}.jsonl.gz or {name}.parquet in the folder", name)
    unknown = sorted(entry.name for entry in path.iterdir() if entry.name not in known)
    if unknown:
        shown = ", ".join(quote(name) for name in unknown[:10]) + (", …" if len(unknown) > 10 else "")
        notes.append(f"files that are not part of a benchmark folder were left out: {shown}")
    return files


def _worth_writing(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the optional columns that say nothing."""
    silent = [
        column
        for column in ("provider", "same_operation", "inputs_available", "coverage", "dependency_consistent")
        if column in frame.columns and (frame[column].is_null() | (frame[column].cast(pl.String) == "")).all()
    ]
    return frame.drop(silent)


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
