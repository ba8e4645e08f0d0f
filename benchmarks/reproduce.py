"""The papers' Full-Doc figures, retrieved again: BM25 and MiniLM under both presets.

    python benchmarks/reproduce.py [--data ../shared] [--cache FOLDER] [--only apibank …]

The benchmarks are apibank, apigen and gorilla-huggingface, made from the rows in ``--data``. BM25 must equal the paper
to four decimals, MiniLM must lie within 0.0005. MiniLM encodes about 6,500 texts on the first run, some minutes on a
CPU; with ``--cache`` the second run reads them. Exit code 1 when a figure differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import polars as pl
from inputs.real import INPUTS, benchmark_folder

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.tables import TableFormat, write_table
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import retrieve
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.scores import score_run


class Figure(NamedTuple):
    """What must come out."""

    benchmark: str
    model: str
    preset: str
    ndcg: float
    recall: float


FIGURES = (
    Figure("apibank", "bm25", "card", 0.5167, 0.6139),
    Figure("apigen", "bm25", "card", 0.7571, 0.8579),
    Figure("gorilla-huggingface", "bm25", "card", 0.2379, 0.3520),
    Figure("apibank", "minilm", "paper", 0.6112, 0.7442),
    Figure("gorilla-huggingface", "minilm", "paper", 0.1808, 0.3100),
    Figure("apigen", "minilm", "paper", 0.7126, 0.8178),
    Figure("apibank", "minilm", "card", 0.6026, 0.7335),
    Figure("gorilla-huggingface", "minilm", "card", 0.1840, 0.3160),
)
#: MiniLM's last digits depend on the processor.
TOLERANCE = {"bm25": 0.00005, "minilm": 0.0005}


def main() -> int:
    """Retrieve, score, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=INPUTS, help="holds data and checks/make_benchmark.py")
    parser.add_argument("--cache", type=Path, help="keep embeddings here")
    parser.add_argument("--only", nargs="+", default=[], help="benchmarks to look at")
    arguments = parser.parse_args()
    cache = FolderEmbeddingCache(arguments.cache) if arguments.cache else None
    rows = []
    for figure in FIGURES:
        if arguments.only and figure.benchmark not in arguments.only:
            continue
        loaded = read_benchmark_folder(benchmark_folder(figure.benchmark, arguments.data))
        compiled = compile_benchmark(loaded)
        start = time.perf_counter()
        found = retrieve(loaded, resolve_model(figure.model), preset=figure.preset, cache=cache)
        seconds = time.perf_counter() - start
        old = scores_json(summarise(score_run(compiled, found.run), compiled))["old"]
        pairs = ((old["NDCG@10"]["micro"], figure.ndcg), (old["Recall@10"]["micro"], figure.recall))
        agrees = all(abs(value - printed) <= TOLERANCE[figure.model] for value, printed in pairs)
        rows.append(
            {
                "benchmark": figure.benchmark,
                "model": figure.model,
                "preset": figure.preset,
                **{
                    name: f"{value:.4f} ({printed:.4f})"
                    for name, (value, printed) in zip(("NDCG@10 (paper)", "Recall@10 (paper)"), pairs, strict=True)
                },
                "seconds": f"{seconds:.1f}",
                "agrees": "yes" if agrees else "NO",
            }
        )
        print(f"{figure.benchmark}, {figure.model}, {figure.preset}: {rows[-1]['agrees']}", file=sys.stderr, flush=True)
    if rows:
        print(write_table(pl.DataFrame(rows), TableFormat.MARKDOWN))
    return 1 if any(row["agrees"] == "NO" for row in rows) or not rows else 0


if __name__ == "__main__":
    raise SystemExit(main())
