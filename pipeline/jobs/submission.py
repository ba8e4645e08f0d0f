"""From a file to a leaderboard row: check and score without storing, then store everything at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlencode

import polars as pl

from pipeline.errors import RunFileError, UsageError
from pipeline.formats.ranking import ranking_frame
from pipeline.formats.run_file import read_run
from pipeline.jobs.benchmark_library import Library, load_compiled
from pipeline.jobs.public_address import public_address
from pipeline.jobs.site import Site
from pipeline.run import Order, RunReading
from pipeline.scoring.averages import summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.run_facts import run_facts
from pipeline.scoring.scores import RunScores, score_run
from pipeline.scoring.version import SCORER_VERSION
from store.access import benchmarks, retrievers, runs, submissions
from store.access.texts import check_texts
from store.models import Level, Provenance, Run, State, Submission, Trained, Visibility
from store.records import BenchmarkRecord, RunRecord, Summary

#: Who submits when nobody signs in.
LOCAL_PERSON = "local"

#: How a note on equal rankings begins. Who they are of is told to the submitter and not stored: they may be withdrawn.
IDENTICAL = "exactly this ranking is published already"


@dataclass(frozen=True)
class SubmissionMetadata:
    """What a submitter says about a run.

    Attributes:
        retriever: its name as it should be shown; a known name (case apart) joins that retriever.
        method: ``full-doc``, ``sub-query``, ``mftr``, … or the submitter's own word.
        level: ``query``, or ``sub-query`` for an oracle-assisted diagnostic.
        contract: label of the encoding contract or setting, where one retriever has several.
        contact: never shown.
        trained_on_benchmark: ``yes``, ``no`` or ``unknown``.
    """

    retriever: str
    method: str = "full-doc"
    level: str = "query"
    contract: str = ""
    link: str = ""
    licence: str = ""
    contact: str = ""
    trained_on_benchmark: str = "unknown"
    person: str = LOCAL_PERSON


@dataclass(frozen=True, eq=False)
class CheckedRun:
    """A run file that was read and, unless refused, scored; nothing of it is stored.

    Attributes:
        scores: None when the file was refused.
        sha256: of the file's bytes, so that what is stored later is what was checked.
        size: in bytes.
    """

    version: BenchmarkRecord
    reading: RunReading
    scores: RunScores | None
    sha256: str
    size: int
    order: Order | None = None
    part: str | None = None

    @cached_property
    def summary(self) -> pl.DataFrame | None:
        """``view, metric, k, average, domain, value, n``; None when refused."""
        return None if self.scores is None else summarise(self.scores, self.scores.compiled)

    @property
    def per_query(self) -> pl.DataFrame | None:
        """One row a query; see ``RunScores.per_query``."""
        return None if self.scores is None else self.scores.per_query


def read_submitted(
    library: Library,
    source: Path | BinaryIO,
    compiled: CompiledBenchmark,
    *,
    order: Order | None = None,
    part: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> RunReading:
    """Read a run file against a benchmark under the operator's limits; a refusal is a report, not an error.

    Raises:
        RunFileError: there is no such file, or it cannot be opened.
    """
    if isinstance(source, Path) and not source.is_file():
        what = "is a folder" if source.is_dir() else "does not exist"
        raise RunFileError(f"{str(source)!r} {what}: give the path of one run file")
    return read_run(
        source,
        compiled.target,
        order=order,
        part=part,
        limits=library.limits_site.limits,
        identify=lambda ids: library.identify(ids, compiled.name),
        progress=progress,
    )


def check_run(
    site: Site,
    source: Path | BinaryIO,
    benchmark: str,
    *,
    order: Order | None = None,
    part: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> CheckedRun:
    """Read and score a run file against a stored benchmark; nothing is stored.

    Args:
        site: where the benchmark is.
        source: a path, or a seekable binary stream.
        benchmark: ``slug`` or ``slug@version``.
        order: what the submitter declares to order the lists.
        part: subset/split of an MTEB file.
        progress: called with the fraction read.

    Raises:
        NotFound, BenchmarkError: the benchmark is unknown or has no content.
        RunFileError: the file cannot be opened, or changed while it was read.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    compiled = load_compiled(site, version.id)
    # An upload is held for this request alone; a file on disk may be written to while it is read.
    before = _digest(source) if isinstance(source, Path) and source.is_file() else None
    reading = read_submitted(Library(site), source, compiled, order=order, part=part, progress=progress)
    sha256, size = _digest(source)
    if before is not None and before != (sha256, size):
        raise RunFileError("the file changed while it was read: wait until it is written, then submit it again")
    if reading.run is None:
        return CheckedRun(version, reading, None, sha256, size, order, part)
    with site.database.reading() as session:
        twins = runs.identical_rankings(session, version.id, reading.run.ranking_hash)
        names = [retrievers.get_by_id(session, twin.retriever_id).name for twin in twins]
    if twins:
        listed = ", ".join(f"{name} ({twin.id})" for name, twin in zip(names, twins, strict=True))
        report = replace(
            reading.report,
            flags=(*reading.report.flags, "identical"),
            notes=(*reading.report.notes, f"{IDENTICAL}: {listed}"),
        )
        reading = replace(reading, report=report)
    assert reading.run is not None
    scores = score_run(compiled, reading.run, version.ks)
    band = tie_band_note(scores)
    if band:
        reading = replace(reading, report=replace(reading.report, notes=(*reading.report.notes, band)))
    return CheckedRun(version, reading, scores, sha256, size, order, part)


