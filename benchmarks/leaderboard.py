"""How long the leaderboard page takes: 200 published runs with stored statistics on each of two benchmarks.

    python benchmarks/leaderboard.py [--runs 200] [--repeat 15]

Prints the median and the slowest time of a warm rerun of the whole page script (database stamp, frame, filters,
table and its serialisation), of a switch to a figure that was not shown before, and of the first page of a process.
The targets for a warm page on two cores: 300 ms with 200 runs, 500 ms with ``--runs 1000``.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from streamlit.testing.v1 import AppTest

from dashboard.current_site import use_site
from pipeline.jobs.site import Site, open_site
from store.access import benchmarks, retrievers, runs
from store.access import statistics as statistics_access
from store.models import BenchmarkVersion, Retriever, Run
from store.records import Summary
from store.settings import Settings

APP = Path(__file__).resolve().parent.parent / "dashboard" / "app.py"
DOMAINS = ("code", "web", "customized")


def figures(dice: random.Random) -> list[Summary]:
    """All figures of one made-up run: 3 metrics, 4 cutoffs, macro, micro and 3 domains, old and new."""
    made = []
    for metric in ("NDCG", "Recall", "Comp"):
        for k in (1, 5, 10, 20):
            for average, domain in [("macro", ""), ("micro", ""), *(("domain", name) for name in DOMAINS)]:
                old = dice.uniform(0.1, 0.6)
                for view, value in (("old", old), ("new", old + dice.uniform(0.0, 0.2))):
                    low, high = value - 0.02, value + 0.02
                    made.append(Summary(view, metric, k, average, value, domain=domain, low=low, high=high, n=1000))
    return made


def lifts_of(summaries: list[Summary]) -> pl.DataFrame:
    """What a job would have made of a run's lifts."""
    rows = [
        (s.metric, s.k, s.average, s.domain, 0.05, 0.15, 0.01, 0.0, 0.02, 0.7) for s in summaries if s.view == "new"
    ]
    return pl.DataFrame(rows, schema=statistics_access.LIFTS, orient="row")


def tie_groups_of(run_ids: list[str], summaries: list[Summary]) -> pl.DataFrame:
    """A group of eight runs each, in every figure."""
    figure = [(s.view, s.metric, s.k, s.average, s.domain) for s in summaries]
    rows = [(*of, run_id, place // 8 + 1) for of in figure for place, run_id in enumerate(run_ids)]
    columns = ["view", "metric", "k", "average", "domain", "run_id", "group"]
    return pl.DataFrame(rows, schema=columns, orient="row").cast({"k": pl.Int64, "group": pl.Int64})


def fill(site: Site, count: int) -> None:
    """Two benchmarks with ``count`` published runs each."""
    dice = random.Random(7)
    ranking = site.artifacts.put_frame(pl.DataFrame({"query_id": ["q"], "tool_id": ["t"], "score": [1.0]}))
    with site.database.session() as session:
        for slug in ("tooleq", "second"):
            version = benchmarks.add_version(
                session,
                BenchmarkVersion(
                    slug=slug, version="1", title=slug, kind="tool", headline="macro", content_hash=slug.ljust(64, "0"),
                    queries=1000, tools=5000, domains=[{"name": name, "n": 333} for name in DOMAINS],
                ),
            )  # fmt: skip
            ids: list[str] = []
            for number in range(count):
                retriever = retrievers.upsert(
                    session,
                    Retriever(
                        key=f"retriever-{number}", name=f"Retriever number {number}", family=f"Family {number % 12}",
                        parameters=dice.randrange(20_000_000, 8_000_000_000), fine_tuned=number % 3 == 0,
                        open_weights=True,
                    ),
                )  # fmt: skip
                run = Run(
                    benchmark_version_id=version.id, retriever_id=retriever.id, provenance="uploaded",
                    state="published", ranking_artifact=ranking, ranking_hash=f"{number:064x}", scorer_version="1",
                    queries_total=1000, queries_answered=1000 - number % 7, missing=number % 7,
                    flags=["ties"] if number % 5 == 0 else [],
                )  # fmt: skip
                made = figures(dice)
                stored = runs.add_run(session, run, made, artifacts=site.artifacts).id
                intervals = pl.DataFrame(
                    [(s.view, s.metric, s.k, s.average, s.domain, s.low, s.high) for s in made],
                    schema=statistics_access.INTERVALS,
                    orient="row",
                )
                statistics_access.set_run_statistics(
                    session, stored, intervals=intervals, lifts=lifts_of(made), artifact=ranking, version="1",
                    artifacts=site.artifacts,
                )  # fmt: skip
                ids.append(stored)
            groups = site.artifacts.put_frame(tie_groups_of(ids, made))
            statistics_access.set_of_board(
                session, version.id, computed_from="made up", tie_groups_artifact=groups, gains_artifact=ranking,
                artifacts=site.artifacts,
            )  # fmt: skip


def timed(step: Callable[[], object], repeat: int) -> list[float]:
    """Milliseconds of each repetition."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        step()
        taken.append(1000 * (time.perf_counter() - start))
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        site = open_site(Settings(home=Path(scratch) / "home"))
        site.database.migrate()
        fill(site, asked.runs)
        use_site(site)
        app = AppTest.from_file(str(APP), default_timeout=60)
        first = timed(app.run, 1)
        assert not app.exception, app.exception
        rows = len(app.dataframe[0].value)
        warm = timed(app.run, asked.repeat)
        choices = [(metric, k) for metric in ("NDCG", "Recall", "Comp") for k in (1, 5, 10, 20)]
        switches = []
        for metric, k in choices[1:]:
            app.segmented_control(key="lb_metric").set_value(metric)
            app.selectbox(key="lb_k").set_value(k)
            switches += timed(app.run, 1)
        app.selectbox(key="lb_benchmark").set_value("second@1")
        other = timed(app.run, 1)
        use_site(None)
        site.database.close()
    print(f"{rows} rows on the board, 2 benchmarks × {asked.runs} runs")
    for name, taken in (
        ("first page of the process", first),
        ("warm page", warm),
        ("another figure, not kept yet", switches),
        ("another benchmark, not kept yet", other),
    ):
        print(f"{name:<32} median {statistics.median(taken):6.0f} ms   slowest {max(taken):6.0f} ms   n = {len(taken)}")


if __name__ == "__main__":
    main()
