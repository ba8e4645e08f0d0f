from __future__ import annotations

import threading

import pytest

from store.access import runs
from store.access.figures import Figure, list_figures, replace_figures
from store.access.leaderboard import leaderboard
from store.access.reported import ReportedChanges, ReportedRow, upsert_reported
from store.errors import InvalidRecord
from store.records import Summary


@pytest.fixture
def row(benchmark, retriever):
    """Makes a line of a table; keywords replace fields."""

    def make(value: float = 0.452, **fields) -> ReportedRow:
        defaults = {
            "benchmark_version_id": benchmark.id,
            "retriever_id": retriever.id,
            "place": "ToolEX Table 2",
            "method": "full-doc",
            "summaries": (Summary("old", "NDCG", 10, "macro", value, printed=f"{value * 100:.1f}"),),
        }
        return ReportedRow(**defaults | fields)

    return make


def test_loading_again_changes_nothing(database, row, benchmark):
    rows = [row(), row(method="mftr"), row(level="sub-query"), row(place="MFTR Table 2"), row(contract="paper")]
    with database.session() as session:
        assert upsert_reported(session, rows) == ReportedChanges(5, 0, 0, 0)
    with database.session() as session:
        before = runs.list_runs(session)
        assert upsert_reported(session, rows) == ReportedChanges(0, 0, 5, 0)
        assert runs.list_runs(session).equals(before)
        board = leaderboard(session, benchmark.id)
    assert board.height == 5
    assert board["old_printed"].to_list() == ["45.2"] * 5


def test_a_changed_line_keeps_its_run(database, row, benchmark):
    with database.session() as session:
        upsert_reported(session, [row(0.452), row(method="mftr")])
        before = runs.list_runs(session).filter(method="full-doc").row(0, named=True)
    with database.session() as session:
        changed = row(0.46, notes=("corrected in version 2",))
        assert upsert_reported(session, [changed, row(method="mftr")]) == ReportedChanges(0, 1, 1, 0)
        after = leaderboard(session, benchmark.id).filter(method="full-doc").row(0, named=True)
        assert runs.summaries(session, after["run_id"]).height == 1
    assert after["run_id"] == before["run_id"]
    assert after["published_at"] == before["published_at"]
    assert (after["old"], after["notes"]) == (0.46, ["corrected in version 2"])


def test_lines_that_left_the_data_file_are_removed_when_asked(database, row, artifacts, new_run, figures):
    with database.session() as session:
        uploaded = runs.add_run(session, new_run(state="published"), figures(0.1, 0.2), artifacts=artifacts)
        upsert_reported(session, [row(), row(method="mftr")])
    with database.session() as session:
        assert upsert_reported(session, [row()]) == ReportedChanges(0, 0, 1, 0)
        assert upsert_reported(session, [row()], remove_others=True) == ReportedChanges(0, 0, 1, 1)
        left = runs.list_runs(session)
    assert sorted(left["provenance"].to_list()) == ["reported", "uploaded"]
    assert uploaded.id in left["run_id"].to_list()


def test_bad_lines_store_nothing(database, row):
    for rows in ([row(), row()], [row(place="")], [row(), row(45.2, method="mftr")]):
        with pytest.raises(InvalidRecord), database.session() as session:
            upsert_reported(session, rows)
    with database.reading() as session:
        assert runs.list_runs(session).is_empty()


def test_two_starters_load_once(database, row, benchmark):
    rows = [row(method=f"method {number}") for number in range(20)]
    facts = [Figure(f"key-{number}", "ToolEX", "abstract", f"subject {number}", "share", 0.5) for number in range(20)]
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def load() -> None:
        try:
            barrier.wait()
            with database.session() as session:
                upsert_reported(session, rows)
                replace_figures(session, facts)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with database.reading() as session:
        assert leaderboard(session, benchmark.id).height == 20
        assert list_figures(session).height == 20


def test_published_figures_follow_their_list(database):
    facts = [
        Figure("a", "ToolEX", "3.2", "sub-queries with an equivalent", "share", 0.679, "67.9", "%", benchmark="tooleq"),
        Figure(
            "b", "MFTR", "Table 5", "E5", "weight", None, "5-7", "pp", derived=True, note="odd", numbers=(0.05, 0.07)
        ),
    ]
    with database.session() as session:
        assert replace_figures(session, facts)
        assert not replace_figures(session, facts)
        assert list_figures(session).to_dicts() == [vars(item) | {"numbers": list(item.numbers)} for item in facts]
        assert list_figures(session, benchmark="tooleq")["key"].to_list() == ["a"]
        assert replace_figures(session, facts[:1])
        assert list_figures(session, "MFTR").is_empty()
        with pytest.raises(InvalidRecord, match="'a' is given twice"):
            replace_figures(session, [facts[0], facts[0]])
