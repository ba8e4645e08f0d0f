"""The papers' paired table: old and new side by side a metric, and the mean lift of a domain. Pure functions.

Works on the wide frame of ``store.access.leaderboard.paired_table``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from pipeline.formats.figures import NONE, figure_text, points
from pipeline.formats.method_labels import method_label, method_words
from pipeline.formats.tables import escape_latex
from pipeline.scoring.rank_agreement import kendall_tau

METRICS = ("NDCG", "Recall", "Comp")


@dataclass(frozen=True)
class Group:
    """One group of columns: a domain or an average.

    Attributes:
        scope: ``macro``, ``micro`` or ``domain:NAME``, as the frame's columns say it.
        title: over the group.
    """

    scope: str
    title: str


def groups_of(wide: pl.DataFrame) -> list[Group]:
    """All scopes that have figures, averages first, then domains in the benchmark's order."""
    scopes = list(
        dict.fromkeys(name.split("/", 1)[1].rsplit("/", 1)[0] for name in wide.columns if name.endswith("/old"))
    )
    found: list[Group] = []
    for scope in scopes:
        domain = scope.removeprefix("domain:")
        title = f"{scope} average" if domain == scope else (domain[:1].upper() + domain[1:]) or "no domain"
        taken = {group.title for group in found}
        # Domains are told apart byte for byte: ``code`` and ``Code`` are two.
        found.append(Group(scope, title if title not in taken else f"domain {domain}"))
    return found


def metrics_of(wide: pl.DataFrame) -> list[str]:
    """The metrics that any row has a figure of."""
    present = []
    for metric in METRICS:
        columns = [c for c in wide.columns if c.startswith(f"{metric}@") and c.endswith(("/old", "/new"))]
        if any(wide[c].null_count() < wide.height for c in columns):
            present.append(metric)
    return present


def mean_lift(metrics: Sequence[str], k: int, scope: str) -> pl.Expr:
    """Δ of a group as the papers print it: the mean over the metrics of new − old; null where one is missing."""
    lifts = [pl.col(f"{metric}@{k}/{scope}/lift") for metric in metrics]
    return pl.sum_horizontal(lifts, ignore_nulls=False) / len(lifts)


def long_lifts(wide: pl.DataFrame, metrics: Sequence[str], k: int, groups: Sequence[Group]) -> pl.DataFrame:
    """One row a retriever and group, for downloads in full precision: every old, new and lift, and Δ."""
    base = ["run_id", "retriever", "method", "level", "contract", "provenance", "place", "rank"]
    parts = []
    for group in groups:
        columns = [
            pl.col(f"{metric}@{k}/{group.scope}/{side}").alias(f"{metric}@{k} {side}")
            for metric in metrics
            for side in ("old", "new", "lift")
        ]
        parts.append(
            wide.select(
                *base,
                pl.lit(group.title).alias("over"),
                *columns,
                mean_lift(metrics, k, group.scope).alias("mean lift"),
            )
        )
    return pl.concat(parts) if parts else wide.select(base)


def paired_cells(
    wide: pl.DataFrame, metrics: Sequence[str], k: int, groups: Sequence[Group]
) -> dict[tuple[str, str], list[str]]:
    """(group title, column title) → a text a row: ``42.5 / 51.7`` for pairs, ``+7.4`` for Δ; all ×100."""
    cells: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        for metric in metrics:
            name = f"{metric}@{k}/{group.scope}"
            side = wide.select(
                old=f"{name}/old", new=f"{name}/new", old_text=f"{name}/old_printed", new_text=f"{name}/new_printed"
            )
            cells[group.title, f"{metric}@{k}"] = [_pair(*row) for row in side.iter_rows()]
        deltas = wide.select(delta=mean_lift(metrics, k, group.scope))["delta"]
        cells[group.title, "Δ"] = [points(value, signed=True) for value in deltas]
    return cells


def _pair(old: float | None, new: float | None, old_printed: str | None, new_printed: str | None) -> str:
    left = figure_text(old, old_printed)
    return left if new is None else f"{left} / {figure_text(new, new_printed)}"


