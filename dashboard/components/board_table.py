"""A leaderboard frame as a table on the page: bold names, old → new movement, figures with the digits they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import polars as pl
import streamlit as st

from dashboard.charts.palette import Ground, colours
from dashboard.charts.row_dumbbell import row_dumbbell, shared_range
from dashboard.components.board_statistics import STATISTICS, is_empty, statistics_texts
from dashboard.components.cost import COST_COLUMNS, COSTS
from dashboard.components.numbers import NONE, day, decimals_of, figure_text, points, size, whole
from pipeline.formats.board_rows import BoardView
from pipeline.formats.flag_words import flag_words
from pipeline.formats.method_labels import method_label

ROW_HEIGHT = 35
#: Marks rows at sub-query level; the line under the table says what it means.
SUB_QUERY_MARK = "‡"
SUB_QUERIES = f"sub-queries {SUB_QUERY_MARK}"
MOST_ROWS_SHOWN = 26
#: Marks rows that the reader pinned; they are tinted too.
PIN_MARK = "◆"
_PIN_TINTS = {Ground.LIGHT: "#eaf1fb", Ground.DARK: "#17233a"}


@dataclass(frozen=True)
class BoardColumn:
    """One column that a reader can show or hide.

    Attributes:
        key: the word in permalinks.
        title: the header.
        help: what it means, on hover.
        width: pixels; None takes what is left.
        views: views in which it makes sense.
    """

    key: str
    title: str
    help: str
    width: int | None
    views: frozenset[BoardView] = frozenset(BoardView)


_WITH_OLD = frozenset({BoardView.BOTH, BoardView.OLD, BoardView.LIFT})
_WITH_NEW = frozenset({BoardView.BOTH, BoardView.NEW, BoardView.LIFT})
_WITH_BOTH = frozenset({BoardView.BOTH, BoardView.LIFT})

COLUMNS: tuple[BoardColumn, ...] = (
    BoardColumn(
        "rank",
        "#",
        "Place on the whole board; filters do not move it. Query level and sub-query level are ranked apart.",
        46,
    ),
    BoardColumn("rank_change", "Δ rank", "Places gained or lost from old to new.", 64, _WITH_BOTH),
    BoardColumn("retriever", "Retriever", "Name of the retriever. Select the row for its details.", 258),
    BoardColumn(
        "move",
        "Old → new",
        "Grey: scored against one label. Colour: scored against every valid answer. All rows share one scale.",
        150,
        _WITH_BOTH,
    ),
    BoardColumn("old", "Old", "Scored against the one annotated answer, ×100.", 62, _WITH_OLD),
    BoardColumn("new", "New", "The best score over all valid combinations, ×100.", 62, _WITH_NEW),
    BoardColumn("lift", "Lift", "New − old, in points.", 62, _WITH_BOTH),
    BoardColumn(
        "tie_group",
        "Tie group",
        "Runs of a group cannot be told from its leader by a paired test over the queries (5 %, Holm). Computed over "
        "all runs with scores by query; filters do not move it.",
        76,
    ),
    BoardColumn(
        "old_interval", "Old, 95 %", "95 % interval of the old figure (bootstrap over queries).", 106, _WITH_OLD
    ),
    BoardColumn(
        "new_interval", "New, 95 %", "95 % interval of the new figure (bootstrap over queries).", 106, _WITH_NEW
    ),
    BoardColumn("lift_interval", "Lift, 95 %", "95 % interval of the lift (bootstrap over queries).", 106, _WITH_BOTH),
    BoardColumn(
        "control",
        "Random lift",
        "The lift that as many random answers instead of the valid ones would give: only more than that speaks for the "
        "labels.",
        86,
        _WITH_BOTH,
    ),
    BoardColumn("judged", "Judged@K", "Share of the first K results that the labels judge for their query.", 78),
    BoardColumn("n", "Queries", "Queries in the mean. Unanswered ones count as 0.", 72),
    BoardColumn("coverage", "Coverage", "Share of the queries that the run answers.", 78),
    BoardColumn("notes", "Notes", "What is worth knowing about this row; select it to read more.", 116),
    BoardColumn("method", "Method", "How the query was put to the retriever.", 130),
    BoardColumn("family", "Family", "Model family.", 96),
    BoardColumn("size", "Size", "Number of weights.", 62),
    *(BoardColumn(c.key, c.title, c.help, c.width) for c in COSTS.values() if c.key in COST_COLUMNS),
    BoardColumn("device", "Device", "What it was measured on.", 130),
    BoardColumn("training", "Training", "Base model, or fine-tuned for tool or skill retrieval.", 88),
    BoardColumn("trained", "Trained on it", "Whether the retriever was trained on this benchmark; never assumed.", 98),
    BoardColumn("level", "Level", "Whole queries, or sub-queries that know the needs behind them.", 84),
    BoardColumn("source", "Source", "Printed in a paper, uploaded, or measured here.", 118),
    BoardColumn("date", "Date", "When it was published here.", 92),
    BoardColumn("scorer", "Scorer", "Version of the scoring code; none for figures from a paper.", 70),
)
_TITLES = {column.key: column.title for column in COLUMNS}
USUAL = tuple(c.key for c in COLUMNS if c.key not in COST_COLUMNS and c.key not in STATISTICS[1:])
#: On a phone the figures come right after the name.
_NARROW_FIRST = ("rank", "retriever", "new", "old", "lift", "move")
_NARROW_WIDTHS = {"rank": 38, "retriever": 170, "new": 57, "old": 57}


def _notes(row: dict[str, Any]) -> str:
    """Flags in words, and whether there is more to read."""
    remark = row["old_note"] or row["new_note"] or (row["provenance"] == "reported" and row["notes"])
    return ", ".join([*flag_words(row["flags"] or []), *(["remark"] if remark else [])])


def _change(places: float | None) -> str:
    if places is None or places != places:
        return NONE
    if places == 0:
        return "="
    return f"{'▲' if places > 0 else '▼'} {abs(int(places))}"


#: How numbers other than the figures are written.
_PLAIN: dict[str, Callable[[Any], str]] = {
    "rank": lambda value: whole(int(value)),
    "rank_change": _change,
    "n": lambda value: whole(int(value)),
    "size": lambda value: size(int(value)),
    "coverage": lambda value: points(value, 0 if value == 1 else 1) + " %",
    **{cost.key: cost.write for cost in COSTS.values() if cost.key in COST_COLUMNS},
}


def _cost(value: float | None, key: str) -> float | None:
    return None if value is None else value / COSTS[key].scale


def _rounded(figure: float | None) -> float | None:
    """×100 with two decimals: what the header sorts by and a screen reader says."""
    return None if figure is None else round(100 * figure, 2)


def as_shown(board: pl.DataFrame, ground: Ground, *, narrow: bool = False) -> pl.DataFrame:
    """The board with the columns of the table: figures ×100, words for codes, a drawing a row.

    Args:
        board: rows of ``ranked``, filtered and ordered; ``pinned`` where some may be.
        ground: theme of the drawings.
        narrow: on a phone a mark alone says sub-query.

    Names that occur in several rows say the method.
    """
    several = board.select("retriever", "level").is_duplicated().to_list()
    asked = f" {SUB_QUERY_MARK}" if narrow else f" · {SUB_QUERIES}"
    low, high = shared_range([*board["old"].to_list(), *board["new"].to_list()])
    rows = board.iter_rows(named=True)
    shown: dict[str, list[Any]] = {column.key: [] for column in COLUMNS}
    for row, repeated in zip(rows, several, strict=True):
        method = method_label(row["method"], row["contract"] or "")
        reported = row["provenance"] == "reported"
        source = row["place"] if reported and row["place"] else row["provenance"]
        values = {
            "rank": row["rank"],
            "rank_change": row["rank_change"],
            "retriever": (f"{PIN_MARK} " if row.get("pinned") else "")
            + row["retriever"]
            + (f" · {method}" if repeated else "")
            + (asked if row["level"] == "sub-query" else ""),
            "move": row_dumbbell(row["old"], row["new"], low, high, ground),
            "old": _rounded(row["old"]),
            "new": _rounded(row["new"]),
            "lift": _rounded(row["lift"]),
            **statistics_texts(row),
            "n": row["n"],
            "coverage": row["coverage"],
            "notes": _notes(row),
            "method": method,
            "family": row["family"] or "",
            "size": row["parameters"],
            "device": row["device"] or NONE,
            **{key: _cost(row[COSTS[key].column], key) for key in COST_COLUMNS if key in COSTS},
            "training": {True: "fine-tuned", False: "base", None: NONE}[row["fine_tuned"]],
            "trained": row["trained_on_benchmark"],
            "level": row["level"],
            "source": source,
            "date": day(row["published_at"]) if not reported else NONE,
            "scorer": row["scorer_version"] or NONE,
        }
        for key, value in values.items():
            shown[key].append(value)
    numeric = {
        "rank": pl.Int64,
        "rank_change": pl.Int64,
        "old": pl.Float64,
        "new": pl.Float64,
        "lift": pl.Float64,
        "n": pl.Int64,
        "coverage": pl.Float64,
        "size": pl.Int64,
        **{key: pl.Float64 for key in COST_COLUMNS if key in COSTS},
    }
    return pl.DataFrame(shown, schema={column.key: numeric.get(column.key, pl.String) for column in COLUMNS})


def _figure_texts(board: pl.DataFrame) -> dict[str, list[str]]:
    """Old, new and lift of every row as text; a star marks a figure with a remark."""
    texts: dict[str, list[str]] = {"old": [], "new": [], "lift": []}
    columns = ["old", "new", "lift", "old_printed", "new_printed", "old_note", "new_note"]
    for row in board.select(columns).iter_rows(named=True):
        texts["old"].append(figure_text(row["old"], row["old_printed"]) + ("*" if row["old_note"] else ""))
        texts["new"].append(figure_text(row["new"], row["new_printed"]) + ("*" if row["new_note"] else ""))
        decimals = decimals_of(row["old_printed"], row["new_printed"])
        texts["lift"].append(points(row["lift"], decimals, signed=True))
    return texts


def _in_turn(texts: Sequence[str]) -> Callable[[Any], str]:
    """A formatter that gives the texts of a column from top to bottom, however often it is rendered."""
    turn = cycle(texts)
    return lambda _: next(turn)


def _styled(board: pl.DataFrame, shown: pl.DataFrame, keys: Sequence[str], ground: Ground) -> Any:
    """A pandas Styler: numbers stay numbers for the header's own sort, their texts are ours."""
    frame = shown.select(keys).to_pandas(use_pyarrow_extension_array=False)
    for key in ("rank", "rank_change", "n", "size"):
        if key in keys:
            frame[key] = frame[key].astype("Int64")
    styler = frame.style
    texts = _figure_texts(board)
    for key in ("old", "new", "lift"):
        if key not in keys:
            continue
        styler = styler.format(_in_turn(texts[key]), subset=[key])
    for key, write in _PLAIN.items():
        if key in keys:
            styler = styler.format(write, subset=[key], na_rep=NONE)
    shades = colours(ground)
    styler = styler.map(lambda _: f"font-weight: 700; color: {shades.text}", subset=["retriever"])
    pinned = board["pinned"].to_list() if "pinned" in board.columns else []
    if any(pinned):
        tint = f"background-color: {_PIN_TINTS[ground]}"
        styler = styler.apply(lambda column: [tint if is_pinned else "" for is_pinned in pinned], axis=0)
    return styler


