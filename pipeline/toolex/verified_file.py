"""``query_combo_verified.jsonl``: the accepted combinations, under the name that the paper gives its file.

Its published shape is not known; ours holds the rows of the table ``combinations`` whose verdict is valid, C* among
them, and is read by ``pipeline.formats.combinations_file``.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import EnvironmentProblem
from pipeline.formats.benchmark_folder import ACCEPTED

NAME = ACCEPTED


def write_verified_combinations(benchmark: Benchmark, path: Path) -> int:
    """Write the accepted combinations; returns how many there are.

    Raises:
        EnvironmentProblem: the file cannot be written.
    """
    rows = benchmark.combinations.filter(pl.col("verdict") == Judgement.VALID.value)
    try:
        rows.write_ndjson(path)
    except OSError as error:
        raise EnvironmentProblem(f"The accepted combinations cannot be written to {path}: {error}.") from error
    return rows.height
