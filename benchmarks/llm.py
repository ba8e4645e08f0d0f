"""The client of language models against its plain peer, over a loopback server of its own.

    python benchmarks/llm.py [overhead] [cache] [estimate] [--calls 2000] [--answers 100000] [--concurrency 64]

overhead  so many verifications at concurrency 64, every call and answer committed to SQLite, against a bare loop of
          ``litellm.acompletion`` with the same requests: at most 1.2 times its time; memory flat after the warm-up
cache     the same kind of questions answered from the cache: at least 2,000 a second
estimate  270,120 verifications (13,506 sub-queries times 20): at most 2 s

The server runs in a process of its own, peers alternate, and the best of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from pipeline.jobs.llm_answers import StoredAnswers  # noqa: E402
from pipeline.llm.client import LiveAsker  # noqa: E402
from pipeline.llm.config import AskingConfig, ProviderLimit  # noqa: E402
from pipeline.llm.estimate import estimate  # noqa: E402
from pipeline.llm.prices import Price  # noqa: E402
from pipeline.llm.prompts import fence  # noqa: E402
from pipeline.llm.records import Message, Question, Sampling, Usage  # noqa: E402
from pipeline.llm.request import chat_body  # noqa: E402
from pipeline.llm.stores import Budget, StoredOutcome  # noqa: E402
from store.database import Database  # noqa: E402
from store.settings import Settings  # noqa: E402

PARTS = ("overhead", "cache", "estimate")
MODEL = "openai/verifier"
SCHEMA = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}, "supplied": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["same", "supplied", "why"],
    "additionalProperties": False,
}
ANSWER = {"same": True, "supplied": False, "why": "The operation is the same but a required value is not given."}
SERVER = """
import sys, time
from tests.llm_server import LlmServer
with LlmServer(lambda body: %r, keep_bodies=False) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def question(number: int, mark: str = "") -> Question:
    """A verification of usual size: about 2.5 KB of text."""
    document = f"Tool {number} {mark} looks things up and returns them. " * 25
    user = f"Sub-query: find thing {number}\n{fence(document, 'candidate')}\n{fence(document[::-1], 'reference')}"
    messages = (Message("system", "Judge whether the candidate does what the reference does."), Message("user", user))
    return Question(MODEL, "verify@benchmark", messages, SCHEMA, "verdict", "verify", Sampling(max_tokens=200))


class Questions(Sequence):  # type: ignore[type-arg]
    """Made when they are read."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position):  # type: ignore[no-untyped-def]
        return question(position)


def verdict(name: str, figure: float, target: float, *, at_least: bool) -> None:
    """One line: what came out, what it should be."""
    good = figure >= target if at_least else figure <= target
    bound = "at least" if at_least else "at most"
    print(f"  {name}: {figure:,.2f} ({bound} {target:g}) {'met' if good else 'MISSED'}", flush=True)


def resident_mb() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def bare(url: str, questions: Sequence[Question], concurrency: int) -> None:
    """What anybody would write."""
    import litellm

    rest = iter(questions)

    async def worker() -> None:
        for item in rest:
            response = await litellm.acompletion(
                model=MODEL, **chat_body(item), api_base=url, api_key="none", max_retries=2, timeout=60
            )
            assert response.choices[0].message.content

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def overhead(calls: int, concurrency: int, folder: Path) -> None:
    """Ours against bare, alternating."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    database = Database(Settings(home=folder / "overhead"))
    database.migrate()
    answer = SERVER % (ANSWER,)
    server = subprocess.Popen(
        [sys.executable, "-c", answer], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdin is not None
    try:
        url = server.stdout.readline().strip()
        config = AskingConfig(base_url=url, limit=ProviderLimit(concurrency), prices={MODEL: Price(1e-7, 1e-7)})
        times: tuple[list[float], list[float]] = ([], [])
        memory = 0.0
        for repetition in range(4):
            asker = LiveAsker(StoredAnswers(database), config, Budget("benchmark", 1_000.0))
            size = calls if repetition else 200
            start = time.perf_counter()
            asker.ask([question(number, f"r{repetition}") for number in range(size)])
            ours = time.perf_counter() - start
            if repetition == 1:
                memory = resident_mb()
            start = time.perf_counter()
            asyncio.run(bare(url, [question(number) for number in range(size)], concurrency))
            peer = time.perf_counter() - start
            if repetition:
                times[0].append(ours)
                times[1].append(peer)
                print(f"  {size:,} calls: ours {ours:.2f} s, bare {peer:.2f} s", flush=True)
        verdict("time against a bare loop", min(times[0]) / min(times[1]), 1.2, at_least=False)
        verdict("MiB more after twice as many calls", resident_mb() - memory, 30, at_least=False)
    finally:
        server.stdin.close()
        server.wait(timeout=30)
        database.close()


def cache(answers: int, folder: Path) -> None:
    """Bulk reads, JSON and all."""
    database = Database(Settings(home=folder / "cache"))
    database.migrate()
    store = StoredAnswers(database)
    for start in range(0, answers, 10_000):
        batch = [question(number) for number in range(start, min(answers, start + 10_000))]
        store.record_batch(
            [],
            [
                StoredOutcome(q.key, ANSWER, "", MODEL, q.prompt, "verify", 1, Usage(1, 700, 30, 0.0, 1.0))
                for q in batch
            ],
            Budget("benchmark"),
        )
    best = 0.0
    for _ in range(3):
        batch = [question(number) for number in range(0, answers, max(1, answers // 10_000))]
        start_time = time.perf_counter()
        outcomes = LiveAsker(store).ask(batch)
        best = max(best, len(batch) / (time.perf_counter() - start_time))
        assert all(getattr(outcome, "cached", False) for outcome in outcomes)
    verdict(f"answers a second of {answers:,} stored, keys included", best, 2_000, at_least=True)
    database.close()


def estimation() -> None:
    """ToolEq's stage 2."""
    start = time.perf_counter()
    (line,) = estimate(Questions(13_506 * 20), prices={MODEL: Price(1e-7, 1e-7)})
    verdict(f"seconds for {line.calls:,} verifications", time.perf_counter() - start, 2, at_least=False)


def main() -> None:
    """Run the parts that are named, else all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args()
    if set(options.parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="equirank-llm-") as name:
        for part in options.parts or PARTS:
            print(part, flush=True)
            if part == "overhead":
                overhead(options.calls, options.concurrency, Path(name))
            elif part == "cache":
                cache(options.answers, Path(name))
            else:
                estimation()


if __name__ == "__main__":
    main()
