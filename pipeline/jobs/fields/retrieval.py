"""MFTR on a stored benchmark, in parts that may be done twice: weights and ranking."""

from __future__ import annotations

from pipeline.jobs import measuring
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields.options import settings_of
from pipeline.jobs.fields.parameters import learned_folds, stored_parameters
from pipeline.jobs.fields.scoring import FieldRanking, Scored, rank_fields, scorer_of
from pipeline.jobs.fields.sources import FieldSources, costs_of, source_notes, sources_of
from pipeline.jobs.site import Site
from pipeline.mftr.learned_parameters import mean_of_fields
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.settings import Weighting
from pipeline.mftr.training import labels_of, train_folds
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import RunTarget
from store.access import mftr
from store.access.mftr import ParameterSet
from store.errors import NotFound
from store.field_text_models import ParameterSource


def learn(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> str | None:
    """The parameters that a request ranks with, learned here unless they are stored; their id.

    None where nothing is learned.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: the benchmark is too small for the folds.
    """
    options = evaluation.options
    assert options is not None
    if options.weights:
        return options.weights
    settings = settings_of(evaluation)
    if settings.weighting is Weighting.MEAN:
        return None
    version_id, contract_hash = evaluation.version.id, evaluation.contract.hash
    said = options.details["settings"]
    source = ParameterSource.LEARNED
    set_id = mftr.parameter_set_id(version_id, contract_hash, sources.tools, sources.queries, said, source)
    with site.database.reading() as session:
        try:
            return mftr.parameters(session, set_id).id
        except NotFound:
            pass
    target, scored = _scored(site, evaluation, sources, progress, cancelled)
    negatives = hard_negatives(load_benchmark(site, version_id), target, settings)
    learned = train_folds(scored.scorer, settings, labels_of(target), negatives, progress=progress, cancelled=cancelled)
    folds = tuple(stored_parameters(number, fold) for number, fold in enumerate(learned.folds))
    made = ParameterSet(
        set_id, version_id, contract_hash, sources.tools, sources.queries, said, source, len(folds), folds
    )
    with site.database.session() as session:
        return mftr.add_parameters(session, made).id


def rank(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    parameters: str | None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FieldRanking:
    """Rank the benchmark's tools for every query with the parameters of its fold.

    Args:
        site: where everything is stored.
        evaluation: what is measured.
        sources: the field texts.
        parameters: what ``learn`` returned.
        progress: stages ``documents``, ``queries`` and ``search``.
        cancelled: asked between parts.

    Raises:
        Cancelled: on request.
        MftrError: imported parameters do not fit the queries.
        ModelError: the model cannot be loaded or used.
    """
    target, scored = _scored(site, evaluation, sources, progress, cancelled)
    settings = settings_of(evaluation)
    if parameters is None:
        learned = mean_of_fields(len(target.queries), settings.fields)
    else:
        with site.database.reading() as session:
            learned = learned_folds(mftr.parameters(session, parameters), settings, scored.scorer.queries, target)
    depth = evaluation.request.depth
    found = rank_fields(
        scored, evaluation.model, settings, learned, target, depth, progress=progress, cancelled=cancelled
    )
    notes = source_notes(site, evaluation, sources) + found.notes
    return FieldRanking(found.run, target, learned, {**found.efficiency, **costs_of(site, sources)}, notes)


def _scored(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    progress: ProgressCallback | None,
    cancelled: CancelledCallback | None,
) -> tuple[RunTarget, Scored]:
    """The benchmark's ids, and φ between its queries and tools in fields."""
    target, tools, queries = sources_of(site, evaluation, sources)
    cache = measuring.embedding_cache(site)
    model, contract = evaluation.model, evaluation.contract
    return target, scorer_of(tools, queries, model, contract, cache, progress=progress, cancelled=cancelled)
