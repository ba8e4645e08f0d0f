"""Score and cost: what is drawn, what is said, what is left out."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from streamlit.testing.v1 import AppTest

from dashboard.charts.pareto_plot import frontier
from dashboard.components.cost import COSTS, small_number, with_costs
from dashboard.components.cost_words import cost_finding, left_out
from pipeline.jobs.site import Site
from store.access import benchmarks, leaderboard
from store.access.efficiency import EFFICIENCY_COLUMNS
from tests.dashboard.dashboard_app import open_page


def said(app: AppTest) -> str:
    parts = [*app.title, *app.markdown, *app.caption, *app.info]
    return "\n".join(str(element.value) for element in parts).replace("\\", "")


def opened(app: AppTest, **query: str) -> AppTest:
    open_page(app, "score_and_cost", **query)
    assert not app.exception and not app.error, [*app.exception, *app.error]
    return app


def test_the_papers_retrievers_by_size(site: Site, app: AppTest) -> None:
    opened(app)
    text = said(app)
    assert "Tool-Embed-0.6B reaches 96 % of the best score (54.7 against 57.1 of Tool-Embed-4B)" in text.replace(
        "*", ""
    )
    assert "not drawn, since the figure is not known: BM25" in text
    data = app.dataframe[0].value
    best = data.loc[data["nothing beats it"] == "yes", "Retriever"].tolist()
    assert best == ["Qwen3-Embedding-0.6B", "Tool-Embed-0.6B", "Tool-Embed-4B"]
    assert app.segmented_control(key="cost_axis").options == ["size", "dimension"], "nothing was measured here"


def test_one_label_figures_and_sub_queries(site: Site, app: AppTest) -> None:
    opened(app, cost_view="one label", cost_level="sub-query")
    assert len(app.dataframe[0].value) > 3


def test_an_empty_board_invites(site: Site, app: AppTest) -> None:
    opened(app, cost_benchmark="demo-tools@1")
    assert "No run of" in said(app)


def test_unknown_costs_are_said(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    submitted("A retriever nobody knows")
    opened(app, cost_benchmark="demo-tools@1")
    assert "Nothing is known about the cost" in said(app)


def test_no_benchmark_at_all(bare_site: Site, app: AppTest) -> None:
    opened(app)
    assert "No benchmark is stored yet" in said(app)


def test_measured_figures_go_before_printed_ones(site: Site) -> None:
    with site.database.reading() as session:
        version = benchmarks.get(session, "tooleq")
        board = leaderboard.leaderboard(session, version.id)
    first, second = board["run_id"].to_list()[:2]
    row = dict.fromkeys(EFFICIENCY_COLUMNS) | {"run_id": first, "dimension": 7, "query_ms": 1.5, "device": "cpu"}
    joined = with_costs(board, pl.DataFrame([row], schema=EFFICIENCY_COLUMNS))
    assert joined["run_id"].to_list() == board["run_id"].to_list()
    by_id = {item["run_id"]: item for item in joined.iter_rows(named=True)}
    assert (by_id[first]["dimension"], by_id[first]["query_ms"]) == (7, 1.5)
    assert by_id[first]["parameters"] == board["parameters"][0]
    assert by_id[second]["dimension"] == board["dimension"][1] and by_id[second]["device"] is None
    assert {cost.column for cost in COSTS.values()} <= set(joined.columns)


def test_costs_are_written_short() -> None:
    assert [small_number(value) for value in (0.0523, 3.44, 78.6, 1234.5)] == ["0.052", "3.4", "79", "1\u202f234"]


def drawn_rows(*rows: tuple[str, float, float]) -> pl.DataFrame:
    """Rows (name, cost, score) as they are drawn."""
    board = pl.DataFrame(
        {
            "run_id": [str(i) for i in range(len(rows))],
            "retriever": [name for name, _, _ in rows],
            "family": [""] * len(rows),
            "method": ["full-doc"] * len(rows),
            "contract": [""] * len(rows),
            "level": ["query"] * len(rows),
            "parameters": [cost for _, cost, _ in rows],
            "new": [score for _, _, score in rows],
        }
    )
    best = frontier(board["parameters"].to_list(), board["new"].to_list())
    return board.select("run_id", name="retriever", cost="parameters", score="new").with_columns(
        best=pl.Series(best, dtype=pl.Boolean)
    )


def test_ties_in_cost_are_no_win() -> None:
    size = COSTS["size"]
    same = cost_finding(drawn_rows(("A", 22.7e6, 0.9), ("B", 22.7e6, 0.5), ("C", 22.7e6, 0.4)), size)
    assert same.startswith("All 3 drawn rows cost the same, ") and "lowest" not in same and "A" not in same[1:]
    shared = cost_finding(drawn_rows(("A", 10e6, 0.9), ("B", 10e6, 0.5), ("C", 90e6, 0.4)), size)
    assert "1 other row costs as little" in shared and "lowest cost" not in shared
    level = cost_finding(drawn_rows(("A", 10e6, 0.9), ("B", 10e6, 0.9), ("C", 90e6, 0.4)), size)
    assert level == "**A and B** share the highest score at the lowest cost."
    alone = cost_finding(drawn_rows(("A", 10e6, 0.9), ("B", 90e6, 0.5)), size)
    assert alone == "**A** has the highest score and the lowest cost of the 2 drawn rows."


def test_rows_without_the_figure_are_counted() -> None:
    board = pl.DataFrame(
        {"run_id": ["0", "1", "2"], "retriever": ["A", "BM25", "BM25"], "new": [0.5, 0.4, 0.6], "old": [0.5, None, 0.4]}
    )
    drawn = board.head(1).with_columns(score="new")
    said = "2 of the 3 rows are not drawn, since the figure is not known: BM25."
    assert left_out(board, drawn, "old") == said
    assert left_out(board, drawn, "new") == f"{said} 1 of them scores higher than all that are drawn."
    assert left_out(board, board.with_columns(score="new"), "new") == ""
