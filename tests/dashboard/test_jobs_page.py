"""Jobs: what waits and runs beside evaluations."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from streamlit.testing.v1 import AppTest

from pipeline.jobs import durable
from pipeline.jobs.queues import register_queues
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import ANALYSE_FIELDS, ANNOTATE
from tests.dashboard.dashboard_app import open_page


@pytest.fixture
def jobs_site(site: Site) -> Generator[Site]:
    """The prepared site, with the way into its jobs closed at the end."""
    yield site
    durable.close_job_client(site)


def test_analyses_and_expansions_are_named_among_all_jobs(jobs_site: Site, app: AppTest) -> None:
    client = durable.job_client(jobs_site)
    register_queues(client)
    for name, queue in ((ANALYSE_FIELDS, "cpu"), (ANNOTATE, "llm")):
        client.enqueue({"workflow_name": name, "queue_name": queue, "workflow_id": name})
    open_page(app, "jobs", jobs_whose="all jobs")
    assert not app.exception
    said = "\n".join(str(element.value) for element in [*app.markdown, *app.caption])
    assert "Beside evaluations: " in said
    assert "an analysis of an MFTR run, waiting for " in said and "an expansion, waiting for " in said
    assert "No job yet" in said, "none that the table lists"
    app.button_group(key="jobs_whose").set_value("my jobs").run()
    assert "Beside evaluations" not in "\n".join(str(element.value) for element in app.caption), "nobody's own"
