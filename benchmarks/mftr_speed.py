"""Speed and memory of MFTR's ranking at the size of the paper's Mixed benchmark, and of its training.

    python benchmarks/mftr_speed.py [bm25] [dense] [training] [mixed] [--tools 20476] [--queries 256] [--threads N]

bm25      all four fields by BM25: at most 10 ms a query in batch, 50 ms for a single one
dense     all four fields by 384-dimensional embeddings, already encoded: the same
training  five folds of apibank's size (101 queries, 101 tools): at most 10 s
mixed     five folds of the Mixed benchmark's size (3,197 queries, 20,476 tools), BM25, scoring included: at most 300 s

Each part runs in a process of its own and also reports its peak memory. Texts are words with a natural (Zipf)
distribution, embeddings are unit vectors; both are seeded. Tools have one to eight parameters (one has 300) and three
examples, queries one to three needs and up to five arguments. The learned parameters are arbitrary: they cost the same.
Before measuring, one query compiles and loads what is needed. Elapsed time counts for the targets; the time spent
computing, which other programs on the machine disturb less, is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PARTS = ("bm25", "dense", "training", "mixed")
REPOSITORY = Path(__file__).resolve().parent.parent
DIMENSION = 384
DEPTH = 100
MIXED_QUERIES = 3197


def verdict(name: str, figure: float, most: float, unit: str) -> None:
    """One line: what came out, what it should be."""
    print(f"  {name}: {figure:.2f} {unit} (at most {most:g}) {'met' if figure <= most else 'MISSED'}", flush=True)


class Words:
    """Texts of words with a Zipf distribution."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.words = np.array([f"w{i:x}x" for i in range(30_000)])
        odds = 1.0 / np.arange(10, len(self.words) + 10)
        self.odds = np.cumsum(odds / odds.sum())

    def text(self, length: int) -> str:
        """A text of about that many words."""
        places = np.searchsorted(self.odds, self.rng.random(max(1, self.rng.poisson(length))))
        return " ".join(self.words[np.minimum(places, len(self.words) - 1)])


def corpus(count: int, seed: int = 1):
    """Synthetic standardized tools."""
    from pipeline.mftr.fields import ToolFields
    from pipeline.mftr.schema import Example, Parameter, StandardizedTool

    words = Words(seed)
    tools = []
    for i in range(count):
        size = 300 if i == count // 2 else int(words.rng.integers(1, 9))
        parameters = tuple(
            Parameter(
                f"p{j}",
                {"type": "string", "description": words.text(10), "required": bool(j % 3), "example": words.text(2)},
            )
            for j in range(size)
        )
        examples = tuple(Example(words.text(14)) for _ in range(3))
        tools.append(StandardizedTool(f"tool_{i:06}", words.text(20), parameters, words.text(40), examples))
    return ToolFields(tools)


def rewritten(count: int, seed: int = 2):
    """Synthetic rewritten queries."""
    from pipeline.mftr.fields import QueryFields
    from pipeline.mftr.schema import Argument, RewrittenQuery, ToolNeed

    words = Words(seed)
    queries = []
    for i in range(count):
        needs = tuple(
            ToolNeed(words.text(14), words.text(20), words.text(25)) for _ in range(int(words.rng.integers(1, 4)))
        )
        arguments = tuple(Argument(f"a{j}", words.text(10)) for j in range(int(words.rng.integers(0, 6))))
        queries.append(RewrittenQuery(f"query_{i:06}", needs, arguments))
    return QueryFields(queries)


