"""Analyses of runs over fields: figures as the methods give them, what is missing, and the job that makes it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from scipy.stats import permutation_test

from pipeline.errors import ModelError, UsageError
from pipeline.jobs import durable
from pipeline.jobs.fields import analyses as field_analyses
from pipeline.jobs.fields import analysis_requests as field_analysis_requests
from pipeline.jobs.job_client import JobState
from pipeline.jobs.site import Site
from store.access import field_analyses as stored
from store.access import runs
from tests.dashboard.measured_runs import measured


@pytest.fixture
def site(sqlite_site: Site) -> Generator[Site]:
    yield sqlite_site
    durable.close_job_client(sqlite_site)


def figure(frame: pl.DataFrame, key: str, view: str = "new", metric: str = "NDCG") -> float:
    return float(frame.filter(key=key, view=view, metric=metric)["value"].item())


def summary(site: Site, run_id: str, view: str, metric: str = "NDCG") -> float:
    with site.database.reading() as session:
        found = runs.summaries(session, run_id)
    return float(found.filter(view=view, metric=metric, k=10, average="micro")["value"].item())


def test_figures_of_a_run_without_a_language_model(site: Site) -> None:
    full_doc, mftr = measured(site), measured(site, "mftr", method_preset="paper")
    fields = field_analyses.analysis(site, mftr, "fields")
    assert fields["key"].unique(maintain_order=True).to_list() == [
        "whole", "description", "parameters", "response", "examples",
    ]  # fmt: skip
    unknown = fields.filter(pl.col("value").is_null())
    assert set(unknown["key"]) == {"parameters", "examples"}, "no query has arguments, no demo tool has examples"
    variants = field_analyses.analysis(site, mftr, "variants")
    keys = variants["key"].unique(maintain_order=True).to_list()
    assert "rewrite-only" not in keys and "weighting-rewrite" not in keys, "nobody rewrote a query"
    assert keys == [
        "full-doc", "standardized-only", "weighting-only", "weighting-standardized", "without-weighting",
        "without-penalty", "mftr",
    ]  # fmt: skip
    for view in ("old", "new"):
        # Whatever a stored run says is what its analysis says.
        assert figure(fields, "whole", view) == pytest.approx(summary(site, mftr, view), abs=1e-12)
        assert figure(variants, "mftr", view) == pytest.approx(summary(site, mftr, view), abs=1e-12)
        assert figure(variants, "full-doc", view) == pytest.approx(summary(site, full_doc, view), abs=1e-12)
        assert figure(variants, "weighting-standardized", view) == pytest.approx(figure(variants, "mftr", view))
    masking = field_analyses.analysis(site, mftr, "masking")
    assert figure(masking, "whole") == pytest.approx(summary(site, full_doc, "new"), abs=1e-12)
    assert figure(masking, "description") < figure(masking, "whole")


def test_tests_are_against_the_strongest_baseline(site: Site) -> None:
    full_doc, mftr = measured(site), measured(site, "mftr", method_preset="v2")
    found = field_analyses.analysis(site, mftr, "tests").filter(view="new", metric="NDCG").row(0, named=True)
    assert (found["baseline_run"], found["baseline"], found["queries"]) == (full_doc, "full-doc", 111)
    with site.database.reading() as session:
        frames = [
            site.artifacts.get_frame(str(runs.get(session, run).per_query_artifact))["new_NDCG@10"].to_numpy()
            for run in (mftr, full_doc)
        ]
    difference = frames[0] - frames[1]
    assert found["value"] - found["baseline_value"] == pytest.approx(difference.mean())
    expected = permutation_test(
        (difference,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    )
    assert found["p"] == pytest.approx(expected.pvalue, abs=0.01)


def test_pending_is_what_is_missing_and_what_changed(site: Site) -> None:
    mftr = measured(site, "mftr", method_preset="paper")
    assert set(field_analyses.pending(site)[mftr]) == {"tests", "fields", "variants", "masking"}, "a demo benchmark"
    field_analyses.analysis(site, mftr, "fields")
    empty = field_analyses.analysis(site, mftr, "tests")
    assert empty.is_empty() and empty.schema == field_analyses.TESTS, "nothing to compare with yet"
    assert set(field_analyses.pending(site)[mftr]) == {"variants", "masking"}
    full_doc = measured(site)
    assert set(field_analyses.pending(site)[mftr]) == {"tests", "variants", "masking"}, "a baseline landed"
    assert full_doc not in field_analyses.pending(site)
    with pytest.raises(UsageError, match="not over fields"):
        field_analyses.analysis(site, full_doc, "fields")


def test_one_failure_leaves_the_rest(site: Site) -> None:
    mftr = measured(site, "mftr", method_preset="paper")
    lines: list[str] = []
    failures = field_analyses.compute(site, mftr, ["weather", "tests"], lines.append)
    assert len(failures) == 1 and "weather" in failures[0]
    with site.database.reading() as session:
        assert list(stored.of_run(session, mftr)) == ["tests"]


def test_the_job(site: Site) -> None:
    mftr = measured(site, "mftr", method_preset="paper")
    assert field_analysis_requests.look(site, mftr) is None
    job_id = field_analysis_requests.ask(site, mftr, ["fields", "tests"])
    assert field_analysis_requests.ask(site, mftr, ["tests", "fields"]) == job_id, "the same work is the same job"
    waiting = field_analysis_requests.look(site, mftr)
    assert waiting is not None and waiting.state is JobState.WAITING and "worker" in waiting.waiting_for
    _work(site, job_id)
    done = field_analysis_requests.look(site, mftr)
    assert done is not None and done.state is JobState.DONE and done.failures == ()
    with site.database.reading() as session:
        assert set(stored.of_run(session, mftr)) == {"fields", "tests"}


def test_a_worker_asks_for_one_kind_a_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.jobs.fields import analysis_workflow

    mftr = measured(site, "mftr", method_preset="paper")
    field_analyses.analysis(site, mftr, "tests")
    analysis_workflow.request_missing(site)
    analysis_workflow.request_missing(site)
    jobs = durable.job_client(site).list_workflows(workflow_id_prefix=f"fields-{mftr}-")
    assert sorted(job.input["args"][1] for job in jobs) == [["fields"], ["masking"], ["variants"]]
    assert all(job.priority > 10 for job in jobs), "a person's evaluation goes first"
    assert field_analysis_requests.look(site, mftr, ["tests"]) is None
    # One kind was made by a job, another one failed, the third still waits.
    monkeypatch.setattr(field_analyses, "_variants", _fails)
    ids = {job.input["args"][1][0]: job.workflow_id for job in jobs}
    durable.job_client(site).cancel_workflow(ids["masking"])
    _work(site, ids["fields"], ids["variants"])
    together = field_analysis_requests.look(site, mftr)
    assert together is not None and together.state is JobState.CANCELLED
    assert together.failures == ("variants: the texts are gone",)
    made = field_analysis_requests.look(site, mftr, ["fields"])
    assert made is not None and made.state is JobState.DONE and made.failures == ()
    field_analysis_requests.ask(site, mftr, ["masking"])
    again = field_analysis_requests.look(site, mftr)
    assert again is not None and again.state is JobState.WAITING and again.failures == ()


def test_a_run_that_cannot_be_analysed_leaves_the_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.jobs.fields import analysis_workflow

    asked: list[tuple[str, tuple[str, ...]]] = []

    def enqueue(_site: Site, run_id: str, kinds: tuple[str, ...], *, priority: int) -> str:
        if run_id == "gone":
            raise ModelError("not allowed any more")
        asked.append((run_id, kinds))
        return ""

    monkeypatch.setattr(analysis_workflow, "enqueue", enqueue)
    monkeypatch.setattr(field_analyses, "pending", lambda _site: {"gone": ("tests",), "here": ("tests", "fields")})
    analysis_workflow.request_missing(site)
    assert asked == [("here", ("tests",)), ("here", ("fields",))]


def _fails(*_: object) -> list[object]:
    raise UsageError("the texts are gone")


def _work(site: Site, *job_ids: str) -> None:
    """Be the worker until jobs have ended, in this process."""
    from dbos import DBOS

    from pipeline.jobs import worker_site
    from pipeline.jobs.fields import analysis_workflow as field_analysis_workflow

    del field_analysis_workflow  # imported for its workflow
    worker_site.use_site(site)
    try:
        DBOS(config=durable.worker_config(site, durable.EMBEDDED))
        DBOS.listen_queues(["cpu"])
        DBOS.launch()
        for job_id in job_ids:
            with suppress(Exception):
                DBOS.retrieve_workflow(job_id).get_result()
    finally:
        DBOS.destroy()
