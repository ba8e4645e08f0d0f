"""The two themes of ``.streamlit/config.toml``: what can be read on what."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from dashboard.charts.palette import DARK, LIGHT

CONFIG = Path(__file__).resolve().parents[2] / "dashboard" / ".streamlit" / "config.toml"
#: Contrast that small text needs (WCAG 2, AA), and that large text and marks need.
TEXT, MARK = 4.5, 3.0
Colour = tuple[float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0)


def theme(name: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(CONFIG.read_text())["theme"][name]
    return found


def colour(text: str) -> Colour:
    return int(text[1:3], 16) / 255, int(text[3:5], 16) / 255, int(text[5:7], 16) / 255


def luminance(of: Colour) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in of)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def tinted(paint: Colour, ground: Colour, share: float = 0.1) -> Colour:
    """What Streamlit fills a chosen segment with: a tenth of the primary colour over the ground."""
    red, green, blue = (share * p + (1 - share) * g for p, g in zip(paint, ground, strict=True))
    return red, green, blue


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_can_be_read_on_every_ground(name: str) -> None:
    said = theme(name)
    ground, second = colour(said["backgroundColor"]), colour(said["secondaryBackgroundColor"])
    primary = colour(said["primaryColor"])
    for text in ("textColor", "linkColor"):
        assert contrast(colour(said[text]), ground) >= TEXT
        assert contrast(colour(said[text]), second) >= TEXT
    assert contrast(colour(said["dataframeHeaderTextColor"]), colour(said["dataframeHeaderBackgroundColor"])) >= TEXT
    assert contrast(primary, tinted(primary, ground)) >= TEXT, "chosen segments"
    assert contrast(WHITE, primary) >= (TEXT if name == "light" else MARK), "filled buttons and chosen options"


def test_no_primary_colour_does_both_on_the_dark_ground() -> None:
    """Why white on filled buttons is excused there: once a colour exists that does both, it should be taken."""
    ground = colour(theme("dark")["backgroundColor"])
    lightest_under_white = 1.05 / TEXT - 0.05
    darkest_on_ground = TEXT * (luminance(ground) + 0.05) - 0.05
    assert lightest_under_white < darkest_on_ground


def test_charts_share_the_themes_grounds() -> None:
    assert (theme("light")["backgroundColor"], theme("dark")["backgroundColor"]) == (LIGHT.ground, DARK.ground)


def test_no_page_injects_a_style() -> None:
    """Components with a shadow root of their own may style themselves; nothing reaches into Streamlit's elements."""
    for path in CONFIG.parents[1].rglob("*.py"):
        source = path.read_text()
        assert "<style" not in source, path
        assert "unsafe_allow_html" not in source, path