def as_text(board: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The table as texts under its titles, for Markdown and LaTeX; the drawing is left out."""
    shown = as_shown(board, Ground.LIGHT)
    texts = _figure_texts(board)
    for key, write in _PLAIN.items():
        texts[key] = [NONE if value is None else write(value) for value in shown[key]]
    kept = [key for key in keys if key != "move"]
    return pl.DataFrame({_TITLES[key]: texts.get(key, shown[key].to_list()) for key in kept})


def visible_columns(chosen: Sequence[str], view: BoardView, board: pl.DataFrame, *, narrow: bool) -> list[str]:
    """The chosen columns that say something in this view, in the table's order.

    The name is always there. Movement, lift and the new figure go where no row has a new figure, and so do other
    columns that are empty in every row.
    """
    wanted = set(chosen) | {"retriever"}
    keys = [c.key for c in COLUMNS if c.key in wanted and view in c.views]
    if board["new"].null_count() == board.height:
        keys = [key for key in keys if key not in {"new", "lift", "move", "rank_change"}]
    # What no row can have says nothing: figures from papers have no coverage, date or scorer.
    empty = {
        "coverage": board["coverage"].null_count() == board.height,
        "date": board.filter(pl.col("provenance") != "reported").is_empty(),
        "scorer": board["scorer_version"].null_count() == board.height,
        **is_empty(board),
        "notes": not any(_notes(row) for row in board.iter_rows(named=True)),
        "device": board["device"].null_count() == board.height,
        **{key: board[cost.column].null_count() == board.height for key, cost in COSTS.items() if key != "size"},
    }
    keys = [key for key in keys if not empty.get(key, False)]
    if narrow:
        first = [key for key in _NARROW_FIRST if key in keys]
        keys = first + [key for key in keys if key not in first]
    return keys


def board_table(
    board: pl.DataFrame,
    keys: Sequence[str],
    ground: Ground,
    *,
    key: str,
    label: str,
    selected: int | None,
    narrow: bool,
) -> int | None:
    """Draw the table; returns the position of the selected row.

    Args:
        board: rows of the board, filtered and ordered.
        keys: columns, from ``visible_columns``.
        ground: the reader's theme.
        key: key of the element; a selection is forgotten when it changes.
        label: accessible name.
        selected: position of the row that is selected at first.
        narrow: on a phone, rank, name, new and old fit without scrolling.
    """
    shown = as_shown(board, ground, narrow=narrow)
    config: dict[str, Any] = {}
    widths = dict(_NARROW_WIDTHS) if narrow else {}
    if narrow and "new" not in keys:
        widths["retriever"] += widths["new"]
    for column in COLUMNS:
        width = widths.get(column.key, column.width)
        if column.key == "move":
            config["move"] = st.column_config.ImageColumn(column.title, help=column.help, width=width)
        elif column.key in {"rank", "rank_change", "old", "new", "lift", "n", "coverage", "size", *COSTS}:
            config[column.key] = st.column_config.NumberColumn(
                column.title, help=column.help, width=width, alignment="right"
            )
        else:
            alignment: Literal["right"] | None = "right" if column.key in STATISTICS else None
            config[column.key] = st.column_config.TextColumn(
                column.title, help=column.help, width=width, alignment=alignment
            )
    height: Any = "content" if board.height <= MOST_ROWS_SHOWN else ROW_HEIGHT * (MOST_ROWS_SHOWN + 1) + 2
    state = st.dataframe(
        _styled(board, shown, keys, ground),
        hide_index=True,
        column_config=config,
        height=height,
        lazy=False,
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        selection_default=None if selected is None else {"selection": {"rows": [selected]}},
        placeholder=NONE,
        alt=label,
    )
    rows = state["selection"]["rows"]
    return rows[0] if rows and rows[0] < board.height else None
