"""What the pages give to take away."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from dashboard.current_site import the_site
from store.access import benchmarks, runs
from tests.dashboard.dashboard_app import open_page


def test_a_runs_page_has_its_card_and_citation(app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Sample 100%")
    open_page(app, "run", run=run_id)
    with the_site().database.reading() as session:
        run = runs.get(session, run_id)
    codes = [code.value for code in app.code]
    assert any(run.ranking_hash in text and "equirank score RUN_FILE" in text for text in codes)
    assert any(text.startswith("@misc{equirank-") and r"Sample 100\%" in text for text in codes)


def test_a_private_runs_card_does_not_hold_its_token(app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Quiet", publish=False)
    with the_site().database.reading() as session:
        token = runs.get(session, run_id).private_token or ""
    open_page(app, "run", run=run_id, token=token)
    codes = [code.value for code in app.code]
    assert any(run_id in text for text in codes)
    assert not any(token in text for text in codes)


def test_a_benchmark_card_is_cited_by_version_and_hash(app: AppTest) -> None:
    open_page(app, "benchmarks", bm_benchmark="demo-tools@1")
    with the_site().database.reading() as session:
        version = benchmarks.get(session, "demo-tools")
    assert any(version.content_hash in code.value and "@misc{demo-tools-1" in code.value for code in app.code)
