"""The leaderboard: one row a current published public run, ranked by one rule for everybody.

The row of a retriever, method, level, contract, provenance and place is its newest published run; a reported
figure, an upload and a measurement are different evidence and never replace each other.

Ranks are counted within a level (a sub-query run knows the needs of each query, so it does not compete with query
runs). Equal values share a rank. Unscored and ``partial`` runs have none and come last.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl
from sqlalchemy import and_, func, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from store.errors import NotFound
from store.models import (
    AverageOf,
    BenchmarkVersion,
    MetricSummary,
    Retriever,
    Run,
    State,
    View,
    Visibility,
)
from store.statistics_models import LiftSummary

#: The flag of a run that answered too few queries to be ranked.
PARTIAL = "partial"

_TIME = pl.Datetime("us", "UTC")

#: Columns that both tables start with.
RUN_COLUMNS: dict[str, pl.DataType] = {
    "run_id": pl.String(),
    "retriever_key": pl.String(),
    "retriever": pl.String(),
    "family": pl.String(),
    "parameters": pl.Int64(),
    "dimension": pl.Int64(),
    "fine_tuned": pl.Boolean(),
    "base_key": pl.String(),
    "open_weights": pl.Boolean(),
    "retriever_licence": pl.String(),
    "retriever_link": pl.String(),
    "method": pl.String(),
    "level": pl.String(),
    "contract": pl.String(),
    "contract_hash": pl.String(),
    "provenance": pl.String(),
    "place": pl.String(),
    "depth": pl.Int64(),
    "queries_total": pl.Int64(),
    "queries_answered": pl.Int64(),
    "missing": pl.Int64(),
    "flags": pl.List(pl.String()),
    "notes": pl.List(pl.String()),
    "trained_on_benchmark": pl.String(),
    "scorer_version": pl.String(),
    "benchmark_hash": pl.String(),
    "ranking_hash": pl.String(),
    "link": pl.String(),
    "licence": pl.String(),
    "created_at": _TIME,
    "published_at": _TIME,
    "versions": pl.Int64(),
}

_VIEW_COLUMNS: dict[str, pl.DataType] = {
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int64(),
    "printed": pl.String(),
    "note": pl.String(),
}

_VIEWS = ("old", "new")

#: What a board knows of lifts beside their values; null until the statistics of a run are made.
LIFT_COLUMNS: dict[str, pl.DataType] = {
    "lift_low": pl.Float64(),
    "lift_high": pl.Float64(),
    "control": pl.Float64(),
    "control_low": pl.Float64(),
    "control_high": pl.Float64(),
    "judged": pl.Float64(),
}

#: Columns of ``scores``.
SCORE_COLUMNS: dict[str, pl.DataType] = {
    "run_id": pl.String(),
    "view": pl.String(),
    "metric": pl.String(),
    "k": pl.Int64(),
    "average": pl.String(),
    "domain": pl.String(),
    **_VIEW_COLUMNS,
}


def leaderboard(
    session: Session,
    benchmark_version_id: int,
    *,
    metric: str = "NDCG",
    k: int = 10,
    average: str | None = None,
    domain: str | None = None,
) -> pl.DataFrame:
    """The board of one figure.

    Args:
        session: of ``Database.reading`` or ``session``.
        benchmark_version_id: of the board.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff.
        average: ``macro``, ``micro``, ``domain`` or ``source``; None takes the benchmark's headline, or ``domain``
            when a domain is given.
        domain: the domain's (or source's) name; only with these two averages.

    Returns:
        One row a current run, query level first, in rank order, runs without a rank last; columns of
        ``RUN_COLUMNS`` and

        - old, new, lift: fractions, null where not known (lift where either is null);
        - old_low, old_high, new_low, new_high, old_printed, new_printed, old_note, new_note, n;
        - lift_low, lift_high, control, control_low, control_high, judged: see ``store.statistics_models.LiftSummary``;
        - coverage: answered over all queries, null for reported figures;
        - rank: by new, or by old on a board where nothing has a new figure; null when not ranked;
        - rank_old, rank_new: counted among the runs that have both figures (by old alone on a board where nothing
          has a new one); rank_change: rank_old − rank_new, so 2 means two places up.

    Raises:
        NotFound: there is no such benchmark version.
    """
    chosen = average or (AverageOf.DOMAIN.value if domain is not None else headline(session, benchmark_version_id))
    current = _current(benchmark_version_id)
    old, new = aliased(MetricSummary), aliased(MetricSummary)

    def figure_of(table: type[MetricSummary], view: View) -> Any:
        return and_(
            col(table.run_id) == current.c.id,
            col(table.metric) == metric,
            col(table.k) == k,
            col(table.average) == chosen,
            col(table.domain) == (domain or ""),
            col(table.view) == view.value,
        )

    query = (
        select(
            *_run_columns(current),
            *(getattr(old, name) for name in _VIEW_COLUMNS),
            *(getattr(new, name) for name in _VIEW_COLUMNS),
            *(getattr(LiftSummary, name.removeprefix("lift_")) for name in LIFT_COLUMNS),
        )
        .join(Retriever, col(Retriever.id) == current.c.retriever_id)
        .join(old, figure_of(old, View.OLD), isouter=True)
        .join(new, figure_of(new, View.NEW), isouter=True)
        .join(
            LiftSummary,
            and_(
                col(LiftSummary.run_id) == current.c.id,
                col(LiftSummary.metric) == metric,
                col(LiftSummary.k) == k,
                col(LiftSummary.average) == chosen,
                col(LiftSummary.domain) == (domain or ""),
            ),
            isouter=True,
        )
        .where(current.c.place_in_row == 1)
    )
    schema = {
        **RUN_COLUMNS,
        **{f"{view}_{name}": dtype for view in ("old", "new") for name, dtype in _VIEW_COLUMNS.items()},
        **LIFT_COLUMNS,
    }
    frame = pl.DataFrame([tuple(row) for row in session.execute(query)], schema=schema, orient="row")
    return _ranked(frame)


def scores(
    session: Session,
    benchmark_version_id: int,
    *,
    metrics: Collection[str] | None = None,
    ks: Collection[int] | None = None,
    averages: Collection[str] = ("macro", "micro", "domain"),
) -> pl.DataFrame:
    """All chosen figures of the board's current runs, one a row; columns of ``SCORE_COLUMNS``, no fixed order."""
    current = _current(benchmark_version_id)
    columns = [getattr(MetricSummary, name) for name in SCORE_COLUMNS]
    query = (
        select(*columns)
        .select_from(current)
        .join(MetricSummary, col(MetricSummary.run_id) == current.c.id)
        .where(current.c.place_in_row == 1, col(MetricSummary.average).in_(list(averages)))
    )
    if metrics is not None:
        query = query.where(col(MetricSummary.metric).in_(list(metrics)))
    if ks is not None:
        query = query.where(col(MetricSummary.k).in_(list(ks)))
    return pl.DataFrame([tuple(row) for row in session.execute(query)], schema=SCORE_COLUMNS, orient="row")


