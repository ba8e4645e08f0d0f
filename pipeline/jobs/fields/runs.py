"""Evaluations by methods with fields or language models: the parts that a job's steps and the command line call."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipeline.formats.ranking import ranking_frame
from pipeline.jobs import measuring
from pipeline.jobs.baselines import VARIANTS, Inputs, rank_baseline
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields import retrieval as field_retrieval
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.asking import asked_sources, run_asker
from pipeline.jobs.fields.methods import FieldMethod, document_words, query_words
from pipeline.jobs.fields.options import settings_of
from pipeline.jobs.fields.scoring import stage_texts
from pipeline.jobs.fields.sources import FieldSources, costs_of, ready_sources, source_notes
from pipeline.jobs.measured_runs import Ranked
from pipeline.jobs.measuring import Shard
from pipeline.jobs.site import Site
from pipeline.llm.records import Asker
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

#: Methods that rank by four fields on both sides; the others bring their own search.
OVER_FIELDS = (FieldMethod.MFTR, FieldMethod.WITHOUT_WEIGHTING, FieldMethod.WITHOUT_PENALTY)


def field_stage_texts(site: Site, evaluation: Evaluation, sources: dict[str, str]) -> dict[str, list[PromptedText]]:
    """The distinct texts of each stage of a run over fields, in the order that shards cut; empty for lexical models."""
    if not evaluation.model.entry.dense:
        return {}
    return _stage_texts(_Key(site, evaluation.version.id, evaluation.contract, sources["tools"], sources["queries"]))


@dataclass(frozen=True)
class _Key:
    """What the texts follow from; the site compares by identity."""

    site: Site
    version_id: int
    contract: Contract
    tools: str
    queries: str


@lru_cache(maxsize=1)
def _stage_texts(key: _Key) -> dict[str, list[PromptedText]]:
    target = load_compiled(key.site, key.version_id).target
    tools = field_texts.tool_fields(key.site, key.tools, target)
    queries = field_texts.query_fields(key.site, key.queries, target)
    return stage_texts(tools, queries, key.contract)


def field_shards(site: Site, evaluation: Evaluation, sources: FieldSources) -> list[Shard]:
    """Every text of a run over fields in shards, always the same ones."""
    return [
        Shard(stage, start, min(start + measuring.SHARD_TEXTS, len(texts)), sources.as_json())
        for stage, texts in field_stage_texts(site, evaluation, sources.as_json()).items()
        for start in range(0, len(texts), measuring.SHARD_TEXTS)
    ]


def rank_over_fields(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    parameters: str | None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Ranked:
    """Rank with stored fields and parameters, and store the ranking; raises as ``field_retrieval.rank``."""
    found = field_retrieval.rank(site, evaluation, sources, parameters, progress=progress, cancelled=cancelled)
    artifact = site.artifacts.put_frame(ranking_frame(found.run, found.target))
    settings = settings_json(evaluation, sources, parameters)
    return Ranked(artifact, method_contract(evaluation), found.efficiency, found.notes, settings)


def method_contract(evaluation: Evaluation) -> str:
    """sha256 hex of the model's contract and everything that the method adds to it."""
    assert evaluation.options is not None
    said = json.dumps([evaluation.method, evaluation.options.identity], sort_keys=True)
    return hashlib.sha256(f"equirank fields 1\n{evaluation.contract.hash}\n{said}".encode()).hexdigest()


def settings_json(
    evaluation: Evaluation, sources: FieldSources | None = None, parameters: str | None = None
) -> dict[str, Any]:
    """What a run keeps of its method (``Run.method_settings``).

    Returns:
        ``encoding_contract`` (the model's own contract hash, which a Full-Doc run of the same model and preset has)
        with ``model``, ``encoding`` and ``dtype`` as they were asked for, ``preset``, ``standardizer`` and ``rewriter``
        in words, ``llm``, and the ids ``tools``, ``queries`` and ``parameters``; null where the method has none.
    """
    options = evaluation.options
    assert options is not None
    return {
        "encoding_contract": evaluation.contract.hash,
        "model": evaluation.request.model,
        "encoding": evaluation.request.preset,
        "dtype": evaluation.request.dtype,
        "preset": options.preset or None,
        "standardizer": document_words(options.tools, options.llm) if options.tools else None,
        "rewriter": query_words(options.queries, options.llm) if options.queries else None,
        "llm": options.llm or None,
        "tools": sources.tools if sources else None,
        "queries": sources.queries if sources else None,
        "parameters": parameters,
    }


def rank_by_baseline(
    site: Site,
    evaluation: Evaluation,
    sources: FieldSources,
    asker: Asker | None = None,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Ranked | int:
    """Rank by a method that brings its own search, and store the ranking.

    Args:
        site: where everything is stored.
        evaluation: what is measured.
        sources: the field texts that the method needs.
        asker: answers questions of EasyTool and PLUTo.
        progress: as the method.
        cancelled: asked between parts.

    Returns:
        How many questions wait for a batch's answers, where some do.

    Raises:
        BudgetExceeded, JudgeError: the language model cannot be asked, or not any more.
        Cancelled: on request.
        MftrError, ModelError, UsageError: as the method.
    """
    options, request = evaluation.options, evaluation.request
    assert options is not None
    method = options.method
    inputs = Inputs(
        load_benchmark(site, evaluation.version.id),
        evaluation.model,
        request.preset,
        request.instruction,
        request.depth,
        field_texts.load_tools(site, sources.tools) if sources.tools else (),
        field_texts.load_queries(site, sources.queries) if sources.queries else (),
        settings_of(evaluation) if method.needs.fields else None,
        options.llm,
        options.preset,
    )
    cache = measuring.embedding_cache(site)
    found = rank_baseline(method, inputs, asker, cache=cache, progress=progress, cancelled=cancelled)
    if found.run is None or found.target is None:
        return found.pending
    artifact = site.artifacts.put_frame(ranking_frame(found.run, found.target))
    costs, notes = found.efficiency, found.notes
    if method in VARIANTS:
        costs = {**costs, **costs_of(site, sources)}
        notes = (*notes, *source_notes(site, evaluation, sources))
    return Ranked(artifact, method_contract(evaluation), costs, notes, settings_json(evaluation, sources))


def measure_fields(
    site: Site, evaluation: Evaluation, *, retry_failed: bool = False, progress: ProgressCallback | None = None
) -> Ranked:
    """Do a whole evaluation over fields here and now, up to the stored ranking; see ``measuring.measure``.

    Raises:
        BudgetExceeded, JudgeError: a language model cannot be asked, or not any more.
        MftrError, ModelError, UsageError: as the parts.
    """
    sources = ready_sources(site, evaluation)
    asker: Asker | None = None
    if evaluation.options is not None and evaluation.options.asks:
        asker = run_asker(site, evaluation, retry_failed=retry_failed)
    if sources is None:
        assert asker is not None
        sources = asked_sources(site, evaluation, asker, progress=progress)
    if evaluation.method not in OVER_FIELDS:
        ranked = rank_by_baseline(site, evaluation, sources, asker, progress=progress)
        assert isinstance(ranked, Ranked), "a live model leaves nothing pending"
        return ranked
    for shard in field_shards(site, evaluation, sources):
        measuring.encode_shard(site, evaluation, shard, progress=progress)
    parameters = field_retrieval.learn(site, evaluation, sources, progress=progress)
    return rank_over_fields(site, evaluation, sources, parameters, progress=progress)