def units(rows: int, seed: int) -> np.ndarray:
    """Random unit vectors."""
    vectors = np.random.default_rng(seed).standard_normal((rows, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def ranking(dense: bool, tools_count: int, queries_count: int) -> None:
    """Batch and single queries."""
    from pipeline.mftr.dense_fields import DenseFields, FieldEmbeddings
    from pipeline.mftr.fields import QueryFields
    from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters
    from pipeline.mftr.lexical_fields import Bm25Fields
    from pipeline.mftr.schema import Field
    from pipeline.mftr.search import search
    from pipeline.mftr.settings import PAPER, V2

    tools, queries = corpus(tools_count), rewritten(queries_count)
    print(f"  {len(tools):,} tools, {len(tools[Field.PARAMETERS].places):,} parameters, {len(queries)} queries")
    held = {field: units(len(tools[field].texts), 3) for field in Field} if dense else {}
    lexical = None if dense else Bm25Fields(tools, queries)

    def scorer(some):
        if lexical is not None:
            return lexical.with_queries(some)
        return DenseFields(tools, some, {f: FieldEmbeddings(held[f], units(len(some[f].texts), 4)) for f in Field})

    def learned(count: int) -> LearnedFolds:
        parameters = LearnedParameters((0.4, 0.2, 0.3, 0.1), 0.1, 0.3, 1.0, 0.5)
        return LearnedFolds((parameters,), np.zeros(count, dtype=np.int64))

    singles = [scorer(QueryFields([query])) for query in queries.queries[:30]]
    whole = scorer(queries)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, settings in (("paper", PAPER), ("v2", V2)):
        search(singles[0], settings, learned(1), DEPTH)
        start, own = time.perf_counter(), time.process_time()
        search(whole, settings, learned(len(queries)), DEPTH)
        own = time.process_time() - own
        verdict(f"{name}, in batch", 1000 * (time.perf_counter() - start) / len(queries), 10, "ms a query")
        times, computing = [], []
        for single in singles:
            start, begun = time.perf_counter(), time.process_time()
            search(single, settings, learned(1), DEPTH)
            times.append(time.perf_counter() - start)
            computing.append(time.process_time() - begun)
        verdict(f"{name}, single, median", 1000 * float(np.median(times)), 50, "ms")
        verdict(f"{name}, single, slowest", 1000 * max(times), 50, "ms")
        print(
            f"  {name}, of these computing: {1000 * own / len(queries):.2f} ms a query in batch, "
            f"{1000 * float(np.median(computing)):.2f} ms for a single one (over all threads)"
        )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  memory: {before / 1024:.0f} MiB with corpus, texts and index; {after / 1024:.0f} MiB at most in search")


def training(tools_count: int, queries_count: int, most: float) -> None:
    """Five folds, from indexes to learned parameters."""
    from pipeline.mftr.lexical_fields import Bm25Fields
    from pipeline.mftr.settings import PAPER, V2
    from pipeline.mftr.training import train, train_folds, training_scores

    tools, queries = corpus(tools_count), rewritten(queries_count)
    rng = np.random.default_rng(5)
    drawn = [rng.choice(tools_count, 66, replace=False).astype(np.int32) for _ in range(queries_count)]
    labels, negatives = [row[: 1 + q % 2] for q, row in enumerate(drawn)], [row[2:] for row in drawn]
    scorer = Bm25Fields(tools, queries)
    few = training_scores(Bm25Fields(tools, rewritten(1)), PAPER, labels, negatives)
    train(few, np.zeros(1, dtype=np.int64), PAPER)  # loads torch and compiles
    for name, settings in (("paper", PAPER), ("v2", V2)):
        start = time.perf_counter()
        train_folds(scorer, settings, labels, negatives)
        verdict(f"{name}, five folds of {queries_count:,} queries", time.perf_counter() - start, most, "s")
    print(f"  memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")


def main() -> None:
    """Run the parts, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default all")
    parser.add_argument("--tools", type=int, default=20_476)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--threads", type=int, default=0, help="for matrix products; default all")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    if not chosen.inside:
        threads = {"OPENBLAS_NUM_THREADS": str(chosen.threads), "OMP_NUM_THREADS": str(chosen.threads)}
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(threads if chosen.threads else {})}
        for part in chosen.parts or PARTS:
            print(part, flush=True)
            options = ["--tools", str(chosen.tools), "--queries", str(chosen.queries), "--inside"]
            subprocess.run([sys.executable, __file__, part, *options], env=environment, check=True)
        return
    part = chosen.parts[0]
    if part in ("bm25", "dense"):
        ranking(part == "dense", chosen.tools, chosen.queries)
    elif part == "training":
        training(101, 101, 10.0)
    else:
        training(chosen.tools, MIXED_QUERIES, 300.0)


if __name__ == "__main__":
    main()
