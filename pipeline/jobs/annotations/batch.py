"""Expansions in rounds of a batch: every open question of all chunks goes into one set of files.

The first round holds the decompositions, the second the verdicts, the third the audits; a decomposition that is no
bijection is drawn again in the next round. Importing answers and writing the next round is one pass over the chunks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.errors import JudgeError
from pipeline.formats.messages import plural
from pipeline.jobs.annotations.here import refuse_beside_job
from pipeline.jobs.annotations.retrying import forget_failures
from pipeline.jobs.annotations.working import (
    Chunk,
    Work,
    alone,
    expand_chunk,
    finish,
    finish_stored,
    made_version,
    open_work,
    remaining,
    require_open,
    work_chunk,
)
from pipeline.jobs.llm_answers import StoredAnswers, asking_config
from pipeline.jobs.llm_batch import BatchRound, import_words, kept_batch
from pipeline.jobs.site import Site
from pipeline.llm.batch_import import BatchAnswers, ImportReport
from pipeline.llm.records import Asker
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from store.access import annotations as stored
from store.records import BenchmarkRecord

_KEY = re.compile(rb'"custom_id":"([0-9a-f]{64})"')
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Exported:
    """A round that was written.

    Attributes:
        pending: its questions.
        parts: its files; none where nothing is open.
        made: the new version, where nothing was open any more.
        words: what became of answers that were imported for it, in sentences.
    """

    pending: int
    parts: tuple[Path, ...]
    made: BenchmarkRecord | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """Answers that were read.

    Attributes:
        report: line by line; ``missing`` counts the questions of the round that the file leaves open.
        next: questions that the next round will hold, those included; 0 where all is known.
        made: the new version, where all is known.
    """

    report: ImportReport
    next: int
    made: BenchmarkRecord | None = None


def export_round(
    site: Site,
    annotation_id: str,
    path: Path,
    *,
    retry_failed: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Exported:
    """Write every question that is open now into a batch file.

    The files are kept as artifacts too, so that an import can tell what is missing. Where nothing is open, the new
    version is made.

    Args:
        site: where the expansion is stored.
        annotation_id: the expansion, or the beginning of its id.
        path: the batch file; more of them get numbers.
        retry_failed: write also what is recorded as failed.
        progress: told how far each stage of a chunk is.
        cancelled: asked between parts of a stage.

    Raises:
        Cancelled: on request.
        Conflict: a job or another process works on it, or it is done.
        JudgeError: the file cannot be written.
        ModelError: a retriever cannot be used.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    require_open(record, retry_failed=retry_failed)
    refuse_beside_job(site, record.id)
    with alone(site, record.id):
        work = finish_stored(open_work(site, record.id))
        made = made_version(site, work.record)
        if made is not None and not retry_failed:
            return Exported(0, (), made)
        require_open(work.record, retry_failed=retry_failed)
        with site.database.session() as session:
            work = replace(work, record=stored.set_way(session, record.id, batched=True, retry_failed=retry_failed))
        return write_round(work, path, retry_failed=retry_failed, progress=progress, cancelled=cancelled)


def write_round(
    work: Work,
    path: Path,
    *,
    retry_failed: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Exported:
    """Take the answers that were imported for an expansion, and write what is open then; see ``export_round``."""
    site, record = work.site, work.record
    files = [site.artifacts.local_path(digest) for digest in record.answers]
    todo = remaining(work, retry_failed=retry_failed)
    if retry_failed:
        for chunk in todo:
            forget_failures(work, chunk)
    with BatchRound(site, work.budget, files, path) as asker:
        open_chunks = _pass(work, todo, asker, progress, cancelled)
        batch = kept_batch(site, asker) if asker.pending else []
        words = tuple(import_words(asker))
        pending, parts = asker.pending, tuple(asker.parts)
    if not pending:
        for part in parts:
            part.unlink(missing_ok=True)
        parts = ()
    with site.database.session() as session:
        stored.set_batch(session, record.id, pending, batch, artifacts=site.artifacts)
    made = None if open_chunks else finish(work)
    return Exported(pending, parts, made, words)


def import_round(
    site: Site,
    annotation_id: str,
    answers: Path,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Imported:
    """Read the answers that a provider returned for a round; doing so again changes nothing.

    Args:
        site: where the expansion is stored.
        annotation_id: the expansion, or the beginning of its id.
        answers: the answers file.
        progress: told how far each stage of a chunk is.
        cancelled: asked between parts of a stage.

    Raises:
        Cancelled: on request.
        Conflict: a job or another process works on it.
        JudgeError: the file cannot be read.
        ModelError: a retriever cannot be used.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    refuse_beside_job(site, record.id)
    with alone(site, record.id):
        work = finish_stored(open_work(site, record.id))
        store, prices = StoredAnswers(site.database), asking_config(site.settings).prices
        reader = BatchAnswers(store, answers, work.budget, prices)
        try:
            # Every chunk, also those that are done: a file that is read again is not unknown.
            if work.record.done:
                for chunk in work.chunks:
                    expand_chunk(work, chunk, reader, progress=progress, cancelled=cancelled)
                return Imported(reader.report(), 0, made_version(site, work.record))
            open_chunks = _pass(work, work.chunks, reader, progress, cancelled)
        finally:
            reader.close()
        report = reader.report()
        missing = _missing(work)
        with site.database.session() as session:
            batch = work.record.batch if missing else ()
            stored.set_batch(session, record.id, missing, batch, artifacts=site.artifacts)
        made = None if open_chunks else finish(work)
        return Imported(replace(report, missing=missing), report.missing, made)


def _pass(
    work: Work,
    todo: Sequence[Chunk],
    asker: Asker,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> int:
    """Take chunks as far as the asker goes; returns how many are still open."""
    done = [work_chunk(work, chunk, asker, progress=progress, cancelled=cancelled) for chunk in todo]
    return sum(chunk is None for chunk in done)


def _missing(work: Work) -> int:
    """Questions of the files that were written last which have no answer and no recorded failure."""
    store = StoredAnswers(work.site.database)
    missing = 0
    for digest in work.record.batch:
        keys: list[str] = []
        try:
            with work.site.artifacts.local_path(digest).open("rb") as file:
                keys = [match[1].decode() for match in map(_KEY.search, file) if match]
        except OSError as error:
            raise JudgeError(f"the batch file {digest[:12]} cannot be read: {error.strerror or error}") from None
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            missing += len(some) - len(store.outcomes(some))
    return missing


def export_words(exported: Exported) -> str:
    """What a round left open, in a sentence."""
    if exported.made is not None:
        return f"nothing is open any more: stored as {exported.made.name}"
    return (
        f"{plural(exported.pending, 'question is', 'questions are')} in a batch file: import its answers and it goes on"
    )
