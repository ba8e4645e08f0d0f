"""Does fine-tuning help, or does it learn the labels? A linear query adapter on MiniLM, with old and new scores.

    python benchmarks/illusion.py [BENCHMARK_FOLDER …] [--cache FOLDER] [--k 10] [--seed 42]

For each benchmark folder that has combinations (gorilla-tensor and bfcl from the real rows, where none is named) the
adapter is trained twice in five folds, with the annotated tools and with every valid tool as positives. The table
shows the gain over MiniLM itself under one label a query (old) and over all valid combinations (new), and the illusion
share 1 − new/old, with 95 % intervals of the stratified paired bootstrap over queries; folds and training are not
resampled. A negative share means that the labels hid gain. The seconds are those of training, ranking and intervals,
from cached embeddings.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import polars as pl
from inputs.real import BASIS, benchmark_folder
from printing.intervals import percent, points

from pipeline.benchmark import Benchmark
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.tables import TableFormat, write_table
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import ModelSpec, resolve_model
from pipeline.retrieval.retrieve import retrieve
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.kernel import evaluate
from pipeline.scoring.statistics import illusion_intervals


def rows_of(
    loaded: Benchmark, compiled: CompiledBenchmark, model: ModelSpec, cache: FolderEmbeddingCache, k: int, seed: int
) -> list[dict[str, str]]:
    """One row for each kind of positives."""
    base = evaluate(compiled, retrieve(loaded, model, cache=cache).run, (k,))
    rows = []
    for positives in ("ground_truth", "equivalents"):
        start = time.perf_counter()
        run = retrieve(loaded, model, "adapter", positives=positives, seed=seed, cache=cache).run
        tuned = evaluate(compiled, run, (k,))
        found = illusion_intervals(
            base.old[0, 0],
            base.new[0, 0],
            tuned.old[0, 0],
            tuned.new[0, 0],
            compiled.domain_of,
            loaded.info.effective_headline,
        )
        rows.append(
            {
                "benchmark": loaded.info.slug,
                "queries": f"{len(compiled.queries):,}",
                "positives": positives,
                f"base NDCG@{k} old / new": f"{100 * base.old[0, 0].mean():.2f} / {100 * base.new[0, 0].mean():.2f}",
                "gain old": points(found.gain_old),
                "gain new": points(found.gain_new),
                "illusion share": percent(found.share),
                "seconds": f"{time.perf_counter() - start:.1f}",
            }
        )
    return rows


def main() -> None:
    """Train, rank, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", type=Path, nargs="*")
    parser.add_argument("--cache", type=Path, default=Path("embeddings"), help="embeddings are kept here")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seed", type=int, default=42)
    arguments = parser.parse_args()
    model, cache = resolve_model("minilm"), FolderEmbeddingCache(arguments.cache)
    rows = []
    for folder in arguments.benchmarks or map(benchmark_folder, BASIS):
        loaded = read_benchmark_folder(folder)
        rows += rows_of(loaded, compile_benchmark(loaded), model, cache, arguments.k, arguments.seed)
    print(write_table(pl.DataFrame(rows), TableFormat.MARKDOWN))


if __name__ == "__main__":
    main()
