"""The steps of an evaluation with fields or a language model: questions, embeddings in shards, weights, ranking.

Every step may run twice and does no harm then: field texts and parameters are named by what they were made of, what
was encoded is in the cache, and an answer of a language model that was committed is never asked for again.

In batch mode nobody is asked: the questions go to a file, and the job ends waiting for answers. Once they are imported
it runs again from its start, finds them in the cache, and goes on.

Only workers import this module; it registers steps with DBOS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from dbos import DBOS

from pipeline.jobs import progress
from pipeline.jobs.durable import is_embedded
from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest, resolve_request
from pipeline.jobs.fields import asking as field_asking
from pipeline.jobs.fields import retrieval as field_retrieval
from pipeline.jobs.fields import runs as field_runs
from pipeline.jobs.fields.sources import FieldSources
from pipeline.jobs.job_client import answer_files, asks_failed_again
from pipeline.jobs.llm_batch import import_words, kept_batch
from pipeline.jobs.measured_runs import Ranked
from pipeline.jobs.measuring import Shard
from pipeline.jobs.site import Site
from pipeline.jobs.worker_site import the_site
from pipeline.llm.records import Asker

#: Jobs that ask language models run several at a time in a worker; what fills its processor or memory does not.
one_at_a_time = threading.Lock()


def _resolved(request: dict[str, Any]) -> Evaluation:
    return resolve_request(the_site(), EvaluationRequest.from_json(request))


def rank_with_fields(
    request: dict[str, Any], plan: dict[str, Any], encode: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Inside a workflow: everything of an evaluation with fields up to the stored ranking.

    Args:
        request: ``EvaluationRequest.as_json()``.
        plan: ``fields`` of the first step: which parts a language model makes, in chunks.
        encode: brings the shards of a plan (``cut_plan``) into the cache.

    Returns:
        ``Ranked.as_json()``; or ``{"pending": …, "batch": …}``: how many questions wait for answers, and the hashes of
        the batch's files.
    """
    sources = {"tools": plan["tools_id"], "queries": plan["queries_id"]}
    for kind in ("tools", "queries"):
        for chunk in plan[kind]:
            _ask(request, kind, chunk, sources)
        if plan[kind]:
            made = _collect(request, kind, sources)
            if "pending" in made:
                return made
            sources = {**sources, kind: made["id"]}
    if not all(sources.values()) and plan["made_here"]:
        sources = _sources(request, sources)
    if not plan["over_fields"]:
        return _rank_by_baseline(request, sources)
    encode(_field_plan(request, sources))
    return _rank(request, sources, _learn(request, sources))


def field_plan(site: Site, evaluation: Evaluation) -> dict[str, Any]:
    """What ``rank_with_fields`` does, as JSON."""
    options = evaluation.options
    assert options is not None
    chunks = field_asking.chunks(evaluation)
    return {
        "tools": chunks["tools"],
        "queries": chunks["queries"],
        "tools_id": field_asking.stored_id(options.tools),
        "queries_id": field_asking.stored_id(options.queries),
        "made_here": bool(options.tools or options.queries),
        "over_fields": evaluation.method in field_runs.OVER_FIELDS,
    }


def cut_plan(site: Site, cut: list[Shard]) -> dict[str, Any]:
    """The shards as JSON, and whether they go to other workers; says in the log how many texts there are."""
    totals: dict[str, int] = {}
    for shard in cut:
        totals[shard.stage] = max(totals.get(shard.stage, 0), shard.stop)
    if totals:
        progress.say(", ".join(f"{total:,} distinct {stage}" for stage, total in totals.items()))
    shards = []
    for shard in cut:
        values = {"stage": shard.stage, "start": shard.start, "stop": shard.stop, "total": totals[shard.stage]}
        shards.append(values if shard.sources is None else {**values, "sources": shard.sources})
    # Shards on other machines help only if their embeddings come back: through the folder all workers share.
    return {"shards": shards, "fan_out": not is_embedded(site) and site.artifacts.is_local and len(cut) > 2}


