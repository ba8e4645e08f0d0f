"""An expansion done by this process: what the command line does instead of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.formats.messages import plural
from pipeline.jobs.annotations.following import job_id_of
from pipeline.jobs.annotations.retrying import forget_failures
from pipeline.jobs.annotations.working import (
    alone,
    chunk_asker,
    chunk_words,
    finish,
    finish_stored,
    made_version,
    open_work,
    remaining,
    require_open,
    work_chunk,
)
from pipeline.jobs.durable import has_jobs, job_client
from pipeline.jobs.job_client import STATES
from pipeline.jobs.site import Site
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from store.access import annotations as stored
from store.errors import Conflict
from store.records import BenchmarkRecord


def run_here(
    site: Site,
    annotation_id: str,
    *,
    retry_failed: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
    say: Callable[[str], object] | None = None,
) -> BenchmarkRecord:
    """Do all of an expansion that is not done; after a stop, a crash or a raised budget the same call goes on.

    Args:
        site: where it is stored.
        annotation_id: the expansion, or the beginning of its id.
        retry_failed: ask once more what is recorded as failed, also in chunks that are finished.
        progress: told how far each stage of a chunk is.
        cancelled: asked between parts of a stage.
        say: told in words after each chunk.

    Returns:
        The new version; at once where it is made.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; what was answered is kept.
        Cancelled: on request.
        Conflict: a job or another process works on it; or failures of a finished one are to be asked again.
        JudgeError: a judge cannot be asked at all.
        ModelError: a retriever cannot be used.
        NotFound: there is no such expansion.
    """
    with site.database.reading() as session:
        record = stored.get(session, annotation_id)
    made = made_version(site, record)
    if made is not None and not retry_failed:
        return made
    require_open(record, retry_failed=retry_failed)
    refuse_beside_job(site, record.id)
    with alone(site, record.id):
        work = finish_stored(open_work(site, record.id))
        made = made_version(site, work.record)
        if made is not None and not retry_failed:
            return made
        require_open(work.record, retry_failed=retry_failed)
        with site.database.session() as session:
            work = replace(work, record=stored.set_way(session, record.id, batched=False, retry_failed=retry_failed))
        for chunk in remaining(work, retry_failed=retry_failed):
            if retry_failed:
                forget_failures(work, chunk)
            done = work_chunk(work, chunk, chunk_asker(work), progress=progress, cancelled=cancelled)
            assert done is not None, "a live model leaves nothing pending"
            if say is not None:
                say(chunk_words(work, done))
        made = finish(work)
        if say is not None:
            say(f"stored as {made.name}: {plural(made.combinations or 0, 'combination')}")
        return made


def refuse_beside_job(site: Site, annotation_id: str) -> None:
    """Refuse to work on an expansion that a job works on.

    Raises:
        Conflict: one waits or runs.
        DatabaseUnavailable: the jobs cannot be reached.
    """
    if not has_jobs(site):
        return
    found = job_client(site).list_workflows(
        workflow_ids=[job_id_of(annotation_id)], load_input=False, load_output=False
    )
    if found and not STATES[found[0].status].ended:
        raise Conflict(
            f"a job works on the expansion {annotation_id[:12]} ({STATES[found[0].status]}): wait until it ends, or "
            "cancel it on the page Annotate"
        )
