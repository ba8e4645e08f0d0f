"""What a gain table says: in one sentence a pair, in words beside bars, and as a table of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dashboard.charts.gain_split_bars import GainBar
from dashboard.components.numbers import MINUS, NONE, points, whole
from pipeline.scoring.illusion import share_is_meaningful

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


def shown_share(row: Row) -> float | None:
    """The share that may be said as a percentage; None also where the old gain is near zero or may be zero."""
    share: float | None = row["share"]
    return share if share_is_meaningful(row["gain_old"], row.get("gain_old_low")) else None


def is_tested(row: Row) -> bool:
    """Whether the row was measured, so that intervals and tests stand behind it."""
    return row["p_shrink"] is not None


def is_clear(row: Row) -> bool:
    """Whether old and new gain differ: by the adjusted test, or, for printed figures, as printed."""
    return not is_tested(row) or (row["p_shrink_holm"] is not None and row["p_shrink_holm"] <= LEVEL)


def _hid_clearly(row: Row) -> bool:
    """Whether the test finds that the gain over every valid answer is the larger one."""
    return is_clear(row) and row["artifact"] < 0


def bar_words(row: Row) -> str:
    """``+7.2 → +3.8, 47.0 % artifact``, or what is special about this row."""
    old, new = points(row["gain_old"], signed=True), points(row["gain_new"], signed=True)
    if row["gain_new"] is None:
        return f"{old}, new not known"
    moved = f"{old} → {new}"
    if row["share"] is None:
        return f"{moved}, no gain with one label"
    if is_tested(row) and shown_share(row) is None and not _hid_clearly(row):
        return f"{moved}, no clear gain with one label"
    if not is_clear(row):
        return f"{moved}, not told apart"
    if row["sign_flips"]:
        return f"{moved}, sign flips"
    if row["share"] < 0:
        return f"{moved}, {points(row['gain_new'] - row['gain_old'])} hidden"
    share = shown_share(row)
    return moved if share is None else f"{moved}, {percent(share)} artifact"


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


def pair_sentence(row: Row, kind: str, *, pending: bool = False) -> str:
    """What the headline row means, as Markdown of ours.

    It claims no more than the test finds: where old and new gain cannot be told apart, neither a loss nor a gain of the
    difference is claimed.

    Args:
        row: of a gain table.
        kind: ``tool`` or ``skill``.
        pending: the pair's tests are still being computed, so nothing is claimed of the difference.
    """
    old, new = points(row["gain_old"], signed=True), points(row["gain_new"], signed=True)
    once = f"once equivalent {kind}s count"
    if row["gain_new"] is None:
        return f"The gain is {old} points with one label; it is not known against every valid answer."
    if row["share"] is None:
        return f"There is no gain with one label ({old} points), so no part of it can disappear; {once}, it is {new}."
    if pending:
        return f"The gain is {old} points with one label; {once}, it is {new}."
    share = shown_share(row)
    if is_tested(row) and share is None and not _hid_clearly(row):
        gain = with_interval(row["gain_old"], row["gain_old_low"], row["gain_old_high"])
        return (
            f"**No clear gain with one label**: {gain} points, near zero or perhaps zero, so no share of it is an "
            f"artifact; {once}, it is {new}."
        )
    if not is_clear(row):
        return f"**The gain with one label and the gain {once} cannot be told apart**: {old} and {new} points."
    if row["sign_flips"]:
        high = row.get("gain_new_high")
        loss = "and turns into a loss: " if high is None or high < 0 else "perhaps into a loss: "
        return f"**All of this gain disappears** {once}, {loss}{old} becomes {new} points."
    if row["share"] < 0:
        hidden = points(row["gain_new"] - row["gain_old"])
        of_it = "" if share is None else f" (artifact {percent(share)})"
        return f"**One label hid gain**: {once}, {old} becomes {new} points, {hidden} more{of_it}."
    if share is None:
        return f"The gain is near zero with one label ({old} points); {once}, it is {new}."
    if round(100 * share) == 0:
        return f"**This gain is real**: {once}, {old} becomes {new} points."
    return f"**{percent(share, 0)} of this gain disappears** {once}: {old} becomes {new} points."


def test_sentence(row: Row) -> str:
    """How sure the split is: interval and test of the difference of differences; empty without per-query scores."""
    if row["p_shrink"] is None or row["artifact"] is None:
        return ""
    change = with_interval(row["artifact"], row["artifact_low"], row["artifact_high"])
    p = p_text(row["p_shrink_holm"])
    p = f"p {p.replace('<', '< ')}" if p.startswith("<") else f"p = {p}"
    verdict = "old and new gain differ" if is_clear(row) else "old and new gain cannot be told apart"
    return f"Old minus new gain: {change} points; {verdict} ({p}, Holm)."


def share_sentence(row: Row) -> str:
    """The interval of the share, or why there is none; empty without per-query scores or where one label hid gain."""
    if not is_tested(row) or row["share"] is None:
        return ""
    if shown_share(row) is not None and row["share"] < 0:
        return ""
    if shown_share(row) is None or row["share_low"] is None or row["share_high"] is None:
        return "The share has no finite interval: the gain with one label may be zero."
    return f"95 % interval of the share: {percent(row['share_low'], 0)} to {percent(row['share_high'], 0)}."


def gain_texts(table: pl.DataFrame, *, names: Mapping[str, str] | None = None) -> pl.DataFrame:
    """The table as shown: gains with intervals, p values as found and Holm-adjusted, share.

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
                cells[f"p, {view}"] = p_text(row[f"p_{view}"])
                cells[f"p (Holm), {view}"] = p_text(row[f"p_{view}_holm"])
        cells["Old − new"] = with_interval(row["artifact"], row["artifact_low"], row["artifact_high"])
        if tested:
            cells["p, old − new"] = p_text(row["p_shrink"])
            cells["p (Holm), old − new"] = p_text(row["p_shrink_holm"])
        cells["Artifact"] = percent(shown_share(row))
        rows.append(cells)
    return pl.DataFrame(rows, infer_schema_length=None)
