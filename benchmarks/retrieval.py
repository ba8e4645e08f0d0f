"""Retrieval at the papers' scale against its plain peers, in the same process.

    python benchmarks/retrieval.py [encoding] [cache] [topk] [bm25] [--documents 43215] [--queries 7360] [--threads N]
                                   [--processor-time]

encoding  MiniLM over the demo benchmark's tools, against ``SentenceTransformer.encode`` over the same distinct texts
          sorted by length: at least 0.95 times its speed, the cache being written
cache     the same retrieval again from the cache: at least 50 times faster than the first time
topk      exact top-100 by inner product, 384 dimensions: within 1.2 times of a chunked product and ``torch.topk``
          (which leaves ties to chance), in less than 1.5 GB
bm25      tokenising and searching all queries, ties resolved: at most 1.5 times bm25s with its numba backend

Data is random and seeded: unit vectors, and documents of words with a natural (Zipf) distribution. Peers alternate
with ours; the best of each counts, after one run that compiles and loads.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

DEPTH = 100
DIMENSION = 384
PARTS = ("encoding", "cache", "topk", "bm25")
REPOSITORY = Path(__file__).resolve().parent.parent
DEMO = REPOSITORY / "pipeline" / "demo" / "tools"


def alternate(
    ours: Callable[[], object],
    peer: Callable[[], object],
    repetitions: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Shortest times of both, in seconds of the clock."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for work, kept in zip((ours, peer), times, strict=True):
            start = clock()
            work()
            kept.append(clock() - start)
    return min(times[0]), min(times[1])


def verdict(name: str, figure: float, target: float, *, at_least: bool) -> None:
    """One line: what came out, what it should be."""
    good = figure >= target if at_least else figure <= target
    bound = "at least" if at_least else "at most"
    print(f"  {name}: {figure:.2f} ({bound} {target:g}) {'met' if good else 'MISSED'}", flush=True)


def encoding(clock: Callable[[], float]) -> None:
    """Documents a second, ours and bare."""
    from sentence_transformers import SentenceTransformer

    from pipeline.formats.benchmark_folder import read_benchmark_folder
    from pipeline.retrieval.dense import encode_texts
    from pipeline.retrieval.documents import full_doc_texts
    from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
    from pipeline.retrieval.encoder import load_encoder
    from pipeline.retrieval.models import model_folder, resolve_model

    model = resolve_model("minilm")
    contract = model.contract()
    encoder = load_encoder(model, contract)
    texts = full_doc_texts(read_benchmark_folder(DEMO))
    formatted = [contract.document(text) for text in texts]
    plain = sorted(set(texts), key=len, reverse=True)
    bare = SentenceTransformer(str(model_folder(model)), device=encoder.device.split()[0])
    bare.encode(plain[-4:])
    encoder.encode(formatted[:4])
    with tempfile.TemporaryDirectory() as folder:
        runs = iter(range(1000))

        def ours() -> object:
            return encode_texts(
                formatted, contract, lambda: encoder, FolderEmbeddingCache(Path(folder) / str(next(runs)))
            )

        def peer() -> object:
            return bare.encode(plain, show_progress_bar=False, normalize_embeddings=True)

        one, two = alternate(ours, peer, 3, clock)
    speeds = f"{len(plain) / one:.1f} a second, bare {len(plain) / two:.1f}"
    print(f"encoding: {len(plain)} texts on {encoder.device}: {speeds}")
    verdict("speed against bare sentence-transformers", two / one, 0.95, at_least=True)


def cached() -> None:
    """A retrieval, and the same again."""
    from pipeline.formats.benchmark_folder import read_benchmark_folder
    from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
    from pipeline.retrieval.models import resolve_model
    from pipeline.retrieval.retrieve import retrieve

    loaded, model = read_benchmark_folder(DEMO), resolve_model("minilm")
    retrieve(loaded, resolve_model("bm25"))
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            retrieve(loaded, model, cache=FolderEmbeddingCache(Path(folder)))
            times.append(time.perf_counter() - start)
    print(f"cache: first {times[0]:.2f} s, loading the model included; again {1000 * min(times[1:]):.0f} ms")
    verdict("speed from the cache", times[0] / min(times[1:]), 50, at_least=True)


def unit_vectors(count: int, seed: int) -> np.ndarray:
    """Random directions, float32."""
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def topk(documents: int, queries: int) -> None:
    """Exact top-k against a product in chunks and torch.topk."""
    import torch

    from pipeline.retrieval.topk import top_k

    tools, asked = unit_vectors(documents, 0), unit_vectors(queries, 1)
    torch_tools, torch_asked = torch.from_numpy(tools), torch.from_numpy(asked)
    top_k(asked[:2], tools, DEPTH)

    def peer() -> object:
        return [torch.topk(torch_asked[s : s + 256] @ torch_tools.T, DEPTH) for s in range(0, queries, 256)]

    one, two = alternate(lambda: top_k(asked, tools, DEPTH), peer, 3)
    print(f"topk: {queries:,} × {documents:,} × {DIMENSION}: {one:.2f} s, peer {two:.2f} s")
    verdict("time against product and topk", one / two, 1.2, at_least=False)
    command = [sys.executable, __file__, "--documents", str(documents), "--queries", str(queries), "--memory"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
    )
    verdict("peak memory of a process that does only this, GB", float(done.stdout), 1.5, at_least=False)


def topk_memory(documents: int, queries: int) -> None:
    """Print this process's peak memory in GB."""
    from pipeline.retrieval.topk import top_k

    top_k(unit_vectors(queries, 1), unit_vectors(documents, 0), DEPTH)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)


