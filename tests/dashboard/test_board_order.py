"""Order, filters and pinned rows of the leaderboard: every column both ways, every filter and its undo, every link."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.board_table import COLUMNS, PIN_MARK
from dashboard.components.controls import pin_keys
from dashboard.current_site import use_site
from pipeline.formats.board_rows import FILTERS, SortKey, filter_options, ordered, pinned_first, words
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.access import benchmarks
from store.access.leaderboard import leaderboard
from store.settings import Settings
from tests.dashboard.conftest import APP

PAPER, DEMO = "tooleq@published", "demo-tools@1"
#: Columns that order nothing: a drawing of two others, remarks, and intervals, which belong to their figure.
UNSORTED = {"move", "notes", "old_interval", "new_interval", "lift_interval"}
#: Column of the table → the order that goes by it, and the column of the board that it reads.
BY_COLUMN: dict[str, tuple[SortKey, str]] = {
    "rank": (SortKey.RANK, "rank"),
    "rank_change": (SortKey.RANK_CHANGE, "rank_change"),
    "retriever": (SortKey.NAME, "retriever"),
    "old": (SortKey.OLD, "old"),
    "new": (SortKey.NEW, "new"),
    "lift": (SortKey.LIFT, "lift"),
    "tie_group": (SortKey.TIE_GROUP, "tie_group"),
    "control": (SortKey.CONTROL, "control"),
    "judged": (SortKey.JUDGED, "judged"),
    "n": (SortKey.QUERIES, "n"),
    "coverage": (SortKey.COVERAGE, "coverage"),
    "method": (SortKey.METHOD, "method"),
    "family": (SortKey.FAMILY, "family"),
    "size": (SortKey.SIZE, "parameters"),
    "encoding": (SortKey.ENCODING, "encode_seconds_per_1000_documents"),
    "query": (SortKey.QUERY_TIME, "query_ms"),
    "dimension": (SortKey.DIMENSION, "dimension"),
    "index": (SortKey.INDEX, "index_bytes"),
    "device": (SortKey.DEVICE, "device"),
    "training": (SortKey.TRAINING, "fine_tuned"),
    "trained": (SortKey.TRAINED, "trained_on_benchmark"),
    "level": (SortKey.LEVEL, "level"),
    "source": (SortKey.SOURCE, "provenance"),
    "date": (SortKey.DATE, "published_at"),
    "scorer": (SortKey.SCORER, "scorer_version"),
}


@pytest.fixture(scope="module")
def filled(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, list[str]]]:
    """A prepared site with three runs of the demo tools; the tests only read."""
    home = tmp_path_factory.mktemp("order") / "home"
    shutil.copytree(prepared_home, home)
    site = open_site(Settings(home=home))
    source = demo_run("tools")
    lines = source.read_text().splitlines(True)
    ids = []
    for name, left_out in (("One", 0), ("Two", 10), ("Three", 7)):
        file = home.parent / f"{name}.trec"
        file.write_text("".join(line for n, line in enumerate(lines) if not left_out or n % left_out != 1))
        checked = check_run(site, file, "demo-tools")
        ids.append(submit_run(site, checked, file, SubmissionMetadata(retriever=name), publish=True))
    use_site(site)
    yield site, ids
    use_site(None)
    site.database.close()


@pytest.fixture(scope="module")
def mixed(filled: tuple[Site, list[str]]) -> pl.DataFrame:
    """The papers' board with uploads, made so that every column has repeated, different and unknown values."""
    site, _ = filled
    with site.database.reading() as session:
        boards = [leaderboard(session, benchmarks.get(session, name).id) for name in (PAPER, DEMO)]
    rows = pl.concat(boards)
    places = pl.int_range(rows.height)
    measured = ["encode_seconds_per_1000_documents", "query_ms", "index_bytes", "tie_group"]
    return rows.with_columns(
        *(pl.when(places % 4 != 0).then((places % 3).cast(pl.Float64)).alias(name) for name in measured),
        *(pl.when(places % 5 != 0).then((places % 2) / 2).alias(name) for name in ("control", "judged")),
        device=pl.when(places % 3 != 0).then(pl.format("device {}", places % 2)),
        dimension=pl.when(places % 3 != 1).then((places % 2 + 1) * 384),
    )


