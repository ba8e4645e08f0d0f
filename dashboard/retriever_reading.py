"""What the page of one retriever reads: who it is, where it stands on every board, its relatives and all its runs.

Only what everybody may see: published public runs, and retrievers that have one or are in the registry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from dashboard import pair_reading, reading
from dashboard.current_site import the_site
from pipeline.formats.board_rows import BoardView, ranked_for
from pipeline.retrieval.registry import RetrieverEntry, default_registry
from store.access import retrievers, run_figures, runs
from store.errors import NotFound
from store.records import BenchmarkRecord, RetrieverRecord


@dataclass(frozen=True, eq=False)
class ReadRetriever:
    """One retriever.

    Attributes:
        entry: of the registry, where it is there.
        base: what it was fine-tuned from, where that is known and may be seen.
        tuned: what was fine-tuned from it.
        runs: all published public runs, newest first: ``store.access.runs.list_runs`` with ``k``, ``old`` and ``new``
            of ``headline_figures``.
    """

    record: RetrieverRecord
    entry: RetrieverEntry | None
    base: RetrieverRecord | None
    tuned: tuple[RetrieverRecord, ...]
    runs: pl.DataFrame


@dataclass(frozen=True)
class Standing:
    """The rows of one retriever on one board.

    Attributes:
        rows: of ``reading.board``, in the board's order, with ``ranked``: how many runs of the row's level have a rank.
    """

    benchmark: BenchmarkRecord
    stamp: str
    rows: pl.DataFrame


@dataclass(frozen=True, eq=False)
class FamilyGain:
    """A fine-tuned run and its base's on one board, with the gain between them; ``table`` is of ``GAIN_TABLE``.

    ``pending``: whether its tests are still being computed.
    """

    benchmark: BenchmarkRecord
    base: pair_reading.PairedRun
    tuned: pair_reading.PairedRun
    table: pl.DataFrame
    pending: bool


def retriever(key: str) -> ReadRetriever:
    """The retriever with this key, as everybody may see it.

    Raises:
        NotFound: there is none that everybody may see.
    """
    described = _described()
    entry = default_registry().find(key)
    entry = entry if entry is not None and entry.key == key else None
    with the_site().database.reading() as session:
        try:
            record = retrievers.get_public(session, key, described=described)
        except NotFound:
            if entry is None:
                raise
            record = _of_registry(entry)
        base = None
        if record.base_key:
            try:
                base = retrievers.get_public(session, record.base_key, described=described)
            except NotFound:
                known = default_registry().find(record.base_key)
                base = None if known is None else _of_registry(known)
        tuned = tuple(retrievers.tuned_from(session, key, described=described))
        listed = runs.list_runs(session, retriever_id=record.id, public_only=True)
        figures = run_figures.headline_figures(session, listed["run_id"].to_list())
    return ReadRetriever(
        record, entry, base, tuned, listed.join(figures, on="run_id", how="left", maintain_order="left")
    )


def is_public(key: str) -> bool:
    """Whether everybody may see the retriever with this key."""
    if key in _described():
        return True
    with the_site().database.reading() as session:
        try:
            retrievers.get_public(session, key)
        except NotFound:
            return False
    return True


def standings(found: ReadRetriever, metric: str, k: int) -> list[Standing]:
    """Where the retriever stands on every board that has a run of it: boards with new figures first.

    Args:
        found: of ``retriever``.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff; boards without it have rows without figures.
    """
    wanted = set(found.runs["benchmark_version_id"].to_list())
    standing = []
    for benchmark in reading.benchmarks():
        if benchmark.id not in wanted:
            continue
        stamp = reading.board_stamp(benchmark.id)
        board = reading.board(benchmark.id, stamp, metric=metric, k=k, average=benchmark.headline)
        board = ranked_for(board, BoardView.BOTH).with_columns(ranked=pl.col("rank").count().over("level"))
        rows = board.filter(pl.col("retriever_key") == found.record.key)
        if rows.height:
            standing.append(Standing(benchmark, stamp, rows))
    return sorted(standing, key=lambda place: place.rows["lift"].null_count() == place.rows.height)


def titles(standing: list[Standing]) -> dict[int, str]:
    """What each benchmark version is called, by its id: with the version where a title occurs twice."""
    counted = Counter(place.benchmark.title for place in standing)
    return {
        place.benchmark.id: place.benchmark.title
        if counted[place.benchmark.title] == 1
        else f"{place.benchmark.title} ({place.benchmark.name})"
        for place in standing
    }


def cutoffs(found: ReadRetriever) -> tuple[list[str], list[int]]:
    """Metrics and cutoffs that any of its boards has figures for."""
    wanted = set(found.runs["benchmark_version_id"].to_list())
    metrics: set[str] = set()
    ks: set[int] = set()
    for benchmark in reading.benchmarks():
        if benchmark.id in wanted:
            known = reading.available(benchmark.id, reading.board_stamp(benchmark.id))
            metrics |= set(known["metric"].to_list())
            ks |= set(known["k"].to_list())
    return [metric for metric in ("NDCG", "Recall", "Comp") if metric in metrics], sorted(ks)


def family_gains(standing: list[Standing], metric: str, k: int) -> list[FamilyGain]:
    """The gains in which the retriever is the fine-tuned one or the base, as far as they are stored."""
    found = []
    for place in standing:
        own = set(place.rows["run_id"].to_list())
        board = pair_reading.pair_board(place.benchmark, place.stamp)
        for base, tuned in board.pairs:
            if not own & {base, tuned}:
                continue
            gains = pair_reading.gains(place.stamp, base, tuned, k, compute=False)
            table = gains.table.filter(pl.col("metric") == metric)
            if table.height:
                found.append(FamilyGain(place.benchmark, board.runs[base], board.runs[tuned], table, gains.pending))
    return found


def _described() -> set[str]:
    return {entry.key for entry in default_registry().entries}


def _of_registry(entry: RetrieverEntry) -> RetrieverRecord:
    """A registry entry that no run is stored of."""
    return RetrieverRecord(
        id=0,
        key=entry.key,
        name=entry.name,
        family=entry.family,
        parameters=entry.parameters,
        dimension=entry.dimension,
        fine_tuned=bool(entry.base) or None,
        base_key=entry.base or None,
        open_weights=True if entry.hf_id else None,
        licence=entry.licence,
        link="",
        notes="",
        created_at=datetime.now(UTC),
    )
