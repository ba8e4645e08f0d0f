"""The gain of one stored run over another: printed, computed with the board, or computed once and kept."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline.benchmark import Average
from pipeline.errors import UsageError
from pipeline.jobs.site import Site
from pipeline.scoring.gain_table import GAIN_TABLE, gain_table, printed_gain_table
from pipeline.scoring.kernel import METRICS
from pipeline.scoring.version import STATISTICS_VERSION
from store.access import benchmarks, runs, statistics
from store.cache import FileCache
from store.records import BenchmarkRecord, RunRecord

#: Columns of a board's gains: ``GAIN_TABLE`` of every pair and cutoff.
GAINS = {"base_run": pl.String, "tuned_run": pl.String, **GAIN_TABLE}


@dataclass(frozen=True, eq=False)
class PairGains:
    """The gain of one run over another.

    Attributes:
        table: columns of ``GAIN_TABLE``, the headline average first, then domains in the benchmark's order.
        per_query: whether it rests on per-query scores; else there are no intervals and no tests.
        pending: whether a job is still to compute intervals and tests.
    """

    version: BenchmarkRecord
    table: pl.DataFrame
    per_query: bool
    pending: bool = False


def gains_of_pair(site: Site, version: BenchmarkRecord, base: str, tuned: str, k: int) -> pl.DataFrame:
    """The gains at one cutoff between two artifacts of per-query scores, from the cache or computed into it.

    Args:
        site: where the artifacts and the cache are.
        version: of both runs.
        base: artifact of the run that gains are measured from.
        tuned: artifact of the other.
        k: one of the version's cutoffs.

    Raises:
        ArtifactMissing, ArtifactDamaged: an artifact is not whole.
    """
    cache = FileCache.from_settings(site.settings, "gains")
    key = f"gains-{STATISTICS_VERSION}-{version.headline}-{base}-{tuned}-{k}.parquet"
    known = cache.get(key)
    if known is not None:
        try:
            return pl.read_parquet(known)
        except (OSError, pl.exceptions.PolarsError):
            cache.discard(key)
    columns = ["query_id", "domain", *(f"{view}_{m}@{k}" for view in ("old", "new") for m in METRICS)]
    before, after = (site.artifacts.get_frame(digest, columns) for digest in (base, tuned))
    single = before["domain"].n_unique() == 1
    found = gain_table(
        before,
        after,
        metrics=METRICS,
        k=k,
        averages=(Average(version.headline),),
        # With one domain its row would repeat the average, and Holm would count the test twice.
        domains=[] if single else None,
    )
    cache.put(key, found.write_parquet)
    return found


def pair_gains(site: Site, base: RunRecord, tuned: RunRecord, k: int, *, compute: bool = True) -> PairGains:
    """The gains of ``tuned`` over ``base`` at one cutoff.

    Args:
        site: where the runs are stored.
        base: the run that gains are measured from.
        tuned: the other run.
        k: cutoff.
        compute: compute what no job has computed, and keep it; else such a pair comes without intervals, pending.

    Raises:
        UsageError: the runs are of two benchmark versions, or there are no scores at this cutoff.
        ArtifactMissing, ArtifactDamaged: scores are not whole.
    """
    if base.benchmark_version_id != tuned.benchmark_version_id:
        raise UsageError("the two runs are of different benchmark versions; compare runs of one version")
    with site.database.reading() as session:
        version = benchmarks.get_by_id(session, base.benchmark_version_id)
        known = statistics.of_board(session, version.id)
    domains = [domain.name for domain in version.domains]
    if base.per_query_artifact is None or tuned.per_query_artifact is None:
        return PairGains(version, _from_figures(site, version, base, tuned, k), False)
    if k not in version.ks:
        raise UsageError(
            f"there are no scores at K = {k}: {version.name} is scored at {', '.join(map(str, version.ks))}"
        )
    if known is not None:
        kept = site.artifacts.get_frame(known.gains_artifact).filter(
            (pl.col("base_run") == base.id) & (pl.col("tuned_run") == tuned.id) & (pl.col("k") == k)
        )
        if kept.height:
            return PairGains(version, in_order(kept.select(*GAIN_TABLE), domains), True)
    if not compute:
        return PairGains(version, _from_figures(site, version, base, tuned, k), False, pending=True)
    found = gains_of_pair(site, version, base.per_query_artifact, tuned.per_query_artifact, k)
    return PairGains(version, in_order(found, domains), True)


def _from_figures(site: Site, version: BenchmarkRecord, base: RunRecord, tuned: RunRecord, k: int) -> pl.DataFrame:
    """The table from stored figures alone, in order: the headline average, then domains."""
    with site.database.reading() as session:
        figures = [runs.summaries(session, run.id).filter(pl.col("k") == k) for run in (base, tuned)]
    domains = [domain.name for domain in version.domains]
    table = printed_gain_table(figures[0], figures[1], domains or None)
    other = "micro" if version.headline == "macro" else "macro"
    table = table.filter(pl.col("average") != other)
    if table.filter(pl.col("average") == "domain")["domain"].n_unique() == 1:
        table = table.filter(pl.col("average") != "domain")
    return in_order(table, domains)


def in_order(table: pl.DataFrame, domains: list[str]) -> pl.DataFrame:
    """Metrics in the usual order, averages first, domains in the benchmark's order."""
    metric = {name: place for place, name in enumerate(METRICS)}
    place = {name: position for position, name in enumerate(domains)}
    return (
        table.with_columns(
            _metric=pl.col("metric").replace_strict(metric, return_dtype=pl.Int64, default=len(metric)),
            _place=pl.col("domain").replace_strict(place, return_dtype=pl.Int64, default=len(place)),
            _average=pl.col("average") == "domain",
        )
        .sort("_metric", "_average", "_place", "domain", maintain_order=True)
        .drop("_metric", "_place", "_average")
    )
