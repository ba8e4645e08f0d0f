"""Stage 2 of ToolEX against a bare loop, the estimate of a large run, and the demo benchmarks expanded for real.

    python benchmarks/toolex.py [verify] [estimate] [demo] [--calls 10000] [--concurrency 64] [--queries 0]

verify    so many verifications through the stage and the real asker, every call and answer committed to SQLite, against
          a bare loop of ``litellm.acompletion`` with the same requests: at most 1.2 times its time, memory flat; then
          the same stage again from the cache: at least 2,000 answers a second
estimate  a benchmark of ToolEq's size (13,506 sub-queries, 20 candidates each): at most 2 s
demo      the demo tools and skills without labels, candidates from BM25 and MiniLM, a judge that answers from their
          labels after faults of every kind: the labels they were written with, in one process and in three rounds of a
          batch, with the same bytes; ``--queries`` bounds it

The server runs in a process of its own. Run it on a machine that does nothing else: both sides share its processors.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

import polars as pl  # noqa: E402
from llm import SERVER, bare, resident_mb, verdict  # noqa: E402

from pipeline.benchmark import BenchmarkInfo, Kind  # noqa: E402
from pipeline.formats.benchmark_validation import build_benchmark  # noqa: E402
from pipeline.jobs.annotations import batch, requests  # noqa: E402
from pipeline.jobs.annotations.here import run_here  # noqa: E402
from pipeline.jobs.benchmark_library import load_benchmark  # noqa: E402
from pipeline.jobs.llm_answers import StoredAnswers  # noqa: E402
from pipeline.llm.client import LiveAsker  # noqa: E402
from pipeline.llm.config import AskingConfig, ProviderLimit  # noqa: E402
from pipeline.llm.prices import Price  # noqa: E402
from pipeline.llm.records import Question  # noqa: E402
from pipeline.llm.stores import Budget  # noqa: E402
from pipeline.toolex.estimate import estimate_run  # noqa: E402
from pipeline.toolex.records import Candidate, Subquery  # noqa: E402
from pipeline.toolex.settings import ToolexSettings  # noqa: E402
from pipeline.toolex.verify import verify, verify_question  # noqa: E402
from store.database import Database  # noqa: E402
from store.settings import Settings  # noqa: E402

PARTS = ("verify", "estimate", "demo")
MODEL = "openai/verifier"
SETTINGS = ToolexSettings(verify_judge=MODEL)
ANSWER = {"same_operation": True, "inputs_available": False, "reason": "A required value is not given."}
#: Candidates of a sub-query, and tools they are drawn from.
DEPTH = 20
TOOLS = 2_000


class Stage2:
    """A stage of so many questions of usual size: about 2.5 KB of text each."""

    def __init__(self, calls: int, mark: str) -> None:
        text = "looks things up and returns them in order. " * 25
        self.documents = {f"t{number}": f"Tool {number} {mark} {text}" for number in range(TOOLS)}
        self.subqueries = [
            Subquery(f"q{n}", 0, f"Find thing {n} {mark}.", f"t{n % TOOLS}") for n in range(calls // DEPTH)
        ]
        self.candidates = [
            [Candidate(f"t{(number * 7 + rank) % TOOLS}", rank, (rank,)) for rank in range(1, DEPTH + 2)]
            for number in range(len(self.subqueries))
        ]
        for subquery, found in zip(self.subqueries, self.candidates, strict=True):
            found[:] = [candidate for candidate in found if candidate.tool_id != subquery.tool_id][:DEPTH]

    def run(self, asker: LiveAsker) -> tuple[int, float]:
        """Verdicts, and MiB that the second half of them added."""
        verdicts, middle = 0, 0.0
        for _, found in verify(self.subqueries, self.candidates, self.documents, SETTINGS, asker):
            verdicts += len(found or ())
            if not middle and verdicts >= len(self.subqueries) * DEPTH // 2:
                middle = resident_mb()
        return verdicts, resident_mb() - middle

    def questions(self) -> list[Question]:
        """What it asks."""
        return [
            verify_question(subquery, candidate.tool_id, self.documents, SETTINGS)
            for subquery, found in zip(self.subqueries, self.candidates, strict=True)
            for candidate in found
        ]


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that gives every verification the same answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER % (ANSWER,)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(timeout=30)


def against_a_bare_loop(calls: int, concurrency: int, folder: Path) -> None:
    """The stage, its peer, and the stage again from the cache."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    database = Database(Settings(home=folder / "verify"))
    database.migrate()
    store = StoredAnswers(database)
    # One loop for the peer: litellm keeps its connections with the loop they were made on.
    with server() as url, asyncio.Runner() as peers:
        config = AskingConfig(base_url=url, limit=ProviderLimit(concurrency), prices={MODEL: Price(1e-7, 1e-7)})
        for mark, size in (("warm", 400), ("real", calls)):
            asker, stage = LiveAsker(store, config, Budget(mark, 1_000.0)), Stage2(size, mark)
            start = time.perf_counter()
            verdicts, grown = stage.run(asker)
            ours = time.perf_counter() - start
            questions = stage.questions()
            start = time.perf_counter()
            peers.run(bare(url, questions, concurrency))
            peer = time.perf_counter() - start
            del questions
    print(f"  {verdicts:,} verdicts: ours {ours:.1f} s, bare {peer:.1f} s", flush=True)
    verdict("time against a bare loop", ours / peer, 1.2, at_least=False)
    verdict("MiB that the second half of the verdicts added", grown, 30, at_least=False)
    start = time.perf_counter()
    known, _ = stage.run(asker)
    verdict("verdicts a second from the cache", known / (time.perf_counter() - start), 2_000, at_least=True)
    database.close()


