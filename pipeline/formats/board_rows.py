"""Filters, search and order of a board (a frame of ``store.access.leaderboard.leaderboard``), for whoever shows it.

Ranks come with the board, counted over all its rows; nothing here moves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl

from pipeline.errors import UsageError
from pipeline.formats.method_labels import TITLES, method_title


class BoardView(StrEnum):
    """Which figures the board shows."""

    BOTH = "both"
    OLD = "old"
    NEW = "new"
    LIFT = "lift"


class SortKey(StrEnum):
    """What the rows are ordered by; the words are part of permalinks."""

    RANK = "rank"
    OLD = "old"
    NEW = "new"
    LIFT = "lift"
    RANK_CHANGE = "rank change"
    TIE_GROUP = "tie group"
    CONTROL = "random lift"
    JUDGED = "judged"
    NAME = "name"
    FAMILY = "family"
    METHOD = "method"
    SIZE = "size"
    ENCODING = "encoding time"
    QUERY_TIME = "query time"
    DIMENSION = "dimension"
    INDEX = "index size"
    DEVICE = "device"
    QUERIES = "queries"
    COVERAGE = "coverage"
    TRAINING = "training"
    TRAINED = "trained on it"
    LEVEL = "level"
    SOURCE = "source"
    DATE = "date"
    SCORER = "scorer"


#: Words for null, by filtered column.
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Filters:
    """What the reader narrowed the board to; an empty choice narrows nothing.

    Attributes:
        chosen: column → accepted words (see ``words``); a method also by the word of its runs.
        search: text that must occur in the name, family, method or contract; case does not matter.
    """

    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    search: str = ""

    @property
    def active(self) -> int:
        """How many filters narrow the board."""
        return sum(1 for accepted in self.chosen.values() if accepted) + bool(self.search.strip())


#: Filtered columns and their titles, in the order they are offered.
FILTERS: dict[str, str] = {
    "family": "Family",
    "size": "Size",
    "training": "Training",
    "weights": "Weights",
    "provenance": "Source",
    "level": "Level",
    "method": "Method",
}
_SIZES = (("under 100M", 100e6), ("100M to 1B", 1e9), ("1B to 5B", 5e9), ("5B and more", float("inf")))


def _size_words() -> pl.Expr:
    expression: Any = pl.when(pl.col("parameters").is_null()).then(pl.lit(UNKNOWN))
    for words, below in _SIZES[:-1]:
        expression = expression.when(pl.col("parameters") < below).then(pl.lit(words))
    finished: pl.Expr = expression.otherwise(pl.lit(_SIZES[-1][0]))
    return finished


def _flag_words(column: str, yes: str, no: str) -> pl.Expr:
    return (
        pl.when(pl.col(column).is_null())
        .then(pl.lit(UNKNOWN))
        .when(pl.col(column))
        .then(pl.lit(yes))
        .otherwise(pl.lit(no))
    )


def words() -> dict[str, pl.Expr]:
    """Filtered column → expression for the word that the reader chooses."""

    def named(column: str) -> pl.Expr:
        return pl.when(pl.col(column).fill_null("") == "").then(pl.lit(UNKNOWN)).otherwise(pl.col(column))

    return {
        "family": named("family"),
        "size": _size_words(),
        "training": _flag_words("fine_tuned", "fine-tuned", "base"),
        "weights": _flag_words("open_weights", "open", "closed"),
        "provenance": named("provenance"),
        "level": named("level"),
        "method": named("method").replace(TITLES),
    }


def filter_options(board: pl.DataFrame) -> dict[str, list[str]]:
    """Every word that occurs, by filtered column: sizes in order, the rest alphabetically, ``unknown`` last."""
    sizes = [words for words, _ in _SIZES]
    found = board.select([expression.alias(column) for column, expression in words().items()])
    options = {}
    for column in FILTERS:
        present = set(found[column].to_list())

        def place(word: str, column: str = column) -> tuple[int, int, str]:
            order = sizes.index(word) if column == "size" and word in sizes else 0
            return (word == UNKNOWN, order, word.casefold())

        options[column] = sorted(present, key=place)
    return options


def check_words(board: pl.DataFrame, filters: Filters) -> None:
    """Refuse words that no row of the board has.

    Raises:
        UsageError: there is such a word; the message says which there are.
    """
    offered = filter_options(board)
    for column, chosen in filters.chosen.items():
        known = offered[column]
        for word in chosen:
            if (method_title(word) if column == "method" else word) not in known:
                raise UsageError(f"no row has {column} {word!r}; there are {', '.join(known)}")


def ranked_for(board: pl.DataFrame, view: BoardView) -> pl.DataFrame:
    """The board with the rank and tie group of the view: by old scores in the view ``old``, else the board's own."""
    if "tie_new" in board.columns:
        # A board without any new figure is ranked by the old ones.
        by_old = view is BoardView.OLD or board["new"].null_count() == board.height
        board = board.with_columns(tie_group=pl.col("tie_old" if by_old else "tie_new"))
    return board.with_columns(rank=pl.col("rank_old")) if view is BoardView.OLD else board