def paired_table(
    session: Session,
    benchmark_version_id: int,
    *,
    metrics: Sequence[str] = ("NDCG", "Recall", "Comp"),
    k: int = 10,
) -> pl.DataFrame:
    """The old-against-new table: one row a current run, all metrics at one K by domain, wide.

    Returns:
        ``RUN_COLUMNS``, coverage, rank (of the headline figure: NDCG where it is among the metrics, else the first)
        and, for each metric and scope (``macro``, ``micro`` and ``domain:NAME``, domains in the benchmark's order),
        ``{metric}@{k}/{scope}/old``, ``…/new``, ``…/lift``, ``…/old_printed``, ``…/new_printed``, in rank order.

    Raises:
        NotFound: there is no such benchmark version.
    """
    first = "NDCG" if "NDCG" in metrics else metrics[0]
    board = leaderboard(session, benchmark_version_id, metric=first, k=k)
    long = scores(session, benchmark_version_id, metrics=metrics, ks=[k])
    scope = pl.when(pl.col("average") == "domain").then("domain:" + pl.col("domain")).otherwise("average")
    named = long.select(
        "run_id", "value", "printed", (pl.format(f"{{}}@{k}/{{}}/{{}}", "metric", scope, "view")).alias("name")
    )
    names = [f"{m}@{k}/{s}/{v}" for m in metrics for s in _scopes(session, benchmark_version_id, long) for v in _VIEWS]
    values = named.pivot("name", on_columns=names, index="run_id", values="value")
    printed = named.pivot("name", on_columns=names, index="run_id", values="printed")
    wide = (
        board.select(*RUN_COLUMNS, "coverage", "rank")
        .join(values, on="run_id", how="left", maintain_order="left")
        .join(printed, on="run_id", how="left", maintain_order="left", suffix="_printed")
        .with_columns(
            (pl.col(f"{stem}/new") - pl.col(f"{stem}/old")).alias(f"{stem}/lift")
            for stem in (name.removesuffix("/old") for name in names if name.endswith("/old"))
        )
    )
    parts = ("old", "new", "lift", "old_printed", "new_printed")
    stems = (name.removesuffix("/old") for name in names if name.endswith("/old"))
    return wide.select(*RUN_COLUMNS, "coverage", "rank", *(f"{stem}/{part}" for stem in stems for part in parts))


def available(
    session: Session, benchmark_version_id: int, *, averages: Collection[str] = ("macro", "micro", "domain")
) -> pl.DataFrame:
    """Which figures the board has: metric, k, average, domain, runs (number of current runs), sorted.

    Sources are left out by default: a benchmark may have dozens, and looking through them takes a while.
    """
    current = _current(benchmark_version_id)
    keys = [col(MetricSummary.metric), col(MetricSummary.k), col(MetricSummary.average), col(MetricSummary.domain)]
    query = (
        select(*keys, func.count(func.distinct(col(MetricSummary.run_id))))
        .select_from(current)
        .join(MetricSummary, col(MetricSummary.run_id) == current.c.id)
        .where(current.c.place_in_row == 1, col(MetricSummary.average).in_(list(averages)))
        .group_by(*keys)
    )
    schema = {
        "metric": pl.String(),
        "k": pl.Int64(),
        "average": pl.String(),
        "domain": pl.String(),
        "runs": pl.Int64(),
    }
    rows = [tuple(row) for row in session.execute(query)]
    return pl.DataFrame(rows, schema=schema, orient="row").sort("metric", "k", "average", "domain")


