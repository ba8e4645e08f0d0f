"""One query explained: its labels with verdicts, and where every chosen run ranked each valid answer.

Everything is looked up for one query at a time: nothing is kept, and no frame of the benchmark is copied whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import BenchmarkError
from pipeline.scoring.compiled import EquivalentsBasis
from pipeline.scoring.discounts import check_cutoffs, gains, ideal
from pipeline.scoring.kernel import METRICS


class Role(StrEnum):
    """What a tool is to the query."""

    GROUND_TRUTH = "ground_truth"
    EQUIVALENT = "equivalent"
    #: In a valid combination without a verdict of its own.
    IN_COMBINATION = "in_combination"
    #: Judged, and in no valid combination.
    REJECTED = "rejected"
    UNJUDGED = "unjudged"


Schema = dict[str, pl.DataType | type[pl.DataType]]

#: Each tool of the card once, those of the labels first.
CARD_TOOLS: Schema = {
    "tool_id": pl.String,
    "role": pl.String,
    "name": pl.String,
    "domain": pl.String,
    "source": pl.String,
    "provider": pl.String,
    "documentation": pl.String,
}
#: ``combination`` is the place among the valid ones (0 is C*, then by RRF score), as in ``winner`` columns; null for
#: the others, which follow.
CARD_COMBINATIONS: Schema = {
    "combination": pl.Int32,
    "tool_ids": pl.List(pl.String),
    "is_ground_truth": pl.Boolean,
    "rrf_score": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
    "judge": pl.String,
    "coverage": pl.Boolean,
    "dependency_consistent": pl.Boolean,
}
#: ``ranks`` has one entry a tool of the combination, null where the run did not retrieve it.
CARD_SCORES: Schema = {
    "run": pl.String,
    "combination": pl.Int32,
    "tool_ids": pl.List(pl.String),
    "ranks": pl.List(pl.Int32),
    "NDCG": pl.Float64,
    "Recall": pl.Float64,
    "Comp": pl.Float64,
}
#: ``combination`` is the first that reaches ``new``.
CARD_WINNERS: Schema = {
    "run": pl.String,
    "metric": pl.String,
    "old": pl.Float64,
    "new": pl.Float64,
    "combination": pl.Int32,
    "tool_ids": pl.List(pl.String),
}
#: ``rank`` is null where the run did not retrieve the tool.
CARD_RANKS: Schema = {"run": pl.String, "tool_id": pl.String, "role": pl.String, "rank": pl.Int32}
#: One row where a run finds a ground-truth tool or an equivalent: how many of each it has found by then.
CARD_STEPS: Schema = {
    "run": pl.String,
    "rank": pl.Int32,
    "tool_id": pl.String,
    "role": pl.String,
    "truths": pl.Int32,
    "equivalents": pl.Int32,
}
CARD_LISTS: Schema = {
    "run": pl.String,
    "rank": pl.Int32,
    "tool_id": pl.String,
    "name": pl.String,
    "score": pl.Float32,
    "role": pl.String,
}


@dataclass(frozen=True, eq=False)
class QueryCard:
    """Everything a page shows of one query.

    Attributes:
        k: cutoff of scores and of ``lists``.
        basis: what counts as an equivalent.
        ground_truth: C* in label order.
        subqueries: ``position``, ``text`` (null where the benchmark has none), ``tool_id`` of its ground truth.
        equivalents: the benchmark's rows on this query (``EQUIVALENTS`` without ``query_id``) with ``name`` and
            ``role``, by sub-query, valid ones first, then by retrieval rank.
        tools: columns of ``CARD_TOOLS``.
        combinations: columns of ``CARD_COMBINATIONS``.
        scores: columns of ``CARD_SCORES``: every valid combination under every run.
        winners: columns of ``CARD_WINNERS``.
        ranks: columns of ``CARD_RANKS``: every tool of a label, valid or not, under every run.
        steps: columns of ``CARD_STEPS``.
        lists: columns of ``CARD_LISTS``: the first K results of every run.
    """

    query_id: str
    text: str
    instruction: str
    domain: str
    source: str
    k: int
    basis: EquivalentsBasis
    ground_truth: tuple[str, ...]
    subqueries: pl.DataFrame
    equivalents: pl.DataFrame
    tools: pl.DataFrame
    combinations: pl.DataFrame
    scores: pl.DataFrame
    winners: pl.DataFrame
    ranks: pl.DataFrame
    steps: pl.DataFrame
    lists: pl.DataFrame


def query_card(
    benchmark: Benchmark,
    query_id: str,
    rankings: Mapping[str, pl.DataFrame | pl.LazyFrame] | None = None,
    *,
    k: int = 10,
) -> QueryCard:
    """Explain one query.

    Args:
        benchmark: the labels.
        query_id: which query.
        rankings: run name → its ranking in the columns of ``pipeline.formats.ranking.RANKING``; a lazy scan of the
            stored file reads only the query's rows.
        k: cutoff.

    Raises:
        BenchmarkError: the benchmark has no such query.
        ValueError: k is out of range.
    """
    (depth,) = check_cutoffs((k,))
    here = pl.col("query_id") == query_id
    found = benchmark.queries.filter(here)
    if found.height == 0:
        raise BenchmarkError(f"{benchmark.info.slug}@{benchmark.info.version} has no query {query_id!r}")
    query = found.row(0, named=True)
    truth = _truth(benchmark, query_id)
    verdicts = benchmark.equivalents.filter(here).drop("query_id")
    combinations = _combinations(benchmark.combinations.filter(here), truth)
    basis = EquivalentsBasis.VERIFIED if benchmark.equivalents.height else EquivalentsBasis.COMBINATIONS
    role_of = _roles(truth, verdicts, combinations, basis)
    lists = {
        run: ranking.lazy().filter(here).sort("rank").select("tool_id", "score", "rank").collect()
        for run, ranking in (rankings or {}).items()
    }
    # Every tool of a label or of a shown list, looked up once in the library.
    shown = [tool for rows in lists.values() for tool in rows["tool_id"].head(depth)]
    labelled = list(dict.fromkeys([*role_of, *verdicts["tool_id"]]))
    tools = _tools(benchmark.tools, list(dict.fromkeys([*labelled, *shown])), role_of)
    names = dict(tools.select("tool_id", "name").iter_rows())
    places = {
        run: dict(zip(rows["tool_id"].to_list(), rows["rank"].to_list(), strict=True)) for run, rows in lists.items()
    }
    scores = _scores(combinations, places, depth)
    return QueryCard(
        query_id=query_id,
        text=query["text"] or "",
        instruction=query["instruction"] or "",
        domain=query["domain"] or "",
        source=query["source"] or "",
        k=depth,
        basis=basis,
        ground_truth=truth,
        subqueries=_subqueries(benchmark.subqueries.filter(here), truth),
        equivalents=_equivalents(verdicts, names, role_of),
        tools=tools,
        combinations=combinations,
        scores=scores,
        winners=_winners(scores),
        ranks=_ranks(tools, len(labelled), places),
        steps=_steps(lists, role_of),
        lists=_shown(lists, depth, names, role_of),
    )


def _truth(benchmark: Benchmark, query_id: str) -> tuple[str, ...]:
    row = benchmark.ground_truth.filter(pl.col("query_id") == query_id)
    return tuple(dict.fromkeys(row["tool_ids"][0])) if row.height else ()


def _combinations(rows: pl.DataFrame, truth: tuple[str, ...]) -> pl.DataFrame:
    """Valid combinations in compiled order, then the others; the first of equal sets stands for all."""
    sets = [frozenset(tools or ()) for tools in rows["tool_ids"].to_list()]
    rrf = rows["rrf_score"].fill_nan(None).fill_null(-float("inf")).to_list()
    counts = (rows["verdict"] == Judgement.VALID.value).fill_null(False).to_list()
    first_of: dict[frozenset[str], int] = {}
    others: list[int] = []
    for i in sorted(range(len(sets)), key=lambda i: (-rrf[i], sorted(map(str.encode, sets[i])))):
        if counts[i] and sets[i]:
            first_of.setdefault(sets[i], i)
        else:
            others.append(i)
    stated = first_of.pop(frozenset(truth), None)
    columns = [name for name in CARD_COMBINATIONS if name != "combination"]
    known = rows.select(columns)
    labelled = known.clear(1).with_columns(verdict=pl.lit(Judgement.VALID.value)) if stated is None else known[[stated]]
    labelled = labelled.with_columns(
        pl.Series("tool_ids", [list(truth)], dtype=pl.List(pl.String)), is_ground_truth=pl.lit(True)
    )
    kept = pl.concat([labelled, known[list(first_of.values())]]).with_row_index("combination")
    failed = known[others].with_columns(combination=pl.lit(None, dtype=pl.UInt32))
    return pl.concat([kept, failed], how="diagonal").select(*CARD_COMBINATIONS).cast({"combination": pl.Int32})


def _roles(
    truth: tuple[str, ...], verdicts: pl.DataFrame, combinations: pl.DataFrame, basis: EquivalentsBasis
) -> dict[str, Role]:
    """Every labelled tool, the ground truth first."""
    verified = verdicts.filter(pl.col("verdict") == Judgement.VALID.value)["tool_id"].to_list()
    # An undecided verdict is no verdict.
    refused = verdicts.filter(pl.col("verdict") == Judgement.INVALID.value)["tool_id"].to_list()
    is_valid = combinations["combination"].is_not_null()
    combined = combinations.filter(is_valid)["tool_ids"].explode().drop_nulls().to_list()
    failed = combinations.filter(~is_valid)["tool_ids"].explode().drop_nulls().to_list()
    roles: dict[str, Role] = {}
    member = Role.IN_COMBINATION if basis is EquivalentsBasis.VERIFIED else Role.EQUIVALENT
    for tools, role in (
        (truth, Role.GROUND_TRUTH),
        (verified, Role.EQUIVALENT),
        (combined, member),
        (refused, Role.REJECTED),
        (failed, Role.REJECTED),
    ):
        for tool in tools:
            roles.setdefault(tool, role)
    return roles


def _tools(library: pl.DataFrame, wanted: list[str], role_of: Mapping[str, Role]) -> pl.DataFrame:
    found = library.filter(pl.col("tool_id").is_in(wanted))
    order = pl.DataFrame(
        {"tool_id": wanted, "role": [role_of.get(tool, Role.UNJUDGED).value for tool in wanted]},
        schema={"tool_id": pl.String, "role": pl.String},
    )
    return order.join(found, on="tool_id", how="left", maintain_order="left").select(*CARD_TOOLS)


def _subqueries(rows: pl.DataFrame, truth: tuple[str, ...]) -> pl.DataFrame:
    if rows.height:
        return rows.select("position", "text", "tool_id").sort("position")
    schema = {"position": pl.Int32, "text": pl.String, "tool_id": pl.String}
    return pl.DataFrame([(i, None, tool) for i, tool in enumerate(truth)], schema=schema, orient="row")


def _equivalents(verdicts: pl.DataFrame, names: Mapping[str, str], role_of: Mapping[str, Role]) -> pl.DataFrame:
    tools = verdicts["tool_id"].to_list()
    return verdicts.with_columns(
        pl.Series("name", [names.get(tool) for tool in tools], dtype=pl.String),
        pl.Series("role", [role_of.get(tool, Role.UNJUDGED).value for tool in tools], dtype=pl.String),
    ).sort("position", pl.col("verdict") != Judgement.VALID.value, "retrieval_rank", "tool_id", nulls_last=True)


def _scores(combinations: pl.DataFrame, places: Mapping[str, Mapping[str, int]], k: int) -> pl.DataFrame:
    """Scores of every valid combination; sums in rank order, so they equal the kernel's bit for bit."""
    gain, best = gains().tolist(), ideal().tolist()
    valid = combinations.filter(pl.col("combination").is_not_null()).select("combination", "tool_ids")
    parts = [pl.DataFrame(schema=CARD_SCORES)]
    for run, rank_of in places.items():
        columns: dict[str, list[Any]] = {"ranks": [], **{metric: [] for metric in METRICS}}
        for tools in valid["tool_ids"].to_list():
            columns["ranks"].append([rank_of.get(tool) for tool in tools])
            distinct = set(tools)
            hits = sorted(rank for tool in distinct if (rank := rank_of.get(tool, k + 1)) <= k)
            total = 0.0
            for rank in hits:
                total += gain[rank - 1]
            columns["NDCG"].append(total / best[min(len(distinct), k)])
            columns["Recall"].append(len(hits) / len(distinct))
            columns["Comp"].append(float(len(hits) == len(distinct)))
        scored = valid.with_columns(pl.Series(name, values, CARD_SCORES[name]) for name, values in columns.items())
        parts.append(scored.select(pl.lit(run).alias("run"), *list(CARD_SCORES)[1:]))
    return pl.concat(parts)