@DBOS.step(name="ask")
def _ask(request: dict[str, Any], kind: str, chunk: list[int], sources: dict[str, str]) -> dict[str, int]:
    """Ask for one chunk of tools or queries; in batch mode nothing is asked here."""
    site, evaluation = the_site(), _resolved(request)
    start, stop, total = chunk
    stage = "standardizing" if kind == "tools" else "rewriting"
    progress.tell(stage, start, total)
    done = field_asking.ask_chunk(
        site,
        evaluation,
        kind,
        start,
        stop,
        sources["tools"],
        retry_failed=_failed_again(),
        progress=lambda part: progress.tell(
            stage, start + (stop - start) * part.done // max(1, part.total), total, part.remaining_s
        ),
    )
    progress.say(field_asking.chunk_words(site, evaluation, kind, stop, total, done))
    return done


@DBOS.step(name="collect")
def _collect(request: dict[str, Any], kind: str, sources: dict[str, str]) -> dict[str, Any]:
    """Store what the chunks brought; in batch mode write what they lack to a file."""
    site, evaluation = the_site(), _resolved(request)
    with field_asking.working_asker(site, evaluation, _answer_files()) as asker:
        assert asker is not None
        made = field_asking.collect(site, evaluation, kind, asker, sources["tools"])
        for line in import_words(asker):
            progress.say(line)
        if isinstance(made, str):
            progress.say(f"{kind} in fields are stored as {made[:8]}")
            return {"id": made}
        return _waiting(asker, made)


@DBOS.step(name="fields")
def _sources(request: dict[str, Any], known: dict[str, str]) -> dict[str, str]:
    progress.tell("standardizing")
    started = time.monotonic()
    found = field_asking.other_sources(the_site(), _resolved(request), FieldSources(**known))
    progress.say(f"tools and queries are in fields after {time.monotonic() - started:.1f} s")
    return found.as_json()


@DBOS.step(name="plan fields")
def _field_plan(request: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    site, evaluation = the_site(), _resolved(request)
    return cut_plan(site, field_runs.field_shards(site, evaluation, FieldSources(**sources)))


@DBOS.step(name="learn")
def _learn(request: dict[str, Any], sources: dict[str, str]) -> str | None:
    started = time.monotonic()
    progress.tell("training")
    found = field_retrieval.learn(the_site(), _resolved(request), FieldSources(**sources), progress=progress.reporter())
    if found is not None:
        progress.say(f"weights {found[:8]} after {time.monotonic() - started:.1f} s")
    return found


@DBOS.step(name="rank fields")
def _rank(request: dict[str, Any], sources: dict[str, str], parameters: str | None) -> dict[str, Any]:
    started = time.monotonic()
    with one_at_a_time:
        ranked = field_runs.rank_over_fields(
            the_site(), _resolved(request), FieldSources(**sources), parameters, progress=progress.reporter()
        )
    progress.say(f"ranked in {time.monotonic() - started:.1f} s")
    return ranked.as_json()


@DBOS.step(name="baseline")
def _rank_by_baseline(request: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    site, evaluation = the_site(), _resolved(request)
    started = time.monotonic()
    report = progress.reporter()
    with field_asking.working_asker(site, evaluation, _answer_files(), retry_failed=_failed_again()) as asker:
        ranked = field_runs.rank_by_baseline(site, evaluation, FieldSources(**sources), asker, progress=report)
        for line in import_words(asker):
            progress.say(line)
        if not isinstance(ranked, Ranked):
            return _waiting(asker, ranked)
    progress.say(f"ranked in {time.monotonic() - started:.1f} s")
    return ranked.as_json()


def _waiting(asker: Asker | None, pending: int) -> dict[str, Any]:
    files = kept_batch(the_site(), asker)
    progress.say(f"{pending:,} questions are in a batch file: import its answers, and the job goes on")
    return {"pending": pending, "batch": files}


def _answer_files() -> list[str]:
    """Artifacts of the answers that were imported for the job whose step this is."""
    return answer_files(the_site(), DBOS.workflow_id or "")


def _failed_again() -> bool:
    """Whether the job whose step this is had failed and is tried again."""
    return asks_failed_again(the_site(), DBOS.workflow_id or "")
