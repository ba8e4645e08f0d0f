"""Measured runs: a ranking scored and stored under an id that follows from what was asked, so that once is enough."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
from sqlmodel import Session

from pipeline import published
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.site import Site
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.retrieve import Method
from pipeline.run import Run as RankedRun
from pipeline.run import RunTarget
from pipeline.scoring.averages import summarise
from pipeline.scoring.scores import score_run
from pipeline.scoring.version import SCORER_VERSION
from store.access import retrievers, runs
from store.database import exclusive
from store.errors import NotFound
from store.models import Level, Provenance, Retriever, Run, State, Submission, Trained, Visibility
from store.records import RetrieverRecord, Summary


@dataclass(frozen=True)
class Ranked:
    """A finished ranking, stored as an artifact.

    Attributes:
        artifact: of the ranking.
        contract_hash: of the contract, and of the adapter's training where there is one.
        efficiency: see ``pipeline.retrieval.efficiency.Efficiency``.
        notes: for readers of the results.
        method_settings: what the method was set to, where it has settings (``store.models.Run``).
    """

    artifact: str
    contract_hash: str
    efficiency: dict[str, Any]
    notes: tuple[str, ...]
    method_settings: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Ranked:
        """What ``as_json`` wrote."""
        return cls(**{**values, "notes": tuple(values["notes"])})


def run_id_of(run_key: str) -> str:
    """The id of the run that ``Evaluation.run_key`` makes; a private run is guarded by its token, not by its id."""
    number = int.from_bytes(hashlib.sha256(f"run of {run_key}".encode()).digest()[:16], "big")
    alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
    signs = []
    for _ in range(14):
        number, place = divmod(number, len(alphabet))
        signs.append(alphabet[place])
    return "".join(signs)


def measured_run(site: Site, run_key: str) -> str | None:
    """The id of the run that was made for ``Evaluation.run_key``, None when there is none."""
    with site.database.reading() as session:
        try:
            return runs.get(session, run_id_of(run_key)).id
        except NotFound:
            return None


def store_run(site: Site, evaluation: Evaluation, ranked: Ranked) -> str:
    """Score a ranking and store it as a measured run; storing it again changes nothing. Returns the run's id.

    Raises:
        StoreError: the store cannot be used.
    """
    known = measured_run(site, evaluation.run_key)
    if known is not None:
        return known
    compiled = load_compiled(site, evaluation.version.id)
    run = run_of_frame(site.artifacts.get_frame(ranked.artifact), compiled.target)
    scores = score_run(compiled, run, evaluation.version.ks)
    columns = ("view", "metric", "k", "average", "domain", "value", "n")
    summary = summarise(scores, compiled).select(columns).with_columns(pl.col("domain").fill_null(""))
    request = evaluation.request
    row = Run(
        id=run_id_of(evaluation.run_key),
        benchmark_version_id=evaluation.version.id,
        retriever_id=0,
        method=Method.FULL_DOC.value if evaluation.method is Method.ADAPTER else evaluation.method.value,
        level=(Level.SUB_QUERY if evaluation.method is Method.SUB_QUERY else Level.QUERY).value,
        contract=evaluation.contract_label,
        contract_hash=ranked.contract_hash,
        provenance=Provenance.MEASURED.value,
        state=(State.PUBLISHED if request.publish else State.SCORED).value,
        visibility=(Visibility.PUBLIC if request.publish else Visibility.PRIVATE).value,
        ranking_artifact=ranked.artifact,
        ranking_hash=run.ranking_hash,
        per_query_artifact=site.artifacts.put_frame(scores.per_query),
        scorer_version=SCORER_VERSION,
        benchmark_hash=compiled.content_hash,
        depth=max(_lengths(run), default=0),
        queries_total=len(compiled.target.queries),
        queries_answered=run.queries_answered,
        missing=len(compiled.target.queries) - run.queries_answered,
        flags=_flags(run, compiled.target),
        notes=list(ranked.notes),
        efficiency=ranked.efficiency,
        method_settings=ranked.method_settings,
        trained_on_benchmark=_trained(evaluation).value,
    )
    submission = Submission(
        benchmark_version_id=evaluation.version.id,
        person=request.person,
        report={"request": request.as_json(), "job": evaluation.job_id},
    )
    figures = [Summary(**record) for record in summary.iter_rows(named=True)]
    with site.database.session() as session:
        # A job that was taken over may have been finished by its first worker in the meantime.
        exclusive(session, f"run {row.id}")
        found = session.get(Run, row.id)
        if found is not None:
            return found.id
        row.retriever_id = _retriever(session, evaluation)
        return runs.add_run(
            session, row, figures, submission=submission if request.person else None, artifacts=site.artifacts
        ).id


def _lengths(run: RankedRun) -> Iterator[int]:
    return (int(stop - start) for start, stop in zip(run.offsets[:-1], run.offsets[1:], strict=True))


def _flags(run: RankedRun, target: RunTarget) -> list[str]:
    """The flags of the validation policy that a ranking made here can get."""
    missing = len(target.queries) - run.queries_answered
    flags = [f"missing:{missing}"] if missing else []
    if any(0 < length < min(10, len(target.tools)) for length in _lengths(run)):
        flags.append("shallow")
    if run.queries_answered * 2 < len(target.queries):
        flags.append("partial")
    return flags


def _trained(evaluation: Evaluation) -> Trained:
    """Whether the retriever has seen the benchmark's labels: what learned here has, those of the other folds."""
    options = evaluation.options
    if evaluation.method is Method.ADAPTER:
        return Trained.YES
    if options is not None and (options.method.needs.learns or options.method is FieldMethod.ONLINERAG):
        return Trained.UNKNOWN if options.weights else Trained.YES
    for known in published.retrievers():
        if known.key == evaluation.model.entry.key:
            return Trained(known.trained_on.get(evaluation.version.slug, known.trained_on_any))
    return Trained.UNKNOWN


def _retriever(session: Session, evaluation: Evaluation) -> int:
    """The stored retriever of a model, made when it is not there yet; an adapter is one of its own."""
    base = _known_or_new(session, evaluation.model)
    if evaluation.method is not Method.ADAPTER:
        return base.id
    every = evaluation.request.positives == "equivalents"
    key = f"{base.key}-adapter" + ("-equivalents" if every else "")
    try:
        return retrievers.get(session, key).id
    except NotFound:
        row = Retriever(
            key=key,
            name=f"{base.name} + adapter" + (" (every valid tool)" if every else ""),
            family=base.family,
            parameters=base.parameters,
            dimension=base.dimension,
            fine_tuned=True,
            base_key=base.key,
            open_weights=base.open_weights,
            licence=base.licence,
            notes="A linear adapter on the queries, trained here on the benchmark's own labels and used out of fold.",
        )
        return retrievers.upsert(session, row).id


def _known_or_new(session: Session, model: ModelSpec) -> RetrieverRecord:
    entry = model.entry
    try:
        return retrievers.get(session, entry.key)
    except NotFound:
        row = Retriever(
            key=entry.key,
            name=entry.name,
            family=entry.family,
            parameters=entry.parameters,
            dimension=entry.dimension,
            fine_tuned=bool(entry.base) or None,
            base_key=entry.base or None,
            licence=entry.licence,
            link=f"https://huggingface.co/{entry.hf_id}" if entry.hf_id else "",
        )
        return retrievers.upsert(session, row)
