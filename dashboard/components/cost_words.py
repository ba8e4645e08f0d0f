"""What the plot of score against cost says in words, and whom it leaves out. Pure functions, no widgets."""

from __future__ import annotations

import polars as pl

from dashboard.components.cost import Cost, small_number
from dashboard.components.numbers import points, whole
from dashboard.components.untrusted import plain

_IN_WORDS = {
    "size": "size",
    "dimension": "dimension",
    "encoding": "encoding time",
    "query": "query time",
    "index": "index",
}
#: "Nearly as good" in the finding.
_NEARLY = 0.95


def cost_finding(drawn: pl.DataFrame, cost: Cost) -> str:
    """What the plot says in one sentence; empty where there is nothing to compare.

    Nothing is said to be cheapest or best that only shares its cost or score with the rest.
    """
    if drawn.height < 2:
        return ""
    if drawn["cost"].n_unique() == 1:
        each = f"{cost.write(drawn['cost'][0])} ({cost.axis})"
        return f"All {whole(drawn.height)} drawn rows cost the same, {each}: this plot tells nothing about cost."
    kept = drawn.filter("best").sort("score", "name", descending=[True, False])
    top = kept.row(0, named=True)
    if kept["cost"].n_unique() == 1:
        return _undefeated(drawn, kept)
    nearly = kept.filter(pl.col("score") >= _NEARLY * top["score"]).sort("cost").row(0, named=True)
    if nearly["cost"] == top["cost"] or not nearly["cost"]:
        others = kept.filter(pl.col("cost") < top["cost"]).height
        words = "1 cheaper row scores" if others == 1 else f"{others} cheaper rows score"
        return f"**{plain(top['name'])}** scores highest, and {words} as much as their cost allows."
    times = float(f"{top['cost'] / nearly['cost']:.2g}")
    return (
        f"**{plain(nearly['name'])} reaches {points(nearly['score'] / top['score'], 0)} % of the best score** "
        f"({points(nearly['score'])} against {points(top['score'])} of {plain(top['name'])}) at "
        f"1/{small_number(times)} of the {_IN_WORDS[cost.key]}."
    )


def _undefeated(drawn: pl.DataFrame, kept: pl.DataFrame) -> str:
    """The best rows all have one cost, the lowest, and one score, the highest: who shares them."""
    names = [plain(name) for name in kept["name"]]
    sharing = drawn.filter(pl.col("cost") == kept["cost"][0], ~pl.col("run_id").is_in(kept["run_id"].to_list())).height
    if len(names) > 1:
        return f"**{', '.join(names[:-1])} and {names[-1]}** share the highest score at the lowest cost."
    if not sharing:
        return f"**{names[0]}** has the highest score and the lowest cost of the {whole(drawn.height)} drawn rows."
    return (
        f"**{names[0]}** has the highest score of the {whole(drawn.height)} drawn rows; "
        f"{'1 other row costs' if sharing == 1 else f'{whole(sharing)} other rows cost'} as little."
    )


def left_out(board: pl.DataFrame, drawn: pl.DataFrame, score: str) -> str:
    """How many rows are not in the plot, whose they are, and whether any of them scores higher.

    Args:
        board: all rows of the board.
        drawn: those that are drawn, with their ``score``.
        score: the board's column that is drawn.
    """
    missing = board.filter(~pl.col("run_id").is_in(drawn["run_id"].to_list()))
    if missing.is_empty():
        return ""
    names = missing["retriever"].unique().sort().to_list()
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    rows = "1 of the" if missing.height == 1 else f"{whole(missing.height)} of the"
    verb = "is" if missing.height == 1 else "are"
    said = f"{rows} {whole(board.height)} rows {verb} not drawn, since the figure is not known: {plain(listed)}."
    most = drawn["score"].max()
    higher = 0 if most is None else missing.filter(pl.col(score) > most).height
    if not higher:
        return said
    who = "It" if missing.height == 1 else f"{whole(higher)} of them"
    return f"{said} {who} {'scores' if higher == 1 else 'score'} higher than all that are drawn."
