"""Colours that can be read, drawings that say what the figures say."""

from __future__ import annotations

from base64 import b64decode
from xml.etree import ElementTree

import polars as pl
import pytest

from dashboard.charts.dumbbell_plot import dumbbell_plot
from dashboard.charts.palette import DARK, LIGHT, Colours, Ground, family_colour
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
    assert new.text[0].split() == ["50.0", "+10.0"]
    assert new.text[1].split() == ["45.0", "\N{MINUS SIGN}5.0"]
    assert figure.layout.xaxis.range[0] <= 40.0


def test_an_empty_plot_is_drawn() -> None:
    rows = pl.DataFrame(schema={"name": pl.String, "family": pl.String, "old": pl.Float64, "new": pl.Float64})
    assert dumbbell_plot(rows, "NDCG@10", Ground.DARK) is not None
