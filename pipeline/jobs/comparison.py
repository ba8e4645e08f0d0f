"""Two runs side by side for the command line: each a stored run or a run file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.benchmark import Average
from pipeline.errors import RunFileError, UsageError
from pipeline.formats.method_labels import TITLES, method_label
from pipeline.jobs.benchmark_library import Library
from pipeline.jobs.pair_gains import in_order, pair_gains
from pipeline.jobs.submission import read_submitted
from pipeline.run import Order
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.gain_table import gain_table, with_sayable_shares
from pipeline.scoring.kernel import METRICS
from pipeline.scoring.query_changes import query_changes, wins_and_losses
from pipeline.scoring.scores import score_run
from store.access import benchmarks, retrievers, runs
from store.errors import NotFound
from store.records import RunRecord


@dataclass(frozen=True, eq=False)
class Comparison:
    """What ``equirank compare`` says.

    Attributes:
        benchmark: ``slug@version``.
        first, second: what the runs are, in words; gains are of the second over the first.
        gains: columns of ``GAIN_TABLE``.
        outcomes: of ``wins_and_losses`` of the metric; None when a run has no per-query scores.
    """

    benchmark: str
    first: str
    second: str
    metric: str
    k: int
    gains: pl.DataFrame
    outcomes: pl.DataFrame | None

    def as_json(self) -> dict[str, Any]:
        """The documented shape of ``compare --format json``: fractions in full precision."""
        outcomes = None
        if self.outcomes is not None:
            outcomes = {
                view: {
                    row["domain"] or "all": {name: row[name] for name in ("wins", "losses", "ties")}
                    for row in self.outcomes.filter(pl.col("view") == view).to_dicts()
                }
                for view in ("old", "new")
            }
        return {
            "benchmark": self.benchmark,
            "runs": [self.first, self.second],
            "metric": f"{self.metric}@{self.k}",
            "gains": with_sayable_shares(self.gains).to_dicts(),
            "queries": outcomes,
        }


def compare(
    library: Library,
    first: str,
    second: str,
    benchmark: str,
    *,
    metric: str,
    k: int,
    order: Order | None = None,
    part: str | None = None,
) -> Comparison:
    """The gain of the second run over the first, with wins and losses query by query.

    Args:
        library: where benchmarks and stored runs are.
        first: id of a stored run, or path of a run file.
        second: the same.
        benchmark: stored name or folder.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff.
        order: what orders the lists of run files whose scores and ranks disagree.
        part: which part of an MTEB predictions file to read.

    Raises:
        UsageError: the metric is unknown, or a run is of another benchmark version.
        NotFound: there is neither a file nor a run of this name.
        RunFileError: a file is refused.
        BenchmarkError: the benchmark cannot be used.
    """
    if metric not in METRICS:
        raise UsageError(f"--metric takes {', '.join(METRICS)}; found {metric!r}")
    paths = [Path(name) if Path(name).exists() else None for name in (first, second)]
    stored = [None if path else _stored(library, name) for name, path in zip((first, second), paths, strict=True)]
    if stored[0] is not None and stored[1] is not None:
        return _of_stored(library, stored[0], stored[1], benchmark, metric, k)
    compiled = library.compiled(benchmark)
    frames, titles = [], []
    for path, run in zip(paths, stored, strict=True):
        if path is not None:
            frames.append(_scored(library, path, compiled, k, order, part))
            titles.append(path.name)
        else:
            assert run is not None
            frames.append(_per_query(library, run, compiled, k))
            titles.append(_title(library, run))
    single = frames[0]["domain"].n_unique() == 1
    gains = gain_table(
        frames[0],
        frames[1],
        metrics=(metric,),
        k=k,
        averages=(Average(compiled.headline),),
        domains=[] if single else list(compiled.domain_names),
    )
    outcomes = wins_and_losses(query_changes(frames[0], frames[1], metric, k))
    return Comparison(compiled.name, titles[0], titles[1], metric, k, gains, outcomes)


def _of_stored(
    library: Library, first: RunRecord, second: RunRecord, benchmark: str, metric: str, k: int
) -> Comparison:
    with library.site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    for run in (first, second):
        if run.benchmark_version_id != version.id:
            raise UsageError(f"run {run.id} is not of {version.name}: name the benchmark version it was scored on")
    found = pair_gains(library.site, first, second, k)
    gains = in_order(found.table.filter(pl.col("metric") == metric), [domain.name for domain in version.domains])
    if gains.is_empty():
        raise UsageError(f"the two runs have no {metric}@{k} in common")
    outcomes = None
    if found.per_query:
        frames = [library.site.artifacts.get_frame(run.per_query_artifact or "") for run in (first, second)]
        outcomes = wins_and_losses(query_changes(frames[0], frames[1], metric, k))
    titles = [_title(library, run) for run in (first, second)]
    return Comparison(version.name, titles[0], titles[1], metric, k, gains, outcomes)


def _stored(library: Library, name: str) -> RunRecord:
    with library.site.database.reading() as session:
        try:
            return runs.get(session, name)
        except NotFound:
            raise NotFound(
                f"{name!r} is neither a file nor a stored run: `equirank runs list` names the runs"
            ) from None


def _title(library: Library, run: RunRecord) -> str:
    with library.site.database.reading() as session:
        retriever = retrievers.get_by_id(session, run.retriever_id).name
    label = method_label(run.method, run.contract)
    return f"{retriever} ({run.id})" if label == TITLES["full-doc"] else f"{retriever} · {label} ({run.id})"


def _scored(
    library: Library, path: Path, compiled: CompiledBenchmark, k: int, order: Order | None, part: str | None
) -> pl.DataFrame:
    reading = read_submitted(library, path, compiled, order=order, part=part)
    if reading.run is None:
        raise RunFileError(
            f"{path.name} is refused on {compiled.name}: {reading.report.problems[0].message}. "
            "`equirank validate` lists everything"
        )
    return score_run(compiled, reading.run, (k,)).per_query


def _per_query(library: Library, run: RunRecord, compiled: CompiledBenchmark, k: int) -> pl.DataFrame:
    if run.benchmark_hash != compiled.content_hash:
        raise UsageError(f"run {run.id} is not of {compiled.name}: name the benchmark version it was scored on")
    if run.per_query_artifact is None:
        raise UsageError(f"run {run.id} has no scores by query, only printed figures: compare it with a stored run")
    frame = library.site.artifacts.get_frame(run.per_query_artifact)
    if f"old_NDCG@{k}" not in frame.columns:
        raise UsageError(f"run {run.id} has no scores at K = {k}")
    return frame
