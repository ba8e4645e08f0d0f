"""Statistics of stored runs, boards and benchmarks: what is missing, and computing it.

A submission stores the figures and is done; their intervals, controls and tests follow in a job. Doing any of this
twice changes nothing: a run's statistics depend on its ranking alone, a board's on which runs it has.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl

from pipeline.benchmark import Average
from pipeline.errors import EquiRankError
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.jobs.benchmark_spread import DISTRIBUTIONS_NAME, distributions_of_version
from pipeline.jobs.pair_gains import GAINS, gains_of_pair
from pipeline.jobs.site import Site
from pipeline.scoring.fine_tuning_pairs import fine_tuning_pairs
from pipeline.scoring.kernel import METRICS
from pipeline.scoring.run_statistics import run_statistics
from pipeline.scoring.tie_groups import TIE_GROUPS, tie_groups
from pipeline.scoring.version import STATISTICS_VERSION
from store.access import benchmarks, runs, statistics
from store.access import leaderboard as boards
from store.errors import StoreError
from store.records import BenchmarkRecord

#: Of the tests behind tie groups, of which a board needs a hundred: p is never below 1 in 20,001, which is enough for
#: Holm's adjustment over a thousand runs at 5 %.
TIE_FLIPS = 20_000

#: Columns of a board's tie groups: ``TIE_GROUPS`` of every level, view and figure.
BOARD_TIE_GROUPS = {
    "level": pl.String,
    "view": pl.String,
    "metric": pl.String,
    "k": pl.Int32,
    "average": pl.String,
    "domain": pl.String,
    **TIE_GROUPS,
}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Pending:
    """What is to be computed.

    Attributes:
        runs: ids of runs without statistics.
        boards: (benchmark version, what names its runs) of boards whose runs changed.
        benchmarks: benchmark versions without distributions.
    """

    runs: tuple[str, ...]
    boards: tuple[tuple[int, str], ...]
    benchmarks: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same work."""
        work = [STATISTICS_VERSION, self.runs, self.boards, self.benchmarks]
        return hashlib.sha256(json.dumps(work).encode()).hexdigest()[:32]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.runs or self.boards or self.benchmarks)


@dataclass(frozen=True, eq=False)
class _Board:
    """The runs of a board that can be compared query by query, and its fine-tuning pairs among them."""

    version: BenchmarkRecord
    rows: pl.DataFrame
    pairs: list[tuple[str, str]]
    per_query: dict[str, str]

    @property
    def name(self) -> str:
        """A hash that changes with anything that the statistics depend on."""
        ranked = self.rows.select("run_id", "level").sort("run_id").rows()
        text = json.dumps([STATISTICS_VERSION, self.version.headline, ranked, sorted(self.pairs)])
        return hashlib.sha256(text.encode()).hexdigest()


def pending(site: Site, benchmark_version_id: int | None = None) -> Pending:
    """What is missing or out of date, of one benchmark version or of all."""
    with site.database.reading() as session:
        missing = statistics.runs_without(session, STATISTICS_VERSION, benchmark_version_id=benchmark_version_id)
        versions = statistics.boards_with_runs(session)
        stored = benchmarks.list_records(session)
    if benchmark_version_id is not None:
        versions = [version for version in versions if version == benchmark_version_id]
    changed = []
    for version in versions:
        name = _board(site, version).name
        with site.database.reading() as session:
            known = statistics.of_board(session, version)
        if known is None or known.computed_from != name:
            changed.append((version, name))
    bare = [record.id for record in stored if record.has_content and DISTRIBUTIONS_NAME not in record.artifacts]
    if benchmark_version_id is not None:
        bare = [version for version in bare if version == benchmark_version_id]
    return Pending(tuple(missing), tuple(changed), tuple(sorted(bare)))


def compute(site: Site, work: Pending, say: Say) -> list[str]:
    """Do the work; what fails is said and the rest is done. Returns the failures in words."""
    failures: list[str] = []
    for run_id in work.runs:
        _tried(f"statistics of run {run_id}", partial(run_of, site, run_id), failures, say)
    for version, _ in work.boards:
        what = f"tie groups and gains of benchmark version {version}"
        _tried(what, partial(board_of, site, version), failures, say)
    for version in work.benchmarks:
        what = f"distributions of benchmark version {version}"
        _tried(what, partial(distributions_of_version, site, version), failures, say)
    return failures


def _tried(what: str, do: Callable[[], bool], failures: list[str], say: Say) -> None:
    try:
        if do():
            say(f"computed the {what}")
    except (EquiRankError, StoreError, ValueError) as error:
        logging.getLogger(__name__).warning("no %s: %s", what, error)
        failures.append(f"{what}: {error}")
        say(f"the {what} failed: {error}")


