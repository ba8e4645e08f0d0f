"""litellm is imported late, talks to nobody but the model's server, and prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.llm_server import Fault, LlmServer
from tests.pipeline.llm.conftest import echo

REPOSITORY = Path(__file__).resolve().parents[3]

WORK = """
    import socket, sys
    elsewhere = []
    real = socket.getaddrinfo

    def watched(host, *rest, **more):
        if host not in ("127.0.0.1", "localhost", None):
            elsewhere.append(host)
            raise OSError("this test has no network")
        return real(host, *rest, **more)

    socket.getaddrinfo = watched
    import pipeline.jobs.llm_answers, pipeline.llm.batch_import, pipeline.llm.batch_export, pipeline.llm.estimate
    from pipeline.llm.client import LiveAsker
    from pipeline.llm.config import AskingConfig
    from pipeline.llm.memory import MemoryAnswers
    from tests.pipeline.llm.conftest import make_question
    assert "litellm" not in sys.modules
    config = AskingConfig(base_url=sys.argv[1], backoff_seconds=0.01)
    outcomes = LiveAsker(MemoryAnswers(), config).ask([make_question(str(number)) for number in range(20)])
    assert all(outcome.value for outcome in outcomes)
    assert elsewhere == [], elsewhere
    print("finished")
"""


@pytest.mark.slow
def test_no_import_no_network_no_output(tmp_path):
    faults = [Fault.error(500), Fault.rate_limit(0.01), Fault.drop(), Fault.error(400)]
    with LlmServer(echo, faults=faults) as server:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(WORK), server.url],
            cwd=REPOSITORY,
            env={name: value for name, value in os.environ.items() if "LITELLM" not in name} | {"PYTHONPATH": "."},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "finished\n", "")
