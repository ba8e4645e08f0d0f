"""What a gain table says: in one sentence a pair, in words beside bars, and as a table of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dashboard.charts.gain_split_bars import GainBar
from dashboard.components.numbers import MINUS, NONE, points, whole

#: Below this a test's p is called clear.
LEVEL = 0.05
Row = Mapping[str, Any]


def percent(share: float | None, decimals: int = 1) -> str:
    """A share as ``47.0 %``, with a real minus; ``—`` when undefined."""
    return NONE if share is None else f"{100 * share:.{decimals}f} %".replace("-", MINUS)


def p_text(p: float | None) -> str:
    """A p value: ``<0.001``, three decimals, ``—`` when there is no test."""
    if p is None:
        return NONE
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """``+6.4 [+5.1, +7.8]``; the value alone where there is no interval."""
    said = points(value, signed=True)
    if low is None or high is None:
        return said
    return f"{said} [{points(low, signed=True)}, {points(high, signed=True)}]"


def bar_words(row: Row) -> str:
    """``+7.2 → +3.8, 47.0 % artifact``, or what is special about this row."""
    old, new = points(row["gain_old"], signed=True), points(row["gain_new"], signed=True)
    if row["gain_new"] is None:
        return f"{old}, new not known"
    moved = f"{old} → {new}"
    if row["sign_flips"]:
        return f"{moved}, sign flips"
    if row["share"] is None:
        return f"{moved}, no gain with one label"
    if row["share"] < 0:
        return f"{moved}, {points(row['gain_new'] - row['gain_old'])} hidden"
    return f"{moved}, {percent(row['share'])} artifact"


def gain_bars(table: pl.DataFrame) -> list[GainBar]:
    """The bars of one pair and metric."""
    return [
        GainBar(
            name=over(row),
            words=bar_words(row),
            old=row["gain_old"],
            new=row["gain_new"],
            old_ends=_ends(row, "gain_old"),
            new_ends=_ends(row, "gain_new"),
        )
        for row in table.iter_rows(named=True)
    ]


def _ends(row: Row, name: str) -> tuple[float, float] | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if low is None or high is None else (low, high)


def over(row: Row) -> str:
    """What a row is the mean over: a domain with a capital, or ``Macro average``."""
    if row["average"] != "domain":
        return f"{row['average']} average".capitalize()
    name = str(row["domain"] or "")
    return name[:1].upper() + name[1:] or "no domain"


def pair_sentence(row: Row, kind: str) -> str:
    """What the headline row means, as Markdown of ours.

    Args:
        row: of a gain table.
        kind: ``tool`` or ``skill``.
    """
    old, new = points(row["gain_old"], signed=True), points(row["gain_new"], signed=True)
    once = f"once equivalent {kind}s count"
    if row["gain_new"] is None:
        return f"The gain is {old} points with one label; it is not known against every valid answer."
    if row["share"] is None:
        return f"There is no gain with one label ({old} points), so no part of it can disappear; {once}, it is {new}."
    if row["sign_flips"]:
        return f"**All of this gain disappears** {once}, and turns into a loss: {old} becomes {new} points."
    if row["share"] < 0:
        hidden = points(row["gain_new"] - row["gain_old"])
        share = percent(row["share"])
        return f"**One label hid gain**: {once}, {old} becomes {new} points, {hidden} more (artifact {share})."
    if round(100 * row["share"]) == 0:
        return f"**This gain is real**: {once}, {old} becomes {new} points."
    return f"**{percent(row['share'], 0)} of this gain disappears** {once}: {old} becomes {new} points."


def test_sentence(row: Row) -> str:
    """How sure the split is: interval and test of the difference of differences; empty without per-query scores."""
    if row["p_shrink"] is None or row["artifact"] is None:
        return ""
    change = with_interval(row["artifact"], row["artifact_low"], row["artifact_high"])
    clear = row["p_shrink_holm"] is not None and row["p_shrink_holm"] <= LEVEL
    p = p_text(row["p_shrink_holm"])
    p = f"p {p.replace('<', '< ')}" if p.startswith("<") else f"p = {p}"
    verdict = "old and new gain differ" if clear else "old and new gain cannot be told apart"
    return f"Old minus new gain: {change} points; {verdict} ({p}, Holm)."


def share_sentence(row: Row) -> str:
    """The interval of the share, or why there is none; empty without per-query scores or where one label hid gain."""
    if row["p_shrink"] is None or row["share"] is None or row["share"] < 0:
        return ""
    if row["share_low"] is None or row["share_high"] is None:
        return "The share has no finite interval: the gain with one label may be zero."
    return f"95 % interval of the share: {percent(row['share_low'], 0)} to {percent(row['share_high'], 0)}."


def gain_texts(table: pl.DataFrame, *, names: Mapping[str, str] | None = None) -> pl.DataFrame:
    """The table as shown: gains with intervals, p values, share.

    Args:
        table: columns of ``GAIN_TABLE``; with ``names`` also ``pair``.
        names: value of ``pair`` → what is shown for it.
    """
    tested = table["p_shrink"].null_count() < table.height
    rows = []
    for row in table.iter_rows(named=True):
        cells = {} if names is None else {"Retriever": names[row["pair"]]}
        cells["Over"] = over(row)
        cells["Queries"] = whole(row["n"])
        for view in ("old", "new"):
            name = f"gain_{view}"
            cells[f"Gain, {view}"] = with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
            if tested:
                cells[f"p, {view}"] = p_text(row[f"p_{view}_holm"])
        cells["Old − new"] = with_interval(row["artifact"], row["artifact_low"], row["artifact_high"])
        if tested:
            cells["p"] = p_text(row["p_shrink"])
            cells["p (Holm)"] = p_text(row["p_shrink_holm"])
        cells["Artifact"] = percent(row["share"])
        rows.append(cells)
    return pl.DataFrame(rows, infer_schema_length=None)
