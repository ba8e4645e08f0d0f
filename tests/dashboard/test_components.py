"""The pieces that pages are made of, without a browser."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from dashboard.charts.palette import Ground
from dashboard.components.benchmark_choice import descriptions
from dashboard.components.board_table import as_shown, as_text, visible_columns
from dashboard.components.controls import Figure, Scope
from dashboard.components.document_view import sides
from dashboard.components.downloads import parquet_bytes
from dashboard.components.findings import finding
from dashboard.components.numbers import MINUS, decimals_of, figure_text, points, size, whole
from dashboard.components.permalinks import address
from dashboard.components.run_detail import listed_figures, safe_ending
from dashboard.components.untrusted import plain, web_address
from pipeline.formats.board_rows import BoardView, Filters, SortKey, filter_options, narrowed, ordered
from pipeline.formats.flag_words import flag_words
from pipeline.formats.paired_table import Group, agreement, mean_lift, paired_cells, paired_latex
from pipeline.formats.tables import TableFormat, write_table
from store.access.leaderboard import RUN_COLUMNS
from store.records import BenchmarkRecord

FIGURES = {
    "old": pl.Float64, "new": pl.Float64, "lift": pl.Float64, "old_printed": pl.String, "new_printed": pl.String,
    "old_note": pl.String, "new_note": pl.String, "n": pl.Int64, "coverage": pl.Float64, "rank": pl.Int64,
    "encode_seconds_per_1000_documents": pl.Float64, "query_ms": pl.Float64, "index_bytes": pl.Int64,
    "device": pl.String, "rank_old": pl.Int64, "rank_new": pl.Int64, "rank_change": pl.Int64,
}  # fmt: skip


def board(*rows: dict[str, Any]) -> pl.DataFrame:
    """A board with the given rows over usual values."""
    usual = dict.fromkeys([*RUN_COLUMNS, *FIGURES]) | {
        "family": "", "method": "full-doc", "level": "query", "contract": "", "provenance": "uploaded", "place": "",
        "flags": [], "notes": [], "trained_on_benchmark": "unknown",
    }  # fmt: skip
    filled = [usual | {"run_id": f"r{i}", "retriever": f"R{i}"} | row for i, row in enumerate(rows)]
    for row in filled:
        if row["lift"] is None and None not in (row["old"], row["new"]):
            row["lift"] = row["new"] - row["old"]
    return pl.DataFrame(filled, schema={**RUN_COLUMNS, **FIGURES})


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.52, "52.0"), (1.0, "100.0"), (0.0, "0.0"), (None, "—"), (float("nan"), "—"), (0.99999, "100.0")],
)
def test_figures_have_one_decimal(value: float | None, text: str) -> None:
    assert points(value) == text


def test_differences_carry_a_sign_and_a_real_minus() -> None:
    assert points(0.051, signed=True) == "+5.1"
    assert points(-0.003, signed=True) == f"{MINUS}0.3"
    assert points(-0.0001, signed=True) == "0.0"


def test_printed_digits_are_kept() -> None:
    assert figure_text(0.5167, "51.67†") == "51.67†"
    assert figure_text(0.5167) == "51.7"
    assert figure_text(None, "51.67") == "—"
    assert decimals_of("51.67†", "45.2") == 2
    assert decimals_of(None, None) == 1


def test_sizes_and_counts() -> None:
    assert [size(n) for n in (22_700_000, 595_000_000, 4_000_000_000, None)] == ["22.7M", "0.6B", "4B", "—"]
    assert whole(7360) == "7\N{NARROW NO-BREAK SPACE}360"


def test_filters_combine_and_an_empty_choice_accepts_everything() -> None:
    rows = board({"family": "A", "fine_tuned": True}, {"family": "B", "fine_tuned": True}, {"family": ""})
    assert narrowed(rows, Filters()).height == 3
    assert narrowed(rows, Filters({"family": []}, "  ")).height == 3
    assert narrowed(rows, Filters({"family": ["A", "B"], "training": ["fine-tuned"]})).height == 2
    assert narrowed(rows, Filters({"family": ["unknown"]}))["retriever"].to_list() == ["R2"]
    assert Filters({"family": ["A"], "size": []}, "x").active == 2


def test_search_is_literal_and_ignores_case() -> None:
    rows = board({"retriever": "A.b (x)"}, {"retriever": "Axb"})
    assert narrowed(rows, Filters(search="a.B"))["retriever"].to_list() == ["A.b (x)"]
    assert narrowed(rows, Filters(search="(")).height == 1


def test_filter_options_run_from_small_to_large_and_unknown_last() -> None:
    rows = board({"parameters": 8_000_000_000}, {"parameters": None}, {"parameters": 22_000_000})
    assert filter_options(rows)["size"] == ["under 100M", "5B and more", "unknown"]


@pytest.mark.parametrize("key", list(SortKey))
@pytest.mark.parametrize("reverse", [False, True])
def test_every_order_puts_unknown_last_and_is_the_same_for_any_input_order(key: SortKey, reverse: bool) -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    rows = board(
        {"old": 0.1, "new": 0.2, "rank": 2, "rank_change": 1, "parameters": 5, "coverage": 1.0, "family": "b",
         "published_at": early},
        {"old": 0.3, "new": 0.9, "rank": 1, "rank_change": -1, "parameters": 9, "coverage": 0.5, "family": "A",
         "published_at": late},
        {"retriever": "R1"},
    )  # fmt: skip
    once = ordered(rows, key, reverse=reverse)["run_id"].to_list()
    again = ordered(rows.reverse(), key, reverse=reverse)["run_id"].to_list()
    assert once == again
    if key is not SortKey.NAME:
        assert once[-1] == "r2"


def test_equal_values_are_ordered_by_name_whatever_the_direction() -> None:
    rows = board({"retriever": "b", "new": 0.5}, {"retriever": "A", "new": 0.5}, {"retriever": "c", "new": 0.5})
    for reverse in (False, True):
        assert ordered(rows, SortKey.NEW, reverse=reverse)["retriever"].to_list() == ["A", "b", "c"]


def test_the_table_marks_remarks_and_keeps_printed_digits() -> None:
    rows = board({"old": 0.63, "new": 0.632, "old_printed": "63.0", "new_printed": "63.2", "new_note": "cannot be"})
    text = as_text(rows, ["retriever", "old", "new", "lift", "notes"])
    assert text.row(0) == ("R0", "63.0", "63.2*", "+0.2", "remark")


def test_columns_follow_the_view() -> None:
    rows = board({"old": 0.1, "new": 0.2, "coverage": 1.0, "scorer_version": "1"})
    chosen = ["rank", "old", "new", "lift", "coverage"]
    assert visible_columns(chosen, BoardView.OLD, rows, narrow=False) == ["rank", "retriever", "old", "coverage"]
    assert visible_columns(chosen, BoardView.NEW, rows, narrow=False) == ["rank", "retriever", "new", "coverage"]
    narrow = visible_columns(chosen, BoardView.BOTH, rows, narrow=True)
    assert narrow[:3] == ["rank", "retriever", "new"]


def test_flags_are_said_in_words() -> None:
    assert flag_words(["missing:4", "ties", "partial", "something_new"]) == [
        "4 missing", "ties", "partial, not ranked", "something new",
    ]  # fmt: skip


def test_drawings_differ_by_theme() -> None:
    rows = board({"old": 0.1, "new": 0.2})
    assert as_shown(rows, Ground.LIGHT)["move"][0] != as_shown(rows, Ground.DARK)["move"][0]


def test_downloads_round_trip_and_never_start_a_formula() -> None:
    rows = board({"retriever": '=HYPERLINK("http://evil")', "old": 0.123456789012345, "new": 0.2})
    back = pl.read_parquet(io.BytesIO(parquet_bytes(rows)))
    assert back["old"][0] == 0.123456789012345
    csv = write_table(rows.select("retriever", "old"), TableFormat.CSV)
    assert "'=HYPERLINK" in csv
    assert "0.123456789012345" in csv


WIDE = pl.DataFrame(
    {
        "run_id": ["a", "b"], "retriever": ["One & two", "Three"], "method": ["full-doc"] * 2, "contract": ["", ""],
        "provenance": ["uploaded"] * 2, "place": ["", ""], "flags": [[], []],
        "NDCG@10/macro/old": [0.4, 0.5], "NDCG@10/macro/new": [0.6, 0.55], "NDCG@10/macro/lift": [0.2, 0.05],
        "NDCG@10/macro/old_printed": [None, None], "NDCG@10/macro/new_printed": [None, None],
        "Recall@10/macro/old": [0.5, 0.6], "Recall@10/macro/new": [0.6, None], "Recall@10/macro/lift": [0.1, None],
        "Recall@10/macro/old_printed": [None, None], "Recall@10/macro/new_printed": [None, None],
    },
    schema_overrides={"flags": pl.List(pl.String), "NDCG@10/macro/old_printed": pl.String,
                      "NDCG@10/macro/new_printed": pl.String, "Recall@10/macro/old_printed": pl.String,
                      "Recall@10/macro/new_printed": pl.String},
)  # fmt: skip


def test_the_mean_lift_needs_every_metric() -> None:
    lifts = WIDE.select(mean_lift(["NDCG", "Recall"], 10, "macro"))
    assert lifts.to_series().to_list() == [pytest.approx(0.15), None]


def test_the_paired_table_in_the_papers_layout() -> None:
    cells = paired_cells(WIDE, ["NDCG", "Recall"], 10, [Group("macro", "macro average")])
    assert cells["macro average", "NDCG@10"] == ["40.0 / 60.0", "50.0 / 55.0"]
    assert cells["macro average", "Recall@10"] == ["50.0 / 60.0", "60.0"]
    latex = paired_latex(WIDE, cells)
    assert r"\multicolumn{3}{c}{macro average}" in latex
    assert r"\cmidrule(lr){2-4}" in latex
    assert r"One \& two & 40.0 / 60.0 & 50.0 / 60.0 & +15.0 \\" in latex


def test_agreement_counts_only_rows_with_both() -> None:
    found = agreement(WIDE, ["NDCG", "Recall"], 10, [Group("macro", "macro average")])
    assert found["NDCG@10"].to_list() == [f"{MINUS}1.00"]
    assert found["Recall@10"].to_list() == ["—"]


@pytest.mark.parametrize(
    "text", ["**b**", "<img src=x>", "[a](http://x)", "$x$", ":red[x]", "http://evil.example", "`c`"]
)
def test_markup_is_escaped(text: str) -> None:
    escaped = plain(text)
    for sign in "*<>[]()$:`":
        assert escaped.count(sign) == escaped.count("\\" + sign)


@pytest.mark.parametrize("text", ["a@b.example", "see https://evil.example/x", "HTTP://x.y", "www.evil.example"])
def test_bare_addresses_do_not_become_links(text: str) -> None:
    """The browser's Markdown looks for them after it has taken the escapes away (tests/e2e/test_review.py)."""
    shown = plain(text).replace("\\", "")
    assert shown != text and shown.replace("\u2060", "") == text