def headline(session: Session, benchmark_version_id: int) -> str:
    """The average that ranks this board, ``macro`` or ``micro``.

    Raises:
        NotFound: there is no such benchmark version.
    """
    version = session.get(BenchmarkVersion, benchmark_version_id)
    if version is None:
        raise NotFound(f"no benchmark version has the id {benchmark_version_id}")
    return version.headline


def _current(benchmark_version_id: int) -> Any:
    """Published public runs with their place within their row (1 is the current one) and the row's size."""
    same_row = (
        col(Run.retriever_id),
        col(Run.method),
        col(Run.level),
        col(Run.contract),
        func.coalesce(col(Run.contract_hash), ""),
        col(Run.provenance),
        col(Run.place),
    )
    newest = (col(Run.published_at).desc(), col(Run.created_at).desc(), col(Run.id).desc())
    return (
        select(
            *(column for column in Run.__table__.columns),  # type: ignore[attr-defined]
            func.row_number().over(partition_by=same_row, order_by=newest).label("place_in_row"),
            func.count().over(partition_by=same_row).label("versions"),
        )
        .where(
            col(Run.benchmark_version_id) == benchmark_version_id,
            col(Run.state) == State.PUBLISHED.value,
            col(Run.visibility) == Visibility.PUBLIC.value,
        )
        .subquery("current")
    )


def _run_columns(current: Any) -> list[Any]:
    """The columns of ``RUN_COLUMNS``, in that order."""
    elsewhere = {
        "run_id": current.c.id,
        "retriever_key": col(Retriever.key),
        "retriever": col(Retriever.name),
        "retriever_licence": col(Retriever.licence),
        "retriever_link": col(Retriever.link),
    }
    of_retriever = {"family", "parameters", "dimension", "fine_tuned", "base_key", "open_weights"}
    return [
        elsewhere[name]
        if name in elsewhere
        else getattr(Retriever, name)
        if name in of_retriever
        else getattr(current.c, name)
        for name in RUN_COLUMNS
    ]


def _ranked(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.rename({"old_value": "old", "new_value": "new"}).with_columns(
        (pl.col("new") - pl.col("old")).alias("lift"),
        pl.coalesce("new_n", "old_n").alias("n"),
        (pl.col("queries_answered") / pl.col("queries_total")).alias("coverage"),
    )
    counts = ~pl.col("flags").list.contains(PARTIAL)
    both = counts & pl.col("old").is_not_null() & pl.col("new").is_not_null()
    any_new = (counts & pl.col("new").is_not_null()).any().over("level")

    def rank(view: str, among: pl.Expr) -> pl.Expr:
        return pl.when(among).then(pl.col(view)).rank("min", descending=True).over("level").cast(pl.Int64)

    by_old = rank("old", counts)
    frame = frame.with_columns(
        pl.when(any_new).then(rank("new", counts)).otherwise(by_old).alias("rank"),
        pl.when(any_new).then(rank("old", both)).otherwise(by_old).alias("rank_old"),
        rank("new", both).alias("rank_new"),
    ).with_columns((pl.col("rank_old") - pl.col("rank_new")).alias("rank_change"))
    # Ties are shown in the order of names, then keys and ids: the same for everybody, on every database.
    ordered = frame.sort(
        pl.col("level") != "query",
        pl.col("rank").is_null(),
        ~counts,
        "new",
        "old",
        pl.col("retriever").str.to_lowercase(),
        "retriever_key",
        "method",
        "contract",
        "place",
        "run_id",
        descending=[False, False, False, True, True, False, False, False, False, False, False],
        nulls_last=True,
    )
    return ordered.select(
        *RUN_COLUMNS, "old", "new", "lift", "old_low", "old_high", "new_low", "new_high", "old_printed",
        "new_printed", "old_note", "new_note", *LIFT_COLUMNS, "n", "coverage", "rank", "rank_old", "rank_new",
        "rank_change",
    )  # fmt: skip


def _scopes(session: Session, benchmark_version_id: int, long: pl.DataFrame) -> list[str]:
    """``macro``, ``micro`` and ``domain:NAME`` as far as there are figures, domains in the benchmark's order."""
    version = session.get(BenchmarkVersion, benchmark_version_id)
    declared = [str(item["name"]) for item in version.domains] if version is not None else []
    present = set(long.filter(pl.col("average") == "domain")["domain"].to_list())
    domains = [name for name in declared if name in present] + sorted(present - set(declared))
    averages = set(long["average"].to_list())
    means = [average for average in ("macro", "micro") if average in averages]
    return means + [f"domain:{name}" for name in domains]