def run_of(site: Site, run_id: str) -> bool:
    """Compute and store the statistics of a run; returns False when they are there.

    Raises:
        NotFound: there is no such run.
        ArtifactMissing, ArtifactDamaged: its ranking or its scores are not whole.
        BenchmarkError, RunFileError, ValueError: it does not fit its benchmark.
    """
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
    if run.statistics_version == STATISTICS_VERSION or run.ranking_artifact is None or run.per_query_artifact is None:
        return False
    compiled = load_compiled(site, version.id)
    ranked = run_of_frame(site.artifacts.get_frame(run.ranking_artifact), compiled.target)
    scores = site.artifacts.get_frame(run.per_query_artifact)
    found = run_statistics(compiled, ranked, scores, version.ks)
    named = pl.col("domain").fill_null("")
    artifact = site.artifacts.put_frame(found.readings)
    with site.database.session() as session:
        statistics.set_run_statistics(
            session,
            run_id,
            intervals=found.intervals.with_columns(named),
            lifts=found.lifts.with_columns(named),
            artifact=artifact,
            version=STATISTICS_VERSION,
            artifacts=site.artifacts,
        )
    return True


def board_of(site: Site, benchmark_version_id: int) -> bool:
    """Compute and store a board's tie groups and the gains of its fine-tuned runs; False when they are up to date.

    Raises:
        NotFound: there is no such benchmark version.
        ArtifactMissing, ArtifactDamaged: a run's scores are not whole.
    """
    board = _board(site, benchmark_version_id)
    with site.database.reading() as session:
        known = statistics.of_board(session, benchmark_version_id)
    if known is not None and known.computed_from == board.name:
        return False
    groups = _tie_groups(site, board)
    gains = [
        gains_of_pair(site, board.version, board.per_query[base], board.per_query[tuned], k).select(
            pl.lit(base).alias("base_run"), pl.lit(tuned).alias("tuned_run"), pl.all()
        )
        for base, tuned in board.pairs
        for k in board.version.ks
    ]
    made = pl.concat(gains) if gains else pl.DataFrame(schema=GAINS)
    ties_artifact, gains_artifact = site.artifacts.put_frame(groups), site.artifacts.put_frame(made)
    with site.database.session() as session:
        statistics.set_of_board(
            session,
            benchmark_version_id,
            computed_from=board.name,
            tie_groups_artifact=ties_artifact,
            gains_artifact=gains_artifact,
            artifacts=site.artifacts,
        )
    return True


def _board(site: Site, benchmark_version_id: int) -> _Board:
    with site.database.reading() as session:
        version = benchmarks.get_by_id(session, benchmark_version_id)
        rows = boards.leaderboard(session, benchmark_version_id)
        found = statistics.board_runs(session, rows["run_id"].to_list())
    per_query = {run.run_id: run.per_query_artifact for run in found}
    pairs = fine_tuning_pairs(rows).filter(pl.col("per_query")).select("base_run", "tuned_run").rows()
    excluded = pl.col("flags").list.contains(boards.PARTIAL)
    ranked = rows.filter(pl.col("run_id").is_in(list(per_query)), ~excluded)
    return _Board(version, ranked, [p for p in pairs if p[0] in per_query and p[1] in per_query], per_query)


def _tie_groups(site: Site, board: _Board) -> pl.DataFrame:
    """The tie groups of every figure, each level by itself."""
    parts = [pl.DataFrame(schema=BOARD_TIE_GROUPS)]
    names = [f"{view}_{metric}@{k}" for view in ("old", "new") for metric in METRICS for k in board.version.ks]
    for level in board.rows["level"].unique().sort():
        ids = board.rows.filter(pl.col("level") == level)["run_id"].to_list()
        frames = {run: site.artifacts.get_frame(board.per_query[run], ["domain", *names]) for run in ids}
        first = frames[ids[0]]["domain"]
        domains = first.unique().sort()
        domain_of = first.replace_strict(domains, range(len(domains)), return_dtype=pl.Int64).to_numpy()
        scopes: list[tuple[str, str, Average, int | None]] = [
            ("micro", "", Average.MICRO, None),
            ("macro", "", Average.MACRO, None),
        ]
        scopes += [("domain", domain, Average.MICRO, i) for i, domain in enumerate(domains)]
        for name in names:
            view, _, figure = name.partition("_")
            metric, _, k = figure.partition("@")
            scores = {run: frame[name].to_numpy() for run, frame in frames.items()}
            for average, domain, weighing, index in scopes:
                if len(domains) == 1 and average != "micro":
                    # All three are the same mean.
                    groups = parts[-1].select(*TIE_GROUPS)
                else:
                    chosen = slice(None) if index is None else domain_of == index
                    groups = tie_groups(
                        {run: values[chosen] for run, values in scores.items()},
                        domain_of[chosen],
                        weighing,
                        flips=TIE_FLIPS,
                    )
                said = {"level": level, "view": view, "metric": metric, "average": average, "domain": domain}
                parts.append(
                    groups.with_columns(
                        *(pl.lit(value).alias(column) for column, value in said.items()),
                        pl.lit(int(k), pl.Int32).alias("k"),
                    ).select(*BOARD_TIE_GROUPS)
                )
    return pl.concat(parts)
