from __future__ import annotations

from datetime import timedelta

import pytest

from store.access import retrievers, runs
from store.access.leaderboard import RUN_COLUMNS, available, headline, leaderboard, paired_table, scores
from store.errors import NotFound
from store.models import Retriever, utc_now
from store.records import Summary


@pytest.fixture
def publish(database, artifacts, new_run, figures):
    """Publish a run of the named retriever; returns its id."""

    def make(name: str, old: float | None, new: float | None, *, summaries=None, **fields) -> str:
        with database.session() as session:
            retriever = retrievers.ensure_for_name(session, name)
            run = new_run(retriever_id=retriever.id, **{"state": "published"} | fields)
            return runs.add_run(session, run, summaries or figures(old, new), artifacts=artifacts).id

    return make


def _board(database, benchmark, **options):
    with database.reading() as session:
        return leaderboard(session, benchmark.id, **options)


def test_an_empty_board_has_its_columns(database, benchmark):
    board = _board(database, benchmark)
    assert board.is_empty()
    assert board.columns[: len(RUN_COLUMNS)] == list(RUN_COLUMNS)
    with database.reading() as session:
        assert paired_table(session, benchmark.id).is_empty()
        assert available(session, benchmark.id).is_empty()
        with pytest.raises(NotFound):
            leaderboard(session, 999)


def test_order_ranks_and_ties(database, benchmark, publish):
    publish("delta", 0.40, 0.60)
    publish("Bravo", 0.50, 0.70)
    publish("alpha", 0.60, 0.70)
    publish("charlie", 0.50, 0.70)
    board = _board(database, benchmark)
    shown = board.select("retriever", "rank", "rank_old", "rank_new", "rank_change").rows()
    assert shown == [("alpha", 1, 1, 1, 0), ("Bravo", 1, 2, 1, 1), ("charlie", 1, 2, 1, 1), ("delta", 4, 4, 4, 0)]
    assert board["lift"].to_list() == pytest.approx([0.1, 0.2, 0.2, 0.2])


def test_the_order_does_not_depend_on_insertion(database, benchmark, publish):
    names = ["émile", "Zed", "alpha", "_under", "Äther", "beta"]
    for name in names:
        publish(name, 0.5, 0.5)
    expected = sorted(names, key=str.lower)
    assert _board(database, benchmark)["retriever"].to_list() == expected


def test_unscored_and_partial_runs_come_last_without_a_rank(database, benchmark, publish):
    publish("partial", 0.9, 0.9, flags=["missing:6", "partial"], queries_answered=4)
    publish("other metric only", None, None, summaries=[Summary("old", "Recall", 10, "macro", 0.9)])
    publish("only old", 0.8, None)
    publish("scored", 0.1, 0.2)
    board = _board(database, benchmark)
    shown = board.select("retriever", "rank", "rank_old", "rank_new", "rank_change", "lift").rows()
    assert shown == [
        ("scored", 1, 1, 1, 0, pytest.approx(0.1)),
        ("only old", None, None, None, None, None),
        ("other metric only", None, None, None, None, None),
        ("partial", None, None, None, None, pytest.approx(0.0)),
    ]
    coverage = dict(board.select("retriever", "coverage").rows())
    assert coverage["partial"] == pytest.approx(0.4)


def test_a_board_of_old_figures_is_ranked_by_them(database, benchmark, publish):
    publish("low", 0.1, None)
    publish("high", 0.3, None)
    shown = _board(database, benchmark).select("retriever", "rank", "rank_old", "rank_new", "rank_change").rows()
    assert shown == [("high", 1, 1, None, None), ("low", 2, 2, None, None)]


def test_sub_query_runs_have_ranks_of_their_own(database, benchmark, publish):
    publish("A", 0.3, 0.4)
    publish("A", 0.8, 0.9, level="sub-query")
    publish("B", 0.2, 0.3)
    shown = _board(database, benchmark).select("retriever", "level", "rank").rows()
    assert shown == [("A", "query", 1), ("B", "query", 2), ("A", "sub-query", 1)]


def test_a_row_is_its_newest_published_public_run(database, benchmark, publish):
    now = utc_now()
    older = publish("A", 0.9, 0.9, published_at=now - timedelta(days=2))
    current = publish("A", 0.1, 0.1, published_at=now - timedelta(days=1))
    publish("A", 0.5, 0.5, state="scored")
    publish("A", 0.5, 0.5, visibility="private")
    publish("A", 0.2, 0.2, method="mftr")
    publish("A", 0.3, 0.3, contract="paper")
    publish("A", 0.4, 0.4, contract_hash="1" * 64)
    publish("A", 0.6, 0.6, provenance="reported", place="Table 2", ranking_artifact=None)
    board = _board(database, benchmark)
    assert board["new"].to_list() == [0.6, 0.4, 0.3, 0.2, 0.1]
    row = board.filter(new=0.1).row(0, named=True)
    assert (row["run_id"], row["versions"]) == (current, 2)
    with database.session() as session:
        runs.withdraw(session, current)
    row = _board(database, benchmark).filter(method="full-doc", contract="", provenance="uploaded").sort("new")
    assert row["run_id"].to_list()[-1] == older