def _winners(scores: pl.DataFrame) -> pl.DataFrame:
    rows = []
    for (run,), of_run in scores.group_by("run", maintain_order=True):
        for metric in METRICS:
            values = of_run[metric]
            winner = values.arg_max()
            if winner is not None:
                chosen = of_run.row(winner, named=True)
                rows.append((run, metric, values[0], values[winner], chosen["combination"], chosen["tool_ids"]))
    return pl.DataFrame(rows, schema=CARD_WINNERS, orient="row")


def _ranks(tools: pl.DataFrame, labelled: int, places: Mapping[str, Mapping[str, int]]) -> pl.DataFrame:
    """The first ``labelled`` rows of ``tools`` under every run."""
    rows = [
        (run, tool, role, rank_of.get(tool))
        for run, rank_of in places.items()
        for tool, role in tools.head(labelled).select("tool_id", "role").iter_rows()
    ]
    return pl.DataFrame(rows, schema=CARD_RANKS, orient="row")


def _steps(lists: Mapping[str, pl.DataFrame], role_of: Mapping[str, Role]) -> pl.DataFrame:
    rows = []
    for run, ranked in lists.items():
        counts = {Role.GROUND_TRUTH: 0, Role.EQUIVALENT: 0}
        for tool, rank in ranked.select("tool_id", "rank").iter_rows():
            role = role_of.get(tool, Role.UNJUDGED)
            if role in counts:
                counts[role] += 1
                rows.append((run, rank, tool, role.value, counts[Role.GROUND_TRUTH], counts[Role.EQUIVALENT]))
    return pl.DataFrame(rows, schema=CARD_STEPS, orient="row")


def _shown(
    lists: Mapping[str, pl.DataFrame], k: int, names: Mapping[str, str], role_of: Mapping[str, Role]
) -> pl.DataFrame:
    rows = [
        (run, rank, tool, names.get(tool), score, role_of.get(tool, Role.UNJUDGED).value)
        for run, ranked in lists.items()
        for tool, score, rank in ranked.head(k).iter_rows()
    ]
    return pl.DataFrame(rows, schema=CARD_LISTS, orient="row")
