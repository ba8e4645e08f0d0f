"""How long the pages on single queries take at the paper's scale: 7,360 queries, 43,000 tools, 39,087 combinations.

    python benchmarks/queries.py [--runs 6] [--repeat 12] [--queries 7360] [--tools 43000] [--combinations 39087]

The site is started as ``equirank serve`` starts it, and a client speaks to it as a browser does: over the page's
websocket, with Streamlit's own messages. A time runs from asking for a page to the message that says it is complete:
the script, the serialisation of every table and chart, and the transport are in it; the browser's drawing is not. A
page is asked for in a new session each time (somebody follows a permalink), after the process has seen it once; a
search is typed in an open session. Texts and documents have the lengths of the papers' (about 160 and 900 signs). The
page that says no run is chosen holds nothing but text: its time is what a session costs here, whatever the page.

Targets for a warm page on two cores: 300 ms to open a query, 300 ms to search all texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import polars as pl
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.serving import server_command
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.statistics import compute, pending
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.settings import Settings

DOMAINS = ("code", "web", "customized")
DEPTH = 100
_STEMS = ("vent", "duct", "form", "spect", "lat", "port")
_ENDS = ("ion", "ed", "ing", "or", "able", "ively", "s", "ment")
WORDS = [f"{start}{stem}{end}" for start in ("re", "con", "pro", "in", "de") for stem in _STEMS for end in _ENDS]


def sentence(dice: random.Random, words: int) -> str:
    """Some words of a made-up language."""
    return " ".join(dice.choices(WORDS, k=words))


def write_benchmark(folder: Path, queries: int, tools: int, combinations: int) -> list[list[str]]:
    """A benchmark folder of the papers' proportions; returns the tools of each query's labels."""
    folder.mkdir(parents=True)
    dice, draw = random.Random(5), np.random.default_rng(5)
    header = 'slug = "scale"\ntitle = "Scale"\nkind = "tool"\nversion = "1"\nsource = "made up"\nlicence = "CC0-1.0"\n'
    (folder / "benchmark.toml").write_text(header)
    names = [f"tool_{number}" for number in range(tools)]
    documents = [
        json.dumps({"name": name, "description": sentence(dice, 60), "parameters": dict.fromkeys(WORDS[:20], "string")})
        for name in names
    ]
    pl.DataFrame({"tool_id": names, "documentation": documents, "name": names}).with_columns(
        domain=pl.lit("web"), source=pl.lit("made up")
    ).write_parquet(folder / "tools.parquet")
    sizes = draw.choice([1, 2, 3, 4], queries, p=[0.45, 0.35, 0.15, 0.05])
    weights = draw.pareto(1.2, queries) + 0.3
    counts = 1 + np.floor(weights / weights.sum() * max(combinations - queries, 0)).astype(int)
    rows: dict[str, list[object]] = {"query_id": [], "tool_ids": [], "is_ground_truth": [], "rrf_score": []}
    truth, labels = [], []
    for number in range(queries):
        size, count = int(sizes[number]), min(int(counts[number]), 5000)
        width = int(np.ceil(count ** (1 / size))) + 1
        pool = draw.choice(tools, (size, width), replace=False)
        labels.append([names[tool] for tool in pool.ravel()])
        truth.append([names[tool] for tool in pool[:, 0]])
        for index in range(count):
            digits = [(index // width**place) % width for place in range(size)]
            rows["query_id"].append(f"query_{number}")
            rows["tool_ids"].append([names[pool[place, digit]] for place, digit in enumerate(digits)])
            rows["is_ground_truth"].append(index == 0)
            rows["rrf_score"].append(1.0 / (60 + index))
    ids = [f"query_{number}" for number in range(queries)]
    pl.DataFrame(
        {
            "query_id": ids,
            "text": [sentence(dice, 18) for _ in ids],
            "instruction": ["Find the tools for this request: " + sentence(dice, 8) for _ in ids],
            "domain": draw.choice(DOMAINS, queries, p=[0.22, 0.66, 0.12]).tolist(),
            "source": ["made up"] * queries,
        }
    ).write_parquet(folder / "queries.parquet")
    pl.DataFrame({"query_id": ids, "tool_ids": truth}).write_parquet(folder / "ground_truth.parquet")
    pl.DataFrame(rows).with_columns(
        verdict=pl.lit("valid"), reason=pl.lit(sentence(dice, 20)), judge=pl.lit("made up")
    ).write_parquet(folder / "combinations.parquet")
    return labels


def write_run(path: Path, labels: list[list[str]], tools: int, seed: int) -> None:
    """A run that finds some of every label, at depth 100."""
    draw = np.random.default_rng(seed)
    frames = []
    for number, labelled in enumerate(labels):
        found = [tool for tool in labelled if draw.random() < 0.35 + 0.05 * seed]
        others = [f"tool_{tool}" for tool in draw.choice(tools, DEPTH, replace=False)]
        ranked = list(dict.fromkeys([*found, *others]))[:DEPTH]
        place = draw.permutation(20)
        head = [ranked[i] for i in place if i < len(ranked)]
        frames.append((f"query_{number}", [*head, *ranked[20:]]))
    frame = pl.DataFrame(frames, schema={"query_id": pl.String, "tool_id": pl.List(pl.String)}, orient="row")
    scores = pl.int_range(DEPTH, 0, -1, dtype=pl.Int64).cast(pl.Float64)
    exploded = frame.explode("tool_id")
    exploded.with_columns(score=scores.over("query_id") if exploded.height else scores).write_parquet(path)


def fill(site: Site, scratch: Path, asked: argparse.Namespace) -> list[str]:
    """The benchmark with published runs and their statistics; returns run ids."""
    labels = write_benchmark(scratch / "scale", asked.queries, asked.tools, asked.combinations)
    import_into_store(site, read_benchmark_folder(scratch / "scale"))
    ids = []
    for number in range(asked.runs):
        path = scratch / f"run_{number}.parquet"
        write_run(path, labels, asked.tools, number)
        checked = check_run(site, path, "scale")
        if checked.scores is None:
            raise SystemExit(f"the run was refused: {checked.reading.report.problems[:3]}")
        name = f"Retriever {number} with a long descriptive name, fine-tuned"
        ids.append(submit_run(site, checked, path, SubmissionMetadata(retriever=name), publish=True))
    failures = compute(site, pending(site), lambda line: None)
    if failures:
        raise SystemExit("\n".join(failures))
    return ids


class Reader:
    """One browser tab without the browser."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("http", "ws", 1) + "/_stcore/stream"
        self.session = ""
        self.bytes = 0

    async def __aenter__(self) -> Reader:
        """Connect."""
        self.socket = await websockets.connect(self.address, subprotocols=["streamlit"], max_size=None)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the tab."""
        await self.socket.close()

    async def ask(self, page: str, **query: str | list[str]) -> float:
        """Milliseconds from asking for a page to its completion."""
        message = BackMsg()
        message.rerun_script.query_string = urlencode(query, doseq=True)
        message.rerun_script.page_name = page
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            data = await self.socket.recv()
            self.bytes += len(data)
            answer = ForwardMsg()
            answer.ParseFromString(data)
            kind = answer.WhichOneof("type")
            if kind == "delta" and answer.delta.new_element.WhichOneof("type") == "exception":
                raise SystemExit(f"the page failed: {answer.delta.new_element.exception.message}")
            # A script that calls st.rerun ends with another status and begins again.
            if kind == "script_finished" and answer.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return 1000 * (time.perf_counter() - start)


async def opened(address: str, page: str, queries: list[dict[str, str | list[str]]]) -> list[float]:
    """Each address in a session of its own."""
    taken = []
    for query in queries:
        async with Reader(address) as reader:
            start = time.perf_counter()
            await reader.ask(page, **query)
            taken.append(1000 * (time.perf_counter() - start))
    return taken


async def typed(address: str, page: str, queries: list[dict[str, str | list[str]]]) -> list[float]:
    """All addresses one after another in one open session."""
    async with Reader(address) as reader:
        await reader.ask(page, **queries[0])
        return [await reader.ask(page, **query) for query in queries]


async def measure(address: str, ids: list[str], asked: argparse.Namespace) -> None:
    """Ask for every page, and print."""
    base: dict[str, str | list[str]] = {"q_benchmark": "scale@1", "q_run": ids[:2]}
    many: dict[str, str | list[str]] = {"q_benchmark": "scale@1", "q_run": ids[:6]}
    dice = random.Random(3)
    chosen = [f"query_{number}" for number in dice.sample(range(asked.queries), asked.repeat)]
    words = [" ".join(dice.sample(WORDS, 1 + place % 2)) for place in range(asked.repeat)]
    ranks: dict[str, str | list[str]] = {"er_benchmark": "scale@1", "er_run": ids[:2]}
    pair: dict[str, str | list[str]] = {"cmp_benchmark": "scale@1", "cmp_base": ids[0], "cmp_tuned": ids[1]}
    steps: list[tuple[str, Callable[[], Awaitable[list[float]]], float | None]] = [
        ("a page with text only, first time", lambda: opened(address, "run", [{}]), None),
        ("a page with text only", lambda: opened(address, "run", [{}] * asked.repeat), None),
        ("first page with the benchmark", lambda: opened(address, "queries", [base]), None),
        ("the list of queries", lambda: opened(address, "queries", [base] * asked.repeat), None),
        ("a query, two runs", lambda: opened(address, "queries", [base | {"q_query": q} for q in chosen]), 300),
        ("a query, all runs (six at most)",
         lambda: opened(address, "queries", [many | {"q_query": q} for q in chosen]), 300),
        ("a search of all texts", lambda: typed(address, "queries", [base | {"q_text": text} for text in words]), 300),
        ("largest disagreement", lambda: typed(
            address, "queries", [base | {"q_sort": "largest disagreement", "q_text": text} for text in words]), 300),
        ("equivalent ranks, first time", lambda: opened(address, "equivalent-ranks", [ranks]), None),
        ("equivalent ranks", lambda: opened(address, "equivalent-ranks", [ranks] * asked.repeat), None),
        ("equivalent ranks, another domain", lambda: typed(
            address, "equivalent-ranks", [ranks | {"er_domain": DOMAINS[i % 3]} for i in range(asked.repeat)]), None),
        ("compare, first time", lambda: opened(address, "compare", [pair]), None),
        ("compare", lambda: opened(address, "compare", [pair] * asked.repeat), None),
    ]  # fmt: skip
    for name, step, target in steps:
        taken = await step()
        median = statistics.median(taken)
        verdict = "" if target is None else f"   target {target:.0f} ms: {'met' if median <= target else 'MISSED'}"
        print(f"{name:<35} median {median:6.0f} ms   slowest {max(taken):6.0f} ms   n = {len(taken)}{verdict}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=12)
    parser.add_argument("--queries", type=int, default=7360)
    parser.add_argument("--tools", type=int, default=43_000)
    parser.add_argument("--combinations", type=int, default=39_087)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(home=Path(scratch) / "home", demo_runs=False)
        site = open_site(settings)
        site.database.migrate()
        ids = fill(site, Path(scratch), asked)
        site.database.close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command, environment, folder = server_command(settings, "127.0.0.1", port)
        environment = os.environ | environment | {"EQUIRANK_DEMO_RUNS": "false"}
        address = f"http://127.0.0.1:{port}"
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                wait_for(address, server)
                size = f"{asked.queries:,} queries, {asked.tools:,} tools, {asked.runs} runs of depth {DEPTH}"
                print(f"{size}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
                asyncio.run(measure(address, ids, asked))
            finally:
                server.terminate()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return once the site answers."""
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit("the site did not start")
        try:
            with urllib.request.urlopen(f"{address}/api/v1/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the site did not answer within two minutes")


if __name__ == "__main__":
    main()