def zipf_texts(count: int, words: int, seed: int) -> list[str]:
    """Texts of about ``words`` words from a vocabulary of 60,000."""
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(3, 60_003)
    lengths = draw.poisson(words, count) + 1
    drawn = draw.choice(60_000, lengths.sum(), p=weights / weights.sum())
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    names = np.array([f"w{i:x}" for i in range(60_000)])
    return [" ".join(names[drawn[bounds[i] : bounds[i + 1]]]) for i in range(count)]


def bm25(documents: int, queries: int) -> None:
    """Tokenise and search."""
    import bm25s

    from pipeline.retrieval.bm25 import Bm25Index, query_terms

    texts, asked = zipf_texts(documents, 60, 0), zipf_texts(queries, 20, 1)
    index = Bm25Index(texts)
    peer_index = bm25s.BM25(backend="numba")
    peer_index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    index.search(asked[:2], DEPTH)
    peer_index.retrieve(query_terms(asked[:2]), k=DEPTH, show_progress=False)

    def peer() -> object:
        return peer_index.retrieve(query_terms(asked), k=DEPTH, show_progress=False)

    one, two = alternate(lambda: index.search(asked, DEPTH), peer, 5)
    print(f"bm25: {queries:,} queries over {documents:,} documents: {one:.2f} s, bm25s {two:.2f} s")
    verdict("time against bm25s with numba", one / two, 1.5, at_least=False)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="default: all")
    parser.add_argument("--documents", type=int, default=43_215)
    parser.add_argument("--queries", type=int, default=7_360)
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument(
        "--processor-time", action="store_true", help="for encoding, on a busy machine; with --threads 1"
    )
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        topk_memory(arguments.documents, arguments.queries)
        return
    parts = arguments.parts or list(PARTS)
    if set(parts) - set(PARTS):
        parser.error(f"choose from {', '.join(PARTS)}")
    if arguments.threads and set(parts) & {"encoding", "cache", "topk"}:
        import torch

        torch.set_num_threads(arguments.threads)
    if "encoding" in parts:
        encoding(time.process_time if arguments.processor_time else time.perf_counter)
    if "cache" in parts:
        cached()
    if "topk" in parts:
        topk(arguments.documents, arguments.queries)
    if "bm25" in parts:
        bm25(arguments.documents, arguments.queries)


if __name__ == "__main__":
    main()