def comparable(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value.timestamp() if isinstance(value, datetime) else value


def shown_values(rows: pl.DataFrame, key: SortKey, column: str) -> list[Any]:
    """What a reader sees in the column, None where nothing is known."""
    if key is SortKey.SOURCE:
        reported = (pl.col("provenance") == "reported") & (pl.col("place") != "")
        return rows.select(pl.when(reported).then("place").otherwise("provenance")).to_series().to_list()
    values = rows[column].to_list()
    if key is SortKey.DATE:
        pairs = zip(values, rows["provenance"], strict=True)
        return [None if provenance == "reported" else value for value, provenance in pairs]
    return [None if value in ("", "unknown") else value for value in values]


def test_every_column_has_an_order_or_a_reason() -> None:
    assert set(BY_COLUMN) | UNSORTED == {column.key for column in COLUMNS}
    assert {key for key, _ in BY_COLUMN.values()} == set(SortKey)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", list(BY_COLUMN))
def test_every_column_sorts_both_ways(mixed: pl.DataFrame, name: str, reverse: bool) -> None:
    key, column = BY_COLUMN[name]
    rows = ordered(mixed, key, reverse=reverse)
    assert rows.columns == mixed.columns
    assert sorted(rows["run_id"]) == sorted(mixed["run_id"])
    parts = [rows]
    if key is SortKey.RANK:
        assert rows["level"].to_list() == sorted(rows["level"].to_list()), "query level first, either way"
        parts = rows.partition_by("level", maintain_order=True)
    for part in parts:
        values = shown_values(part, key, column)
        known = [comparable(value) for value in values if value is not None]
        assert values[len(known) :] == [None] * (len(values) - len(known)), "unknown values come last, either way"
        assert known in (sorted(known), sorted(known, reverse=True))
        # Equal values: by name, method, contract and id, whatever the direction.
        ties = [
            (comparable(value), *row)
            for value, row in zip(
                values,
                part.select(pl.col("retriever").str.to_lowercase(), "method", "contract", "run_id").iter_rows(),
                strict=True,
            )
        ]
        for before, after in itertools.pairwise(ties):
            assert before[0] != after[0] or before[1:] < after[1:]
    for seed in (1, 2):
        shuffled = mixed.sample(fraction=1.0, shuffle=True, seed=seed)
        assert ordered(shuffled, key, reverse=reverse)["run_id"].to_list() == rows["run_id"].to_list()
    other = ordered(mixed, key, reverse=not reverse)
    distinct = {comparable(value) for value in shown_values(mixed, key, column) if value is not None}
    assert (other["run_id"].to_list() != rows["run_id"].to_list()) == (len(distinct) > 1)


def opened(**query: Any) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=60)
    app.query_params.update(query)
    app.run()
    assert not app.exception, app.exception
    assert not app.error, app.error
    return app


def table(app: AppTest) -> pd.DataFrame:
    return app.dataframe[0].value


def names(app: AppTest) -> list[str]:
    return [str(name) for name in table(app)["retriever"]]


def test_every_order_is_a_link(filled: tuple[Site, list[str]]) -> None:
    app = opened(lb_benchmark=DEMO)
    assert list(app.selectbox(key="lb_sort").options) == [str(key) for key in SortKey]
    first = names(app)
    app.selectbox(key="lb_sort").set_value("name")
    app.toggle(key="lb_reverse").set_value(True)
    app.run()
    assert names(app) == ["Two", "Three", "One"]
    assert names(opened(lb_benchmark=DEMO, lb_sort="name", lb_reverse="true")) == ["Two", "Three", "One"]
    app.button(key="lb_clear_all").click().run()
    assert names(app) == first


def test_every_filter_narrows_to_its_words_and_can_be_undone(mixed: pl.DataFrame) -> None:
    """All words of every filter: together they are the board, each alone is a part of it."""
    from pipeline.formats.board_rows import Filters, narrowed

    for column, options in filter_options(mixed).items():
        parts = [narrowed(mixed, Filters({column: [word]})) for word in options]
        assert sum(part.height for part in parts) == mixed.height
        assert all(part.height for part in parts)
        for word, part in zip(options, parts, strict=True):
            assert set(part.select(words()[column]).to_series()) == {word}
        assert narrowed(mixed, Filters({column: options})).equals(mixed)
        assert narrowed(mixed, Filters({column: []})).equals(mixed)
    assert set(filter_options(mixed)) == set(FILTERS)


def test_pinned_rows_stay_on_top_under_every_filter(mixed: pl.DataFrame) -> None:
    from pipeline.formats.board_rows import Filters, narrowed

    pinned = [mixed["run_id"][-1], mixed["run_id"][3]]
    for key, reverse in itertools.product(SortKey, (False, True)):
        every = ordered(mixed, key, reverse=reverse)
        for column, options in filter_options(mixed).items():
            for word in options:
                accepted = narrowed(every, Filters({column: [word]}))
                rows = pinned_first(every, accepted, [*pinned, "not-here"])
                top = rows.head(2)
                assert set(top["run_id"]) == set(pinned)
                assert top["run_id"].to_list() == [run for run in every["run_id"] if run in pinned]
                rest = [run for run in accepted["run_id"] if run not in pinned]
                assert rows["run_id"].to_list()[2:] == rest, "a pinned row is there once"
                assert rows["pinned"].to_list() == [True, True] + [False] * len(rest)


