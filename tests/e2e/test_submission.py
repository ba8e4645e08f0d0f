"""A run file dropped in a real browser becomes a leaderboard row that others see at its permalink."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Served
from tests.e2e.pages import cells, download, figures, open_page, settle, upload

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Run file → (benchmark, source of its rows, NDCG@10 as the page writes it).
RUNS = {
    "gorilla_apibench_tensorflowhub_gpt_index.trec": ("gorilla-tensor", "1.0 → 39.6"),
    "gorilla_apibench_torchhub_gpt_index.trec": ("gorilla-pytorch", None),
    "gorilla_apibench_huggingface_gpt_index.trec": ("gorilla-huggingface", None),
}
POSTGRES_RUN = "gorilla_apibench_tensorflowhub_gpt_index.trec"

pytestmark = [pytest.mark.browser, pytest.mark.shared, pytest.mark.slow]


def import_benchmarks(site: Served, shared: Path, folder: Path, files: list[str]) -> None:
    """Build the benchmark of every run file from the real rows, and import it."""
    for file in files:
        slug = RUNS[file][0]
        subprocess.run(
            [sys.executable, str(shared / "checks" / "make_benchmark.py"), str(shared / "data"), str(folder), slug,
             "--source", slug, "--basis", "identical api_call"],
            check=True, capture_output=True,
        )  # fmt: skip
        site.equirank("benchmark", "import", str(folder / slug))


def publish_and_check(site: Served, browser: Browser, shared: Path, file: str, folder: Path) -> None:
    """Upload, read the report, publish, and open the permalink as somebody else."""
    slug, printed = RUNS[file]
    expected = json.loads((shared / "data" / "runs" / "expected.json").read_text())["runs"][file]
    page = open_page(browser, f"{site.url}/submit?submit_benchmark={slug}%401")
    upload(page, shared / "data" / "runs" / file)
    report = page.get_by_test_id("stMain")
    expect(report).to_contain_text("accepted")
    answered = f"{expected['queries'] - expected['missing']:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    expect(report).to_contain_text(answered)
    if printed is not None:
        expect(report).to_contain_text(printed)
    # Typed and left without Enter: the name that is seen is the name that is published.
    page.get_by_role("textbox", name="Retriever", exact=True).fill(f"Gorilla {slug}")
    page.get_by_role("button", name="Publish").click()
    page.get_by_text("is on the leaderboard of").wait_for()
    permalink = page.get_by_test_id("stCode").inner_text().strip()
    page.get_by_text("See it on the leaderboard").click()
    page.wait_for_url(lambda url: "lb_benchmark" in url and "run=" in url)
    settle(page)
    rows = scores(page)
    assert [f"Gorilla {slug}" in row for row in rows] == [True], rows

    other = open_page(browser, page.url)
    assert scores(other) == rows
    expect(other.get_by_test_id("stHeading").filter(has_text=f"Gorilla {slug}")).to_have_count(1)

    other.goto(permalink)
    settle(other)
    stored = figures(download(other, "Parquet", folder))
    for cutoff, views in expected["scores"].items():
        for view, metrics in views.items():
            for metric, value in metrics.items():
                assert stored[view, metric, int(cutoff.lstrip("@"))] == pytest.approx(value, abs=1e-9)
    for opened in (page, other):
        opened.context.close()


def scores(page: Page) -> list[list[str]]:
    """Rank, name and figures of every row: without the tie groups and intervals that a worker adds later."""
    return [row[:7] for row in cells(page)]


def test_three_real_runs_on_sqlite(
    new_site: Callable[..., Served], browser: Browser, shared: Path, tmp_path: Path
) -> None:
    site = new_site()
    import_benchmarks(site, shared, tmp_path / "benchmarks", list(RUNS))
    with site.running():
        for file in RUNS:
            publish_and_check(site, browser, shared, file, tmp_path)


@pytest.mark.postgres
def test_a_real_run_on_postgresql(
    new_site: Callable[..., Served], browser: Browser, shared: Path, tmp_path: Path, postgres_url: str
) -> None:
    site = new_site(postgres_url)
    import_benchmarks(site, shared, tmp_path / "benchmarks", [POSTGRES_RUN])
    with site.running():
        publish_and_check(site, browser, shared, POSTGRES_RUN, tmp_path)