def row_names(wide: pl.DataFrame) -> list[str]:
    """Retriever names, with the method, the place or the whole setting where the name alone is not one row."""
    names = wide["retriever"].to_list()
    ways = list(wide.select("method", "contract").iter_rows())
    repeated = _repeated(names)
    chosen = [
        f"{name} · {method_label(method, contract or '')}" if name in repeated else name
        for name, (method, contract) in zip(names, ways, strict=True)
    ]
    again = _repeated(chosen)
    places = wide.select(pl.coalesce(pl.col("place").replace("", None), "provenance"))["place"].to_list()
    placed = [f"{name} ({place})" if name in again else name for name, place in zip(chosen, places, strict=True)]
    still = _repeated(placed)
    return [
        f"{name} · {method_words(method, contract or '')} ({place})" if short in still else short
        for short, name, (method, contract), place in zip(placed, names, ways, places, strict=True)
    ]


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def run_names(board: pl.DataFrame) -> list[str]:
    """``row_names``, with the level where a sub-query run does not say it yet, and the id where two are still equal.

    Args:
        board: with ``run_id`` and ``level`` beside the columns of ``row_names``.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name, level, run_id in zip(row_names(board), board["level"], board["run_id"], strict=True):
        shown = name if level == "query" or level in name.lower() else f"{name} · {level}"
        shown = shown if shown not in taken else f"{shown} ({run_id})"
        taken.add(shown)
        found.append(shown)
    return found


def flat_table(wide: pl.DataFrame, cells: dict[tuple[str, str], list[str]]) -> pl.DataFrame:
    """The table with one header line, for Markdown."""
    single = len({group for group, _ in cells}) == 1
    named = {(column if single else f"{group} {column}"): texts for (group, column), texts in cells.items()}
    return pl.DataFrame({"Retriever": row_names(wide), **named})


def paired_latex(wide: pl.DataFrame, cells: dict[tuple[str, str], list[str]]) -> str:
    """The table as the papers set it: a rule over each domain, old / new in a cell, Δ at the end of a domain."""
    groups = list(dict.fromkeys(group for group, _ in cells))
    width = {group: sum(1 for g, _ in cells if g == group) for group in groups}
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{''.join('c' * (width[g] - 1) + 'r' for g in groups)}}}",
        "\\toprule",
    ]
    heads = [f"\\multicolumn{{{width[g]}}}{{c}}{{{escape_latex(g)}}}" for g in groups]
    lines.append(" & ".join(["", *heads]) + " \\\\")
    place = 2
    rules = []
    for group in groups:
        rules.append(f"\\cmidrule(lr){{{place}-{place + width[group] - 1}}}")
        place += width[group]
    lines.append("".join(rules))
    lines.append(" & ".join(["Retriever", *(escape_latex(column) for _, column in cells)]) + " \\\\")
    lines.append("\\midrule")
    for row, name in enumerate(row_names(wide)):
        lines.append(
            " & ".join([escape_latex(name), *(escape_latex(texts[row]) for texts in cells.values())]) + " \\\\"
        )
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def agreement(wide: pl.DataFrame, metrics: Sequence[str], k: int, groups: Sequence[Group]) -> pl.DataFrame:
    """Kendall τ between the old and the new order of the ranked rows: over, one column a metric, retrievers."""
    ranked = wide.filter(~pl.col("flags").list.contains("partial"))
    rows = []
    for group in groups:
        row: dict[str, str] = {"Kendall τ, old against new": group.title}
        counted = 0
        for metric in metrics:
            name = f"{metric}@{k}/{group.scope}"
            both = ranked.select(old=f"{name}/old", new=f"{name}/new").drop_nulls()
            counted = max(counted, both.height)
            tau = kendall_tau(both["old"].to_list(), both["new"].to_list()) if both.height > 1 else None
            row[f"{metric}@{k}"] = NONE if tau is None else f"{tau:.2f}".replace("-", "\N{MINUS SIGN}")
        row["retrievers"] = str(counted)
        rows.append(row)
    return pl.DataFrame(rows)
