"""Colours that can be read, drawings that say what the figures say."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree

import polars as pl
import pytest

from dashboard.charts.count_bars import count_bars, gathered
from dashboard.charts.dumbbell_plot import dumbbell_plot
from dashboard.charts.four_way_bars import four_way_bars
from dashboard.charts.layout import shortened, told_apart
from dashboard.charts.length_curves import Lengths, length_bins, length_curves
from dashboard.charts.palette import DARK, LIGHT, Colours, Ground, family_colour
from dashboard.charts.pareto_plot import axis_ticks, frontier, label_spots, pareto_plot
from dashboard.charts.rank_cdf import Panel, rank_cdf
from dashboard.charts.row_dumbbell import MARGIN, WIDTH, row_dumbbell, shared_range


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    first, second = sorted((luminance(one), luminance(two)), reverse=True)
    return (first + 0.05) / (second + 0.05)


@pytest.mark.parametrize("shades", [LIGHT, DARK])
def test_every_text_colour_can_be_read_on_its_ground(shades: Colours) -> None:
    for colour in (*shades.categories, shades.accent, shades.text, shades.faint):
        assert contrast(colour, shades.ground) >= 4.5, colour


@pytest.mark.parametrize("shades", [LIGHT, DARK])
def test_old_and_new_points_differ_from_ground_and_each_other(shades: Colours) -> None:
    assert contrast(shades.muted, shades.ground) >= 2.4
    assert contrast(shades.muted, shades.accent) >= 1.2


def test_a_family_has_one_colour() -> None:
    assert family_colour("Qwen3", Ground.LIGHT) == family_colour("qwen3", Ground.LIGHT)
    assert family_colour("Qwen3", Ground.LIGHT) != family_colour("Tool-Embed", Ground.LIGHT)
    assert family_colour("A new family", Ground.DARK) == family_colour("A new family", Ground.DARK)


def drawing(uri: str | None) -> ElementTree.Element:
    assert uri is not None
    return ElementTree.fromstring(b64decode(uri.removeprefix("data:image/svg+xml;base64,")))


def circles(uri: str | None) -> list[float]:
    return [float(c.attrib["cx"]) for c in drawing(uri).iter("{http://www.w3.org/2000/svg}circle")]


def test_the_row_drawing_puts_points_in_proportion() -> None:
    old, new = circles(row_dumbbell(0.25, 0.75, 0.0, 1.0, Ground.LIGHT))
    inner = WIDTH - 2 * MARGIN
    assert old == pytest.approx(MARGIN + 0.25 * inner, abs=0.1)
    assert new == pytest.approx(MARGIN + 0.75 * inner, abs=0.1)


def test_the_row_drawing_shows_what_is_known() -> None:
    assert row_dumbbell(None, None, 0.0, 1.0, Ground.LIGHT) is None
    assert len(circles(row_dumbbell(0.5, None, 0.0, 1.0, Ground.LIGHT))) == 1
    light, dark = (row_dumbbell(0.1, 0.2, 0.0, 1.0, ground) for ground in Ground)
    assert light != dark


def test_all_rows_share_one_range() -> None:
    low, high = shared_range([0.318, 0.571, None, 0.42])
    assert low <= 0.318
    assert high >= 0.571
    assert high - low >= 0.1
    assert shared_range([]) == (0.0, 1.0)
    assert shared_range([1.0, 1.0]) == (0.9, 1.0)


def test_the_plot_labels_rows_and_leaves_out_half_known_ones() -> None:
    rows = pl.DataFrame(
        {
            "name": ["A<b>", "B", "C"],
            "family": ["Qwen3", None, "E5"],
            "old": [0.4, 0.5, 0.3],
            "new": [0.5, 0.45, None],
        }
    )
    figure = dumbbell_plot(rows, "NDCG@10", Ground.LIGHT)
    assert list(figure.layout.yaxis.ticktext) == ["A&lt;b&gt;", "B"]
    new = figure.data[1]
    assert list(new.x) == [50.0, 45.0]
    assert figure.data[2].text[0].split() == ["50.0", "+10.0"]
    assert figure.data[2].text[1].split() == ["45.0", "\N{MINUS SIGN}5.0"]
    assert figure.layout.xaxis.range[0] <= 40.0


def test_an_empty_plot_is_drawn() -> None:
    rows = pl.DataFrame(schema={"name": pl.String, "family": pl.String, "old": pl.Float64, "new": pl.Float64})
    assert dumbbell_plot(rows, "NDCG@10", Ground.DARK) is not None


def test_nothing_beats_what_is_on_the_frontier() -> None:
    costs, scores = [1.0, 2.0, 2.0, 3.0, 1.0, 4.0], [0.5, 0.6, 0.55, 0.6, 0.5, 0.9]
    # Equal twins stay both; dearer for the same score, or worse for the same cost, is beaten.
    assert frontier(costs, scores) == [True, True, False, False, True, True]
    assert frontier([], []) == []


def test_labels_cover_neither_each_other_nor_a_disc() -> None:
    places = [(100.0, 100.0), (104.0, 104.0), (108.0, 96.0), (280.0, 100.0)]
    texts = ["first", "second", "third", "at the edge"]
    spots = label_spots(places, texts, [False] * 4, 300, 200)
    assert spots[3] == "middle left", "no room on the right"
    assert len({spot for spot in spots[:3] if spot}) == len([spot for spot in spots[:3] if spot])
    crowd = label_spots([(50.0, 50.0)] * 20, ["a long label"] * 20, [True] + [False] * 19, 300, 100)
    assert crowd[0] is not None, "the best is named even in a crowd"
    assert None in crowd


@pytest.mark.parametrize(("low", "high"), [(0.05, 120.0), (3e8, 8e9), (20e6, 8e9), (300.0, 5000.0), (1e-3, 1e9)])
def test_logarithmic_ticks_are_round_and_few(low: float, high: float) -> None:
    ticks = axis_ticks(low, high)
    assert ticks == sorted(ticks) and low <= ticks[0] and ticks[-1] <= high
    assert all(f"{tick:.0e}"[0] in "1235" and float(f"{tick:.0e}") == pytest.approx(tick) for tick in ticks)
    assert 1 <= len(ticks) <= 13


def costly(**columns: list[object]) -> pl.DataFrame:
    schema = {"name": pl.String, "family": pl.String, "cost": pl.Float64, "score": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


@pytest.mark.parametrize("narrow", [True, False])
def test_the_plot_of_score_against_cost(narrow: bool) -> None:
    rows = costly(
        name=["Small<b>", "Wasteful", "Big"],
        family=["MiniLM", None, "Qwen3"],
        cost=[1e7, 5e8, 8e9],
        score=[0.4, 0.35, 0.6],
    )
    figure = pareto_plot(
        rows, score_name="NDCG@10", cost_name="weights", write=lambda v: f"{v:.0f}", ground=Ground.LIGHT, narrow=narrow
    )
    line, discs = figure.data
    assert list(line.x)[:2] == [1e7, 8e9] and list(line.y)[:2] == [40.0, 60.0]
    assert figure.layout.xaxis.type == "log"
    assert discs.text[0] == "<b>Small&lt;b&gt;</b>", "names are text, the best are bold"
    assert discs.marker.color[2] == family_colour("Qwen3", Ground.LIGHT)


def test_small_differences_of_score_look_small_and_zero_costs_are_drawn() -> None:
    rows = costly(name=["A", "B"], family=["A", "B"], cost=[0.0, 5.0], score=[0.700, 0.701])
    figure = pareto_plot(
        rows, score_name="s", cost_name="c", write=str, ground=Ground.DARK, narrow=False
    )  # fmt: skip
    low, high = figure.layout.yaxis.range
    assert high - low >= 10 and figure.layout.xaxis.type == "linear"
    assert pareto_plot(costly(), score_name="s", cost_name="c", write=str, ground=Ground.DARK, narrow=False) is not None


def test_names_cut_for_a_phone_stay_different() -> None:
    names = ["Qwen3-Embedding-0.6B", "Qwen3-Embedding-4B", "Qwen3-Embedding-8B", "BM25", "Tool-Embed-Something-4B"]
    cut = told_apart(names, 15)
    assert len(set(cut)) == len(names) and max(map(len, cut)) <= 15
    assert all(name.endswith(end) for name, end in zip(cut, ("0.6B", "4B", "8B"), strict=False))
    assert cut[3:] == ["BM25", shortened(names[4], 15)]
    assert told_apart(["same", "same"], 3) == ["sa…", "sa…"]
    # What differs lies in the middle.
    long = [f"MiniLM-L6 · mftr, MFTR {preset}, rule-based documents, original query" for preset in ("paper", "v2")]
    assert ["paper" in told_apart(long, 16)[0], "v2" in told_apart(long, 16)[1]] == [True, True]
    assert len(set(told_apart(["MiniLM-L6 + adapter", "MiniLM-L6 + adapter (every valid tool)"], 15))) == 2


def test_no_family_is_taken_for_another() -> None:
    """Runs of an unknown family have a colour of their own."""
    for ground, shades in ((Ground.LIGHT, LIGHT), (Ground.DARK, DARK)):
        assert family_colour("", ground) == shades.unknown
        assert shades.unknown not in shades.categories
        assert contrast(shades.unknown, shades.ground) >= 4.5


@pytest.mark.parametrize("narrow", [True, False])
def test_every_part_of_the_split_is_named_within_the_drawing(narrow: bool) -> None:
    found = ["both", "only_truth", "only_equivalent", "neither"]
    rows = {"found": found, "queries": [80, 2, 16, 2], "n": [100] * 4, "fraction": [0.8, 0.02, 0.16, 0.02]}
    splits = pl.concat([pl.DataFrame({"name": [name] * 4} | rows) for name in ("A", "B")])
    figure = four_way_bars(splits, Ground.LIGHT, narrow=narrow)
    low, high = figure.layout.yaxis.range
    words = [note for note in figure.layout.annotations if "label" in note.text or "neither" in note.text]
    # Plotly leaves out what stands outside of the axes.
    assert len(words) == 2 and all(low <= note.y <= high and 0 <= note.x <= 100 for note in words)


def test_long_tails_are_gathered_and_nothing_is_lost() -> None:
    counted = pl.DataFrame({"value": [1, 3, 7, 51, 100, 5000], "n": [4, 1, 2, 1, 1, 1]})
    bins = gathered(counted)
    assert bins["bin"].to_list()[:5] == ["1", "2", "3", "4", "5"]
    assert dict(bins.select("bin", "n").iter_rows())["51–100"] == 2
    assert bins["bin"].to_list()[-1].startswith("more than 1")
    assert bins["n"].sum() == 10 and bins["share"].sum() == pytest.approx(1.0)
    drawn = count_bars(bins, counts="c", of="queries", ground=Ground.DARK).data[0]
    assert drawn.x[0] == pytest.approx(40.0)
    assert gathered(counted.head(0)).is_empty()


def test_lengths_lie_in_their_bins() -> None:
    counted = pl.DataFrame({"value": [0, 1, 8, 9, 64, 1000], "n": [1, 1, 1, 1, 1, 5]})
    bins = length_bins(counted)
    assert bins["n"].sum() == 9 and bins["share"].sum() == pytest.approx(0.9), "blank documents are in no bin"
    for value in (1, 8, 9, 64, 1000):
        inside = bins.filter((pl.col("low") <= value * (1 + 1e-9)) & (pl.col("high") > value * (1 + 1e-9)))
        assert inside.height == 1 and inside["n"][0] >= 1, value
    assert bins["high"][:-1].to_list() == bins["low"][1:].to_list()


def test_medians_of_tools_and_skills_are_marked_in_their_colours() -> None:
    tool, skill = (
        Lengths(kind, kind, length_bins(pl.DataFrame({"value": [n], "n": [3]})), n)
        for kind, n in (("tool", 100), ("skill", 900))
    )
    figure = length_curves([tool, skill], Ground.LIGHT)
    assert [shape.x0 for shape in figure.layout.shapes] == [100, 900]
    assert len({shape.line.color for shape in figure.layout.shapes}) == 2
    assert [note.text for note in figure.layout.annotations] == ["<b>tool</b>: median 100", "<b>skill</b>: median 900"]
    assert figure.layout.xaxis.type == "log"
    empty = Lengths("none", "tool", length_bins(pl.DataFrame({"value": [0], "n": [3]})), 0)
    assert length_curves([empty], Ground.DARK) is not None


def test_a_curve_over_few_queries_looks_like_one() -> None:
    n = {"equivalent": 83, "truth": 83, "negative": 5}
    curves = pl.DataFrame(
        [
            {"target": target, "rank": rank, "queries": 1, "n": of, "fraction": 1 / of}
            for target, of in n.items()
            for rank in (1, 2)
        ]
    )
    for least, few in ((5, True), (60, False)):
        shown = curves.with_columns(n=pl.when(target="negative").then(least).otherwise("n"))
        figure = rank_cdf([Panel("A", "", shown)], 10, Ground.LIGHT, kind="tool")
        thin = [trace.line.width < 2 and trace.opacity < 1 for trace in figure.data]
        assert thin == [False, False, few]
        assert any(", n 5" in (note.text or "") for note in figure.layout.annotations) == few