def estimation() -> None:
    """7,360 queries with 13,506 sub-queries over 43,215 tools."""
    tools, queries, steps = 43_215, 7_360, 13_506
    ids = [f"tool_{number}" for number in range(tools)]
    about = "does something of the kind " * 12
    sizes = [2 if number < steps - queries else 1 for number in range(queries)]
    blank = {"domain": pl.lit(""), "source": pl.lit("")}
    names = [f"q{number}" for number in range(queries)]
    truth = [[ids[(number * 5 + place) % tools] for place in range(size)] for number, size in enumerate(sizes)]
    documents = [f'{{"name": "tool {number}", "description": "{about}"}}' for number in range(tools)]
    benchmark = build_benchmark(
        BenchmarkInfo("big", "Big", Kind.TOOL, "1", "", ""),
        {
            "tools": pl.DataFrame({"tool_id": ids, "documentation": documents, "name": ids}).with_columns(**blank),
            "queries": pl.DataFrame(
                {"query_id": names, "text": [f"What about {name}?" for name in names]}
            ).with_columns(instruction=pl.lit("Find tools."), **blank),
            "ground_truth": pl.DataFrame({"query_id": names, "tool_ids": truth}),
        },
    )
    start = time.perf_counter()
    lines = estimate_run(benchmark, ToolexSettings())
    seconds = time.perf_counter() - start
    verdict(f"seconds for {sum(line.line.calls for line in lines):,} questions", seconds, 2, at_least=False)


def first_time_faults() -> Any:
    """Most requests go wrong when they come for the first time, in every way there is; one in five hundred stalls."""
    from tests.llm_server import Fault

    seen: set[str] = set()
    kinds = [
        None, Fault.rate_limit(0.01), Fault.error(500), Fault.drop(), Fault.invalid_json(), Fault.truncated(),
        Fault.wrong_shape(), Fault.garbage(), Fault.prose(), None,
    ]  # fmt: skip

    def fault(number: int, body: dict[str, Any]) -> Any:
        told = hashlib.sha256(str(body["messages"][1]["content"]).encode()).hexdigest()
        if told in seen:
            return None
        seen.add(told)
        return Fault.stall(30) if int(told[:4], 16) % 500 == 0 else kinds[int(told[4:8], 16) % len(kinds)]

    return fault


def demo(kind: str, queries: int, folder: Path) -> None:
    """One demo benchmark in both ways."""
    from tests.llm_server import LlmServer, answer_batch
    from tests.pipeline.jobs import annotation_work as work
    from tests.pipeline.toolex.demo_judge import LabelJudge, labels_of

    whole = work.demo(kind)
    ids: Sequence[str] = whole.queries["query_id"].to_list()[: queries or None]
    parent, judge = work.bare(whole, list(ids)), LabelJudge(whole)
    start = time.perf_counter()
    with LlmServer(judge, faults=first_time_faults(), keep_bodies=False) as faulty:
        site = work.site_with(folder / "here", parent, faulty.url, llm_read_seconds=10, llm_concurrency=64)
        made = run_here(site, work.define(site, work.BUNDLED).id)
        spent = requests.look(site, work.define(site, work.BUNDLED).id).spent
        verdict("requests without an entry in the ledger", faulty.count - spent.calls, 0, at_least=False)
    live = work.exported(site, made.id, folder / "here-folder")
    found = labels_of(load_benchmark(site, made.id))
    work.close(site)
    written = work.written_labels(whole, list(ids))
    wrong = sum(len(found[name] ^ written[name]) for name in written)
    print(f"  {kind}: {len(ids):,} queries, {spent.calls:,} calls, {time.perf_counter() - start:.0f} s", flush=True)
    verdict("labels that differ from those it was written with", wrong, 0, at_least=False)

    site = work.site_with(folder / "batch", parent)
    record = work.define(site, work.BUNDLED)
    for number in range(3):
        sent = batch.export_round(site, record.id, folder / f"{number}.jsonl")
        answers = folder / f"{number}.answers.jsonl"
        answer_batch(sent.parts[0], answers, judge)
        took = batch.import_round(site, record.id, answers)
    assert took.made is not None, "three rounds are enough"
    other = work.exported(site, took.made.id, folder / "batch-folder")
    work.close(site)
    verdict(
        "files that differ after three rounds of a batch",
        sum(live[name] != other[name] for name in live),
        0,
        at_least=False,
    )


def main() -> None:
    """Run the parts that are named, else all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--queries", type=int, default=0, help="of each demo benchmark; 0 takes all")
    options = parser.parse_args()
    if set(options.parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="equirank-toolex-") as name:
        for part in options.parts or PARTS:
            print(part, flush=True)
            if part == "verify":
                against_a_bare_loop(options.calls, options.concurrency, Path(name))
            elif part == "estimate":
                estimation()
            else:
                for kind in ("skills", "tools"):
                    (Path(name) / kind).mkdir()
                    demo(kind, options.queries, Path(name) / kind)


if __name__ == "__main__":
    main()