def test_a_row_is_pinned_marked_and_let_go(filled: tuple[Site, list[str]]) -> None:
    _, ids = filled
    app = opened(lb_benchmark=DEMO, run=ids[2])
    before = table(app)
    rank = before.set_index("retriever").loc["Three", "rank"]
    app.button(key="lb_pin_selected").click().run()
    pins = app.query_params["lb_pin"]
    row = pins if isinstance(pins, str) else pins[0]
    assert row.startswith("three~"), "a pin names the row, not the run that is its newest now"
    assert names(app)[0] == f"{PIN_MARK} Three"
    assert table(app)["rank"].iloc[0] == rank, "pinning moved a rank"
    assert sorted(names(app)[1:]) == ["One", "Two"]
    app.text_input(key="lb_search").set_value("one").run()
    assert names(app) == [f"{PIN_MARK} Three", "One"]
    assert "2 of 3 rows. 1 pinned." in " ".join(str(said.value) for said in app.caption)
    app.text_input(key="lb_search").set_value("nothing like it").run()
    assert names(app) == [f"{PIN_MARK} Three"]
    app.button(key="lb_all_rows").click().run()
    assert names(app)[0] == f"{PIN_MARK} Three", "pinned rows are no filter"
    for said in (row, ids[2]):
        link = opened(lb_benchmark=DEMO, lb_pin=[said], run=ids[2])
        pd.testing.assert_frame_equal(table(link), table(app))
    app.button(key="lb_pin_selected").click().run()
    pd.testing.assert_frame_equal(table(app), before)
    assert "lb_pin" not in app.query_params or not app.query_params["lb_pin"]


def test_the_selected_row_is_named_over_the_table_with_what_can_be_done(filled: tuple[Site, list[str]]) -> None:
    _, ids = filled

    def places(app: AppTest) -> list[str]:
        parts = ("key", "value")
        said = [[node.type, *(str(getattr(node, part, "")) for part in parts)] for node in app._tree]
        labels = [str(getattr(getattr(node, "proto", None), "label", "")) for node in app._tree]
        return [" ".join([*words, label]) for words, label in zip(said, labels, strict=True)]

    nobody = places(opened(lb_benchmark=DEMO))
    assert any("Select a row to pin it" in place for place in nobody)
    chosen = places(opened(lb_benchmark=DEMO, run=ids[2]))
    table_at = next(i for i, place in enumerate(chosen) if "lb_table_" in place)
    over = chosen[:table_at]
    assert any("**Three**" in place for place in over)
    assert any("lb_pin_selected" in place for place in over)
    assert any("Open its page" in place for place in over)
    assert any("Everything about Three" in place for place in over)


def test_a_newer_run_of_a_pinned_row_stays_pinned() -> None:
    row = {"retriever_key": "r", "method": "mftr", "contract": "card", "level": "query", "provenance": "measured"}
    keys = [pin_keys(pl.DataFrame([row | {"run_id": run, "place": ""}])) for run in ("old", "new")]
    assert keys[0]["old"] == keys[1]["new"]
    other = pin_keys(pl.DataFrame([row | {"run_id": "x", "place": "", "method": "full-doc"}]))
    assert other["x"] != keys[0]["old"]


@pytest.mark.parametrize("view", ["new", "lift"])
def test_a_board_without_new_labels_says_so_and_shows_the_old_figures(
    filled: tuple[Site, list[str]], view: str
) -> None:
    app = opened(lb_benchmark="mftr-apibank@published", lb_view=view)
    assert any("has no new labels" in str(info.value) for info in app.info)
    assert "old" in table(app).columns
    assert not any("has no new labels" in str(info.value) for info in opened(lb_benchmark=DEMO, lb_view=view).info)


@pytest.mark.parametrize("pins", [["no-such-run"], ["no-such-run", "x"], [""]])
def test_pins_that_are_not_on_the_board_are_passed_over(filled: tuple[Site, list[str]], pins: list[str]) -> None:
    assert sorted(names(opened(lb_benchmark=DEMO, lb_pin=pins))) == ["One", "Three", "Two"]


def test_pinned_rows_of_another_board_and_unpinning(filled: tuple[Site, list[str]]) -> None:
    _, ids = filled
    app = opened(lb_benchmark=DEMO, lb_pin=ids[:2])
    assert sum(name.startswith(PIN_MARK) for name in names(app)) == 2
    app.selectbox(key="lb_benchmark").set_value(PAPER).run()
    assert not any(name.startswith(PIN_MARK) for name in names(app))
    app = opened(lb_benchmark=DEMO, lb_pin=ids[:2])
    app.button(key="lb_unpin_all").click().run()
    assert not any(name.startswith(PIN_MARK) for name in names(app))


def test_a_private_run_cannot_be_pinned(filled: tuple[Site, list[str]]) -> None:
    site, _ = filled
    source = demo_run("tools")
    checked = check_run(site, source, "demo-tools")
    hidden = submit_run(site, checked, source, SubmissionMetadata(retriever="Hidden"), publish=False)
    app = opened(lb_benchmark=DEMO, lb_pin=[hidden])
    assert sorted(names(app)) == ["One", "Three", "Two"]
    assert "Hidden" not in " ".join(str(option) for option in app.multiselect[-1].options)
