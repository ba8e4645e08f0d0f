"""Retrieval with fields on a benchmark that need not be stored: what the command line does with a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.jobs import measuring
from pipeline.jobs.baselines import Inputs, rank_baseline
from pipeline.jobs.evaluation_request import EvaluationRequest
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import ORIGINAL, RULES, FieldMethod
from pipeline.jobs.fields.options import method_settings, plain_options
from pipeline.jobs.fields.scoring import FieldRanking, rank_fields, scorer_of
from pipeline.jobs.site import Site
from pipeline.mftr.fields import query_fields, tool_fields
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, mean_of_fields, published_folds
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.schema import RewrittenQuery, StandardizedTool
from pipeline.mftr.settings import MftrSettings, Weighting
from pipeline.mftr.training import labels_of, train_folds
from pipeline.retrieval.contract import Contract
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.efficiency import Efficiency
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Retrieval


@dataclass(frozen=True, eq=False)
class Texts:
    """Tools and queries in fields, in any order."""

    tools: Sequence[StandardizedTool]
    queries: Sequence[RewrittenQuery]


def learn_here(
    benchmark: Benchmark,
    texts: Texts,
    model: ModelSpec,
    contract: Contract,
    settings: MftrSettings,
    *,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> LearnedFolds:
    """Learn weights fold by fold.

    Raises:
        MftrError: a tool or query comes twice or is not of the benchmark.
        ModelError: the model cannot be loaded or used.
        UsageError: there are too few queries for the folds.
    """
    target = run_target(benchmark)
    tools, queries = tool_fields(texts.tools, target.tools), query_fields(texts.queries, target.queries)
    scored = scorer_of(tools, queries, model, contract, cache, progress=progress, cancelled=cancelled)
    return train_folds(
        scored.scorer,
        settings,
        labels_of(target),
        hard_negatives(benchmark, target, settings),
        progress=progress,
        cancelled=cancelled,
    )


def score_here(
    benchmark: Benchmark,
    texts: Texts,
    model: ModelSpec,
    contract: Contract,
    settings: MftrSettings,
    weights: Sequence[LearnedParameters] | None = None,
    *,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> FieldRanking:
    """Rank the benchmark's tools for every query, with imported weights or with ones learned here.

    Args:
        benchmark: the benchmark.
        texts: its tools and queries in fields.
        model: BM25 or a dense model.
        contract: one of its contracts.
        settings: MFTR's.
        weights: of each fold, applied by the queries' ``test_fold``; None learns.
        depth: results kept for a query.
        cache: where embeddings are kept.
        progress: stages ``documents``, ``queries`` and ``search``.
        cancelled: asked between parts.

    Raises:
        MftrError: a tool or query comes twice or is not of the benchmark, or a query has no fold.
        ModelError: the model cannot be loaded or used.
        UsageError: there are too few queries for the folds.
    """
    target = run_target(benchmark)
    tools, queries = tool_fields(texts.tools, target.tools), query_fields(texts.queries, target.queries)
    scored = scorer_of(tools, queries, model, contract, cache, progress=progress, cancelled=cancelled)
    if settings.weighting is Weighting.MEAN:
        learned = mean_of_fields(len(queries), settings.fields)
    elif weights is not None:
        learned = published_folds(weights, queries.queries)
    else:
        negatives = hard_negatives(benchmark, target, settings)
        learned = train_folds(
            scored.scorer, settings, labels_of(target), negatives, progress=progress, cancelled=cancelled
        )
    return rank_fields(scored, model, settings, learned, target, depth, progress=progress, cancelled=cancelled)


def retrieve_fields(
    site: Site,
    benchmark: Benchmark,
    request: EvaluationRequest,
    model: ModelSpec,
    method: FieldMethod,
    contract: Contract,
    *,
    progress: ProgressCallback | None = None,
) -> tuple[Retrieval, str]:
    """A ``FieldMethod`` on a folder; returns the retrieval and a tag for it.

    Texts in fields come from the rules and from the queries themselves; others are files, which
    ``equirank mftr score`` and ``equirank mftr ablate`` read.

    Raises:
        BenchmarkError, MftrError, ModelError, UsageError: as the method.
    """
    options = plain_options(site.settings, request, method)
    if options.asks or options.tools not in ("", RULES) or options.queries not in ("", ORIGINAL) or options.weights:
        raise UsageError(
            "with --out only rule-based documents and the original queries are used: `equirank mftr` makes and reads "
            "files, and a stored benchmark takes stored texts, weights and language models"
        )
    cache = measuring.embedding_cache(site)
    tools = field_texts.rule_based_tools(benchmark, progress=progress) if options.tools else []
    queries = field_texts.original_queries(benchmark)
    tag = "-".join(part for part in (model.entry.key, str(method), options.preset, request.preset) if part)
    if method is FieldMethod.MFTR:
        settings = method_settings(method, options.preset)
        found = score_here(
            benchmark, Texts(tools, queries), model, contract, settings, depth=request.depth, cache=cache,
            progress=progress,
        )  # fmt: skip
        efficiency = _efficiency(found.efficiency)
        return Retrieval(found.run, found.target, settings.contract_hash(contract.hash), efficiency, found.notes), tag
    inputs = Inputs(
        benchmark, model, request.preset, request.instruction, request.depth, tools, queries,
        method_settings(method, options.preset) if method.needs.fields else None, method_preset=options.preset,
    )  # fmt: skip
    outcome = rank_baseline(method, inputs, cache=cache, progress=progress)
    assert outcome.run is not None
    assert outcome.target is not None
    return Retrieval(outcome.run, outcome.target, contract.hash, _efficiency(outcome.efficiency), outcome.notes), tag


def _efficiency(values: dict[str, Any]) -> Efficiency:
    nothing = dict.fromkeys(Efficiency.__annotations__)
    known = {name: value for name, value in values.items() if name in Efficiency.__annotations__}
    return Efficiency(**{**nothing, "index_bytes": 0, "device": "", **known})
