"""The tables of an open query: scores, ranks, verdicts, combinations and first results, all as texts."""

from __future__ import annotations

import polars as pl

from dashboard.components.numbers import NONE, points
from dashboard.components.open_query import OpenQuery
from pipeline.scoring.query_card import Role

ROLES = {
    Role.GROUND_TRUTH.value: "ground truth",
    Role.EQUIVALENT.value: "equivalent",
    Role.IN_COMBINATION.value: "in a valid combination",
    Role.REJECTED.value: "judged, not valid",
    Role.UNJUDGED.value: "not judged",
}
_MARKS = {
    Role.GROUND_TRUTH.value: "●",
    Role.EQUIVALENT.value: "○",
    Role.IN_COMBINATION.value: "◌",
    Role.REJECTED.value: "×",
    Role.UNJUDGED.value: "",
}
VERDICTS = {"valid": "valid", "invalid": "not valid", "unsure": "unsure"}
_ORIGINS = {
    "ground_truth": "the label",
    "judged": "a judge",
    "rule": "a rule",
    "human": "a person",
    "executed": "a call",
}
_YES = {True: "yes", False: "no", None: NONE}


def winners_table(query: OpenQuery) -> pl.DataFrame:
    """Each run's metrics, old and new, with the combination that wins."""
    rows = []
    for run in query.runs:
        for row in query.card.winners.filter(pl.col("run") == run.id).iter_rows(named=True):
            number = row["combination"]
            rows.append(
                {
                    "Run": query.heads[run.id],
                    "Metric": f"{row['metric']}@{query.card.k}",
                    "Old": points(row["old"]),
                    "New": points(row["new"]),
                    "Lift": points(row["new"] - row["old"], signed=True),
                    "Best combination": f"{'label' if number == 0 else number}: {query.listed(row['tool_ids'])}",
                }
            )
    return pl.DataFrame(rows)


def ranks_table(query: OpenQuery) -> pl.DataFrame:
    """Every tool of a label with its rank under every run."""
    tools = query.card.tools.filter(pl.col("role") != Role.UNJUDGED.value)
    return pl.DataFrame(
        {
            query.kind.capitalize(): [query.names[tool] for tool in tools["tool_id"]],
            "Id": tools["tool_id"],
            "What it is": [ROLES[role] for role in tools["role"]],
            **{query.heads[run.id]: [query.rank(run, tool) for tool in tools["tool_id"]] for run in query.runs},
        }
    )


def equivalents_table(query: OpenQuery, judged: pl.DataFrame, longest: int) -> pl.DataFrame:
    """The tools judged for one need, with verdict, judge, reason and ranks.

    Args:
        query: what is open.
        judged: the rows.
        longest: letters that the column of names has room for.
    """
    return pl.DataFrame(
        {
            query.kind.capitalize(): query.short_names(judged["tool_id"].to_list(), longest),
            "Verdict": [VERDICTS.get(word, word) for word in judged["verdict"]],
            **{query.heads[run.id]: [query.rank(run, tool) for tool in judged["tool_id"]] for run in query.runs},
            "Decided by": [decided(*row) for row in judged.select("origin", "judge").iter_rows()],
            "Reason": judged["reason"].fill_null(""),
        }
    )


def decided(origin: str | None, judge: str | None) -> str:
    """``a judge: openai/gpt-5``."""
    said = _ORIGINS.get(origin or "", origin or "")
    named = judge if judge and origin != "ground_truth" and judge != origin else ""
    return ": ".join(part for part in (said, named) if part)


def combinations_table(query: OpenQuery, rows: pl.DataFrame) -> pl.DataFrame:
    """One row a combination; columns that none of them fills are left out."""
    wins: dict[int, list[str]] = {}
    for run in query.runs:
        won = query.card.winners.filter(pl.col("run") == run.id)
        for number in won["combination"].unique(maintain_order=True):
            metrics = ", ".join(won.filter(pl.col("combination") == number)["metric"])
            wins.setdefault(number, []).append(f"{query.heads[run.id]}: {metrics}" if len(query.runs) > 1 else metrics)
    columns: dict[str, list[str]] = {}
    if rows["combination"].count():
        columns["#"] = ["label" if n == 0 else NONE if n is None else str(n) for n in rows["combination"]]
    columns |= {
        f"{query.kind.capitalize()}s": [query.listed(tools) for tools in rows["tool_ids"]],
        "Verdict": [VERDICTS.get(word or "", word or "") for word in rows["verdict"]],
    }
    for run in query.runs:
        columns[query.heads[run.id]] = [
            ", ".join(query.rank(run, tool) for tool in tools) for tools in rows["tool_ids"]
        ]
    optional = {
        "Best for": ["; ".join(wins.get(n, [])) for n in rows["combination"]],
        "RRF": [NONE if score is None else f"{score:.4f}" for score in rows["rrf_score"]],
        "Covers the query": [_YES[flag] for flag in rows["coverage"]],
        "Fits together": [_YES[flag] for flag in rows["dependency_consistent"]],
        "Judge": rows["judge"].fill_null("").to_list(),
        "Reason": rows["reason"].fill_null("").to_list(),
    }
    columns |= {name: texts for name, texts in optional.items() if any(text not in ("", NONE) for text in texts)}
    return pl.DataFrame(columns)


def results_table(query: OpenQuery, longest: int) -> pl.DataFrame:
    """One row a rank, one column a run; the mark says what the tool is to the query.

    Args:
        query: what is open.
        longest: letters that a column has room for.
    """
    listed = query.card.lists["tool_id"].unique(maintain_order=True).to_list()
    names = dict(zip(listed, query.short_names(listed, longest), strict=True))
    columns: dict[str, list[str]] = {"Rank": [str(rank) for rank in range(1, query.card.k + 1)]}
    for run in query.runs:
        cells = [""] * query.card.k
        rows = query.card.lists.filter(pl.col("run") == run.id)
        for rank, tool, role in rows.select("rank", "tool_id", "role").iter_rows():
            cells[rank - 1] = f"{_MARKS[role]} {names[tool]}".strip()
        columns[query.heads[run.id]] = cells
    return pl.DataFrame(columns)
