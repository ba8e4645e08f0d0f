"""What a board's numbers mean, in plain sentences."""

from __future__ import annotations

import polars as pl

from dashboard.components.board_table import PIN_MARK, SUB_QUERY_MARK
from dashboard.components.controls import Figure
from dashboard.components.numbers import points, whole
from dashboard.components.untrusted import plain
from pipeline.formats.board_rows import BoardView
from pipeline.formats.figures import significance_note


def reading_line(figure: Figure, rows: pl.DataFrame) -> str:
    """How to read the figures of the table: one line of Markdown of ours, others' words escaped."""
    parts = [f"{figure.name} × 100 on {plain(figure.benchmark.name)}, {plain(figure.scope.sentence)}."]
    if figure.view is not BoardView.NEW:
        parts.append("Old: against the one annotated answer.")
    if figure.view is not BoardView.OLD and rows["new"].null_count() < rows.height:
        parts.append("New: the best over all valid answers. Lift: new − old, in points.")
    places = rows.filter(pl.col("provenance") == "reported")["place"].unique().sort().to_list()
    if places:
        listed = ", ".join(plain(place) for place in places)
        parts.append(
            f"Figures of {listed} are as printed there: no ranking lies behind them, so they have no interval."
        )
    marked = significance_note([*rows["old_printed"], *rows["new_printed"]])
    if marked:
        parts.append(marked)
    if rows["old_note"].null_count() + rows["new_note"].null_count() < 2 * rows.height:
        parts.append("\\* has a remark.")
    if "sub-query" in set(rows["level"].to_list()):
        parts.append(
            f"{SUB_QUERY_MARK} sub-query rows: the retriever is asked one need at a time, with needs written from the "
            "labels; that is a ceiling, so these rows are ranked among themselves."
        )
    if rows.filter(pl.col("flags").list.contains("partial")).height:
        parts.append("Partial runs answer fewer than half of the queries and are not ranked.")
    if "pinned" in rows.columns and rows["pinned"].any():
        parts.append(f"{PIN_MARK} pinned by the reader: on top whatever the filters, with its rank on the whole board.")
    parts.append("Select a row for everything about it (keyboard: arrows, then Shift+Space).")
    return " ".join(parts)


def finding(figure: Figure, board: pl.DataFrame) -> str:
    """The board's main result in one sentence; empty where old and new are not both there."""
    both = board.filter(pl.col("lift").is_not_null(), pl.col("level") == "query", pl.col("rank_change").is_not_null())
    if both.is_empty():
        if figure.benchmark.has_content or board["new"].null_count() < board.height:
            return ""
        return "Only one-label figures are known here: what every valid answer would change has not been measured."
    least, most, mean = (float(both["lift"].min()), float(both["lift"].max()), float(both["lift"].mean()))  # type: ignore[arg-type]
    if both.height == 1:
        return f"Counting every valid answer lifts the one retriever here by **{points(least)} points**."
    moved = both.filter(pl.col("rank_change") != 0).height
    if most == 0:
        return "Counting every valid answer changes nothing here: no run found a valid answer beyond the label."
    order = "nobody changes rank" if moved == 0 else f"{whole(moved)} of {whole(both.height)} change rank"
    same = points(least) == points(most)
    gained = f"{points(most)} points" if same else f"{points(least)} to {points(most)} points"
    mean_said = "" if same else f" (mean {points(mean)})"
    what = "retrievers" if both["retriever_key"].n_unique() == both.height else "runs"
    return f"**One label a query underestimates these {whole(both.height)} {what} by {gained}**{mean_said}; {order}."