def test_metric_cutoff_average_and_domain(database, benchmark, publish):
    summaries = [
        Summary(view, metric, k, average, value, domain=domain, n=n)
        for view, metric, k, average, domain, value, n in [
            ("old", "NDCG", 10, "macro", "", 0.11, 10),
            ("new", "NDCG", 10, "macro", "", 0.12, 10),
            ("old", "NDCG", 10, "micro", "", 0.21, 10),
            ("old", "NDCG", 10, "domain", "web", 0.31, 6),
            ("old", "NDCG", 10, "source", "web", 0.36, 2),
            ("old", "NDCG", 5, "macro", "", 0.41, 10),
            ("old", "Recall", 10, "macro", "", 0.51, 10),
        ]
    ]
    publish("A", None, None, summaries=summaries)

    def old_of(**options):
        return _board(database, benchmark, **options).select("old", "n").row(0)

    assert old_of() == (0.11, 10)
    assert old_of(average="micro") == (0.21, 10)
    assert old_of(domain="web") == (0.31, 6)
    assert old_of(average="source", domain="web") == (0.36, 2)
    assert old_of(k=5) == (0.41, 10)
    assert old_of(metric="Recall") == (0.51, 10)
    assert old_of(domain="nowhere") == (None, None)
    with database.reading() as session:
        assert headline(session, benchmark.id) == "macro"
        found = available(session, benchmark.id)
        assert found.rows()[0] == ("NDCG", 5, "macro", "", 1)
        assert found.height == 5
        assert available(session, benchmark.id, averages=["source"]).rows() == [("NDCG", 10, "source", "web", 1)]
        long = scores(session, benchmark.id, metrics=["NDCG"], ks=[10])
        assert sorted(long["value"].to_list()) == [0.11, 0.12, 0.21, 0.31]


def test_printed_digits_intervals_and_notes_travel_along(database, benchmark, publish):
    publish(
        "A", None, None,
        summaries=[
            Summary("old", "NDCG", 10, "macro", 0.452, low=0.44, high=0.46, printed="45.2", note="as printed"),
            Summary("new", "NDCG", 10, "macro", 0.495, printed="49.5"),
        ],
    )  # fmt: skip
    row = _board(database, benchmark).row(0, named=True)
    assert (row["old_printed"], row["new_printed"]) == ("45.2", "49.5")
    assert (row["old_low"], row["old_high"], row["old_note"], row["new_note"]) == (0.44, 0.46, "as printed", None)


def test_retriever_fields_are_on_the_row(database, benchmark, artifacts, new_run, figures):
    with database.session() as session:
        retriever = retrievers.upsert(
            session,
            Retriever(
                key="tool-embed-4b", name="Tool-Embed-4B", family="Qwen3", parameters=4_000_000_000, dimension=2560,
                fine_tuned=True, base_key="qwen3-4b", open_weights=True, licence="Apache-2.0", link="https://e.org",
            ),
        )  # fmt: skip
        run = new_run(retriever_id=retriever.id, state="published", licence="CC-BY-4.0", trained_on_benchmark="yes")
        runs.add_run(session, run, figures(0.1, 0.2), artifacts=artifacts)
    row = _board(database, benchmark).row(0, named=True)
    expected = {
        "retriever_key": "tool-embed-4b", "family": "Qwen3", "parameters": 4_000_000_000, "dimension": 2560,
        "fine_tuned": True, "base_key": "qwen3-4b", "open_weights": True, "retriever_licence": "Apache-2.0",
        "retriever_link": "https://e.org", "licence": "CC-BY-4.0", "trained_on_benchmark": "yes",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_the_paired_table_is_wide(database, benchmark, publish):
    def all_figures(base: float) -> list[Summary]:
        scopes = [
            ("macro", ""),
            ("micro", ""),
            ("domain", "web"),
            ("domain", "code"),
            ("domain", "extra"),
            ("source", "s"),
        ]
        return [
            Summary(view, metric, 10, average, base + 0.01 * place + (0.1 if view == "new" else 0), domain=domain)
            for place, (average, domain) in enumerate(scopes)
            for metric in ("NDCG", "Recall", "Comp")
            for view in ("old", "new")
        ]

    publish("low", None, None, summaries=all_figures(0.2))
    publish("high", None, None, summaries=all_figures(0.5))
    publish("old only", 0.3, None)
    with database.reading() as session:
        table = paired_table(session, benchmark.id)
    assert table["retriever"].to_list() == ["high", "low", "old only"]
    scopes = list(dict.fromkeys(name.split("/")[1] for name in table.columns if name.startswith("NDCG@10/")))
    assert scopes == ["macro", "micro", "domain:web", "domain:code", "domain:extra"]
    assert table["Comp@10/domain:code/new"].to_list() == [pytest.approx(0.63), pytest.approx(0.33), None]
    assert table["NDCG@10/macro/old"].to_list() == [0.5, 0.2, 0.3]
    assert table["NDCG@10/macro/lift"].to_list() == [pytest.approx(0.1), pytest.approx(0.1), None]