def tie_band_note(scores: RunScores) -> str | None:
    """What other orders of tied tools could make of NDCG at the headline cutoff, in words; None without such ties."""
    k = 10 if 10 in scores.cutoffs else scores.cutoffs[0]
    facts = run_facts(scores, k)
    if not facts.tied_tools:
        return None
    ends = [[f"{100 * end:.1f}" for end in band] for band in (facts.old_band, facts.new_band)]
    if all(low == high for low, high in ends):
        return f"whatever the order of the tied tools, NDCG@{k} is {ends[0][0]} (old) and {ends[1][0]} (new)"
    old, new = (" to ".join(band) for band in ends)
    return f"other orders of the tied tools could give NDCG@{k} of {old} (old) and {new} (new)"


def submit_run(
    site: Site,
    checked: CheckedRun,
    source: Path | BinaryIO,
    metadata: SubmissionMetadata,
    *,
    publish: bool,
    file_name: str | None = None,
) -> str:
    """Store a checked run with its file, ranking and scores, and return its id.

    The files are written first; the rows follow in one transaction, so a run is there whole or not at all.

    Raises:
        RunFileError: the run was refused, or the file changed since it was checked.
        Conflict: the submitter's daily limit is reached.
        InvalidRecord: a name or choice cannot be used.
    """
    reading, scores = checked.reading, checked.scores
    if reading.run is None or scores is None or checked.summary is None:
        raise RunFileError("this file was refused; nothing was stored. Mend it and submit it again")
    level, trained = _choice(Level, metadata.level, "level"), _choice(Trained, metadata.trained_on_benchmark, "trained")
    check_texts(
        method=metadata.method.strip(),
        contract=metadata.contract.strip(),
        link=metadata.link.strip(),
        licence=metadata.licence.strip(),
        contact=metadata.contact.strip(),
    )
    compiled = scores.compiled
    raw = site.artifacts.put_file(_rewound(source))
    if raw != checked.sha256:
        raise RunFileError("the file changed after it was checked; nothing was published. Submit it again")
    ranking = site.artifacts.put_frame(ranking_frame(reading.run, compiled.target))
    per_query = site.artifacts.put_frame(scores.per_query)
    answered, total = reading.run.queries_answered, len(compiled.target.queries)
    name = _file_name(file_name or str(getattr(source, "name", "run")))
    run = Run(
        benchmark_version_id=checked.version.id,
        retriever_id=0,
        method=metadata.method.strip() or "full-doc",
        level=level.value,
        contract=metadata.contract.strip(),
        provenance=Provenance.UPLOADED.value,
        state=State.PUBLISHED.value if publish else State.SCORED.value,
        visibility=Visibility.PUBLIC.value if publish else Visibility.PRIVATE.value,
        ranking_artifact=ranking,
        ranking_hash=reading.run.ranking_hash,
        per_query_artifact=per_query,
        raw_artifact=raw,
        raw_name=name,
        scorer_version=SCORER_VERSION,
        benchmark_hash=compiled.content_hash,
        depth=reading.report.counts.get("depth"),
        queries_total=total,
        queries_answered=answered,
        missing=total - answered,
        flags=list(reading.report.flags),
        notes=[IDENTICAL if note.startswith(IDENTICAL) else note for note in reading.report.notes],
        trained_on_benchmark=trained.value,
        link=metadata.link.strip(),
        licence=metadata.licence.strip(),
    )
    submission = Submission(
        benchmark_version_id=checked.version.id,
        person=metadata.person,
        contact=metadata.contact.strip(),
        link=metadata.link.strip(),
        licence=metadata.licence.strip(),
        file_name=name,
        size=checked.size,
        sha256=checked.sha256,
        order=checked.order.value if checked.order else None,
        part=checked.part,
        report=reading.report.as_json(),
    )
    columns = ("view", "metric", "k", "average", "domain", "value", "n")
    summary = checked.summary.select(columns).with_columns(pl.col("domain").fill_null(""))
    figures = [Summary(**row) for row in summary.iter_rows(named=True)]
    with site.database.session() as session:
        submissions.check_daily_limit(session, metadata.person, site.settings.limit_submissions_per_day)
        run.retriever_id = retrievers.ensure_for_name(
            session,
            metadata.retriever,
            # What is said about a private run must not describe the retriever of somebody else's public one.
            link=metadata.link.strip() if publish else "",
            licence=metadata.licence.strip() if publish else "",
        ).id
        return runs.add_run(session, run, figures, submission=submission, artifacts=site.artifacts).id


