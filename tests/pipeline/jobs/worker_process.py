"""Workers as processes of their own, on a small benchmark, with a count of every text that they encode."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from pipeline.benchmark import Benchmark, BenchmarkInfo, Kind
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.content_hash import content_hash
from pipeline.jobs import job_client
from pipeline.jobs.first_start import demo_folder
from pipeline.jobs.job_client import Job
from pipeline.jobs.site import Site, open_site
from store.settings import Settings

#: Small, so that a small benchmark has many batches and shards.
BATCH_TOKENS = 256
SHARD_TEXTS = 24

#: One server for every module: what it has imported is decided by whoever starts it first.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.pipeline.jobs.preloaded"])


def small_benchmark() -> Benchmark:
    """The demo tools with their documentation cut short, so that a model reads it in a few seconds."""
    import polars as pl

    demo = read_benchmark_folder(demo_folder("tools"))
    frames = {
        "tools": demo.tools.with_columns(documentation=pl.col("name") + ": " + pl.col("domain")),
        "queries": demo.queries,
        "ground_truth": demo.ground_truth,
        "subqueries": demo.subqueries,
        "equivalents": demo.equivalents,
        "combinations": demo.combinations,
    }
    info = BenchmarkInfo(slug="small", title="Small", kind=Kind.TOOL, version="1")
    return Benchmark(info=info, **frames, content_hash=content_hash(frames))


def fields_benchmark(queries: int = 12) -> Benchmark:
    """Some queries of the demo with the tools that count for them, as they are: documents with fields."""
    import polars as pl

    demo = read_benchmark_folder(demo_folder("tools"))
    kept = demo.queries.sort("query_id").head(queries)
    by_query = {
        name: getattr(demo, name).filter(pl.col("query_id").is_in(kept["query_id"].implode()))
        for name in ("ground_truth", "subqueries", "equivalents", "combinations")
    }
    used = {tool for name in ("ground_truth", "combinations") for ids in by_query[name]["tool_ids"] for tool in ids}
    used |= set(by_query["equivalents"]["tool_id"]) | set(by_query["subqueries"]["tool_id"])
    frames = {"tools": demo.tools.filter(pl.col("tool_id").is_in(list(used))), "queries": kept, **by_query}
    info = BenchmarkInfo(slug="fields", title="Fields", kind=Kind.TOOL, version="1")
    return Benchmark(info=info, **frames, content_hash=content_hash(frames))


def work(
    settings: Settings, meter: Path, pause: float, parent: int | None, ready: Connection, queues: tuple[str, ...]
) -> None:
    """What the process does: a worker on one thread whose every encoded text is written down beforehand."""
    import huggingface_hub.constants
    import torch

    from pipeline.jobs import measuring, worker
    from pipeline.retrieval import encoder

    torch.set_num_threads(1)
    # The hub's library reads its variable at import, which the server that forks us has behind it.
    huggingface_hub.constants.HF_HUB_OFFLINE = True
    encode = encoder.LocalEncoder.encode

    def metered(self, texts):  # type: ignore[no-untyped-def]
        space = self._contract.space
        with meter.open("a", encoding="utf-8") as log:
            log.write(" ".join(hashlib.sha256((space + text.whole).encode()).hexdigest()[:16] for text in texts) + "\n")
        time.sleep(pause)
        return encode(self, texts)

    encoder.LocalEncoder.encode = metered  # type: ignore[method-assign]
    encoder.LocalEncoder.batch_tokens = BATCH_TOKENS  # type: ignore[assignment,method-assign]
    measuring.SHARD_TEXTS = SHARD_TEXTS
    worker.run_worker(open_site(settings), queues, say=ready.send, parent=parent)
    os._exit(0)


class WorkerProcess:
    """A worker that runs until it is stopped or killed."""

    def __init__(self, site: Site, meter: Path, *, pause: float = 0.0, queues: tuple[str, ...] = ("cpu",)) -> None:
        """Start it and wait until it serves."""
        self._lines, theirs = FORKS.Pipe()
        self.process: BaseProcess = FORKS.Process(target=work, args=(site.settings, meter, pause, None, theirs, queues))
        self.process.start()
        theirs.close()
        # The first one waits for the server's imports.
        assert self._lines.poll(300), "the worker does not start"
        self.name = str(self._lines.recv()).split()[1]

    def kill(self) -> None:
        """``kill -9``."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> int | None:
        """SIGTERM, as ``equirank serve`` and service managers do; returns the exit code."""
        self.process.terminate()
        self.process.join(20)
        return self.process.exitcode


def encoded(meter: Path) -> list[list[str]]:
    """The batches that were encoded, or begun before a kill: hashes of their texts and embedding space."""
    return [line.split() for line in meter.read_text().splitlines()] if meter.exists() else []


def repeated(meter: Path) -> int:
    """Batches of which any text had been in an earlier one."""
    seen: Counter[str] = Counter()
    count = 0
    for batch in encoded(meter):
        count += any(seen[text] for text in batch)
        seen.update(batch)
    return count


def wait_for(site: Site, job_id: str, condition: Callable[[Job], bool], seconds: float = 90) -> Job:
    """The job once it is as wanted."""
    deadline = time.monotonic() + seconds
    while True:
        found = job_client.job(site, job_id)
        if condition(found):
            return found
        assert time.monotonic() < deadline, (found, job_client.log(site, job_id))
        time.sleep(0.1)


def finished(site: Site, job_id: str, seconds: float = 90) -> Job:
    """The job once it has ended."""
    return wait_for(site, job_id, lambda job: job.state.ended, seconds)