def test_control_and_invisible_characters_go() -> None:
    assert plain("a\u202eb\u0000c\nd") == "abc d"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("https://example.org/a?b=c", True), ("javascript:alert(1)", False), ("data:text/html,x", False),
        ("https://user@evil.example/", False), ("//evil.example", False), ("https://a b", False), ("", False),
        ("https://x/\">", False),
    ],
)  # fmt: skip
def test_only_plain_web_addresses_become_links(text: str, safe: bool) -> None:
    assert (web_address(text) == text) is (safe and text != "")
    assert (web_address(text) is not None) is safe


def test_addresses_within_the_site() -> None:
    assert address("run", run="abc", token="") == "/run?run=abc"
    assert address("", lb_family=["a b", "c"]) == "/?lb_family=a+b&lb_family=c"


@pytest.mark.parametrize(
    ("name", "ending"), [("x.trec.gz", ".trec.gz"), ("../../etc/passwd", ".run"), ("a.JSON", ".json"), (None, ".run")]
)
def test_only_the_ending_of_a_file_name_is_used(name: str | None, ending: str) -> None:
    assert safe_ending(name) == ending


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0.4, 0.5), (0.5, 0.52)], "these 2 retrievers by 2.0 to 10.0 points** (mean 6.0); 2 of 2 change rank."),
        ([(0.4, 0.5), (0.6, 0.7)], "these 2 retrievers by 10.0 points**; nobody changes rank."),
        ([(0.4, 0.5)], "lifts the one retriever here by **10.0 points**."),
        ([(0.4, 0.4), (0.5, 0.5)], "changes nothing here"),
        ([(0.4, None)], ""),
    ],
)
def test_the_finding_says_what_the_board_says(rows: list[tuple[float, float | None]], said: str) -> None:
    made = [
        {
            "old": old,
            "new": new,
            "retriever_key": f"k{place}",
            "rank_change": (1 if place else -1) * (said.endswith("2 change rank.")) if new is not None else None,
        }
        for place, (old, new) in enumerate(rows)
    ]
    stored = BenchmarkRecord(
        id=1, slug="b", version="1", title="B", kind="tool", licence="", source="", revision="", headline="macro",
        parents=(), content_hash="c", queries=1, tools=1, subqueries=0, equivalents=0, combinations=1, domains=(),
        sources=(), statistics={}, ks=(10,), artifacts={}, compiled_key=None, citation="", notes=(), is_demo=False,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    figure = Figure(stored, BoardView.BOTH, "NDCG", 10, Scope("macro average", "macro"))
    sentence = finding(figure, board(*made))
    assert said in sentence if said else sentence == ""


def _version(slug: str, version: str, title: str) -> BenchmarkRecord:
    rest = dict.fromkeys(BenchmarkRecord.__dataclass_fields__)
    given = {"slug": slug, "version": version, "title": title, "kind": "skill", "queries": 7360, "tools": 43215}
    return BenchmarkRecord(**{**rest, **given})  # type: ignore[arg-type]


def test_benchmarks_are_named_by_title_and_counts() -> None:
    said = descriptions([_version("a", "1", "A"), _version("b", "1", "B"), _version("b", "2", "B")])
    space = "\N{NARROW NO-BREAK SPACE}"
    counts = f"7{space}360 queries · 43{space}215 skills"
    assert said == {"a@1": f"A · {counts}", "b@1": f"B (b@1) · {counts}", "b@2": f"B (b@2) · {counts}"}
    assert descriptions([_version("a", "1", "A")], brief=True) == {"a@1": "A"}


def test_a_phone_marks_sub_queries_and_says_the_method_of_repeated_names() -> None:
    rows = board(
        {"retriever": "A", "level": "sub-query"}, {"retriever": "A"}, {"retriever": "B", "method": "x"},
        {"retriever": "B", "method": "y"},
    )  # fmt: skip
    assert as_shown(rows, Ground.LIGHT, narrow=True)["retriever"].to_list() == ["A ‡", "A", "B · x", "B · y"]
    assert as_shown(rows, Ground.LIGHT)["retriever"].to_list() == ["A · sub-queries ‡", "A", "B · x", "B · y"]


def test_a_note_on_several_figures_names_them_all_once() -> None:
    square = [(metric, view, over) for metric in ("Comp", "NDCG") for view in ("new", "old") for over in ("b", "a")]
    assert listed_figures(square, 10) == "NDCG and Comp@10, old and new, a and b"
    assert listed_figures(square[:1], 5) == "Comp@5 new, b"
    assert listed_figures([("NDCG", "old", "a"), ("Comp", "new", "a")], 10) == "NDCG@10 old, a; Comp@10 new, a"


def test_indentation_is_no_difference_between_documents() -> None:
    one = '{"a": 1, "name": "one"}'
    two = '{"a": 1, "b": {"c": 2}, "name": "two"}'
    for side in sides(("x", "r", one), ("y", "r", two)):
        marked = [text for text, differs in side["segments"] if differs]
        assert marked
        assert not [text for text in marked if text != text.strip() or "\n" in text]
    whole_text = "".join(text for text, _ in sides(("x", "r", one), ("y", "r", two))[1]["segments"])
    assert whole_text == '{\n  "a": 1,\n  "b": {\n    "c": 2\n  },\n  "name": "two"\n}'
