"""``kill -9`` in the middle: what was committed is not asked again, and every request is counted."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pipeline.jobs.llm_answers import StoredAnswers
from store.database import Database
from store.settings import Settings
from tests.llm_server import LlmServer
from tests.pipeline.llm.conftest import echo, make_question

REPOSITORY = Path(__file__).resolve().parents[3]
QUESTIONS = 300
CONCURRENCY = 16

WORK = f"""
    import sys
    from pathlib import Path
    from pipeline.jobs.llm_answers import StoredAnswers
    from pipeline.llm.client import LiveAsker
    from pipeline.llm.config import AskingConfig, ProviderLimit
    from pipeline.llm.stores import Budget
    from store.database import Database
    from store.settings import Settings
    from tests.pipeline.llm.conftest import make_question

    home, url = sys.argv[1:]
    store = StoredAnswers(Database(Settings(home=Path(home))))
    config = AskingConfig(base_url=url, limit=ProviderLimit({CONCURRENCY}))
    outcomes = LiveAsker(store, config, Budget("job")).ask([make_question(f"text {{n}}") for n in range({QUESTIONS})])
    assert [outcome.value["echo"] for outcome in outcomes] == [f"text {{n}}" for n in range({QUESTIONS})]
    print("finished")
"""


def start(home: Path, url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(WORK), str(home), url]
    return subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."}
    )


@pytest.mark.slow
def test_kill_9_loses_only_what_is_in_flight(tmp_path):
    home = tmp_path / "home"
    database = Database(Settings(home=home))
    database.migrate()
    store = StoredAnswers(database)
    keys = [make_question(f"text {number}").key for number in range(QUESTIONS)]
    chance = random.Random(11)
    with LlmServer(echo, delay=0.02) as server:
        committed_at: dict[str, int] = {}
        for goal in (40, 150):
            process = start(home, server.url)
            goal += chance.randrange(30)
            deadline = time.monotonic() + 60
            while server.count < goal and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            time.sleep(0.1)  # requests that are on their way arrive
            for key in store.outcomes(keys):
                committed_at.setdefault(key, server.count)
            assert 0 < len(committed_at) < QUESTIONS
        out, _ = start(home, server.url).communicate(timeout=120)
        assert out == "finished\n"
        for request in server.requests:
            key = keys[int(json.loads(request.conversation)[1]["content"].split()[1])]
            assert request.number < committed_at.get(key, QUESTIONS * 2), "asked again after its answer was committed"
        repeated = server.count - QUESTIONS
        assert 0 <= repeated <= 2 * CONCURRENCY
    (line,) = store.meter("job")
    # A request may be recorded and killed before it left: the meter never counts too few.
    assert server.count <= line.usage.calls <= QUESTIONS + 2 * CONCURRENCY
    assert line.usage.calls - line.unfinished == QUESTIONS
    database.close()