def publish_run(site: Site, run_id: str) -> RunRecord:
    """Put a stored run on the leaderboard for everybody.

    Raises:
        NotFound: there is no such run.
        Conflict: it is not scored yet.
    """
    with site.database.session() as session:
        return runs.publish(session, run_id, visibility=Visibility.PUBLIC)


def withdraw_run(site: Site, run_id: str) -> RunRecord:
    """Take a run off the leaderboard; it stays stored.

    Raises:
        NotFound: there is no such run.
        Conflict: it is not published.
    """
    with site.database.session() as session:
        return runs.withdraw(session, run_id)


def permalink(site: Site, run_id: str) -> str:
    """The address of a run's page; a private run's holds its token, and whoever has it can read the run."""
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    query = {"run": run.id}
    if run.visibility == Visibility.PRIVATE.value and run.private_token:
        query["token"] = run.private_token
    return f"{public_address(site.settings)}/run?{urlencode(query)}"


def _digest(source: Path | BinaryIO) -> tuple[str, int]:
    if isinstance(source, Path):
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), source.stat().st_size
    stream = _rewound(source)
    assert not isinstance(stream, Path)
    digest = hashlib.sha256()
    size = 0
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _rewound(source: Path | BinaryIO) -> Path | BinaryIO:
    if not isinstance(source, Path):
        source.seek(0)
    return source


def _file_name(name: str) -> str:
    """A stranger's file name as a label: its last part, printable, not too long; it never becomes a path."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(sign for sign in last if sign.isprintable())[:200] or "run"


def _choice(kind: type[Level] | type[Trained], value: str, what: str) -> Level | Trained:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{what} takes {', '.join(kind)}; found {value!r}") from None