def narrowed(board: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """The rows that every active filter accepts."""
    accepted = words()
    for column, chosen in filters.chosen.items():
        if chosen:
            wanted = [method_title(word) for word in chosen] if column == "method" else list(chosen)
            board = board.filter(accepted[column].is_in(wanted))
    text_wanted = filters.search.strip().lower()
    if text_wanted:
        text = pl.concat_str(
            [pl.col(c).fill_null("") for c in ("retriever", "family", "method", "contract", "place")], separator="\n"
        )
        board = board.filter(text.str.to_lowercase().str.contains(text_wanted, literal=True))
    return board


#: Order → column, and whether it runs from high to low.
_SORTS: dict[SortKey, tuple[str, bool]] = {
    SortKey.RANK: ("rank", False),
    SortKey.OLD: ("old", True),
    SortKey.NEW: ("new", True),
    SortKey.LIFT: ("lift", True),
    SortKey.RANK_CHANGE: ("rank_change", True),
    SortKey.TIE_GROUP: ("tie_group", False),
    SortKey.CONTROL: ("control", True),
    SortKey.JUDGED: ("judged", True),
    SortKey.NAME: ("_name", False),
    SortKey.FAMILY: ("_family", False),
    SortKey.METHOD: ("_method", False),
    SortKey.SIZE: ("parameters", True),
    SortKey.ENCODING: ("encode_seconds_per_1000_documents", False),
    SortKey.QUERY_TIME: ("query_ms", False),
    SortKey.DIMENSION: ("dimension", False),
    SortKey.INDEX: ("index_bytes", False),
    SortKey.DEVICE: ("device", False),
    SortKey.QUERIES: ("n", True),
    SortKey.COVERAGE: ("coverage", True),
    SortKey.TRAINING: ("fine_tuned", False),
    SortKey.TRAINED: ("_trained", False),
    SortKey.LEVEL: ("level", False),
    SortKey.SOURCE: ("_source", False),
    SortKey.DATE: ("published_at", True),
    SortKey.SCORER: ("_scorer", True),
}


def _known(column: str) -> pl.Expr:
    """A text for comparison: without regard to case, null where nothing is said."""
    return pl.when(pl.col(column).fill_null("") == "").then(None).otherwise(pl.col(column).str.to_lowercase())


def ordered(board: pl.DataFrame, key: SortKey, *, reverse: bool = False) -> pl.DataFrame:
    """Sort by ``key``; unknown values come last either way, equal ones by name, method, contract and id.

    Figures and dates run from high to low, ranks, names and costs from low to high; ``reverse`` turns that round.
    With ``rank``, rows at query level come before rows at sub-query level. Figures from a paper have no date here.
    """
    column, descending = _SORTS[key]
    reported = pl.col("provenance") == "reported"
    derived = {
        "_name": pl.col("retriever").str.to_lowercase(),
        "_family": _known("family"),
        "_method": _known("method"),
        "_trained": pl.when(pl.col("trained_on_benchmark") == UNKNOWN).then(None).otherwise("trained_on_benchmark"),
        "_source": pl.when(reported & (pl.col("place") != "")).then("place").otherwise("provenance"),
        "_scorer": pl.col("scorer_version"),
        "_level": pl.col("level") != "query",
    }
    if column not in board.columns and column not in derived:
        # A board whose statistics or costs nobody has read: nothing is known in any row.
        derived[column] = pl.lit(None)
    named = board.with_columns(**derived)
    if key is SortKey.DATE:
        # The table shows no date for them either.
        named = named.with_columns(published_at=pl.when(reported).then(None).otherwise("published_at"))
    by = [column, "_name", "method", "contract", "run_id"]
    down = [descending != reverse, False, False, False, False]
    if key is SortKey.RANK:
        by, down = ["_level", *by], [False, *down]
    places = named.with_row_index("_place").sort(by, descending=down, nulls_last=True, maintain_order=True)["_place"]
    return board[places]


def pinned_first(board: pl.DataFrame, rows: pl.DataFrame, pinned: Sequence[str]) -> pl.DataFrame:
    """The rows that a reader sees: pinned ones on top whatever the filters, in the order of the rest; ``pinned``.

    Args:
        board: all rows, ordered.
        rows: those that the filters accept, ordered in the same way.
        pinned: run ids; those that are not on the board are passed over.
    """
    on_top = pl.col("run_id").is_in(list(pinned))
    return pl.concat([board.filter(on_top), rows.filter(~on_top)]).with_columns(pinned=on_top)
