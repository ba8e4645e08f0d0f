"""Texts in fields and weights that were imported for the demo tools and BM25, as published files are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_request
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.site import Site
from store.access import mftr
from store.field_text_models import FieldTextSource, ParameterSource


@dataclass(frozen=True)
class StoredWeights:
    """Ids of what was stored."""

    tools: str
    queries: str
    weights: str


def imported_weights(site: Site) -> StoredWeights:
    """Store all three: rule-based tools, queries as they are in two folds, and weights of the description alone."""
    evaluation = resolve_request(site, EvaluationRequest("demo-tools@1", "bm25s", "mftr"))
    version, imported = evaluation.version.id, field_texts.Origin(FieldTextSource.IMPORTED)
    target, whole = load_compiled(site, version).target, load_benchmark(site, version)
    tools = field_texts.store_tools(site, version, target, field_texts.rule_based_tools(whole), imported).id
    asked = [replace(query, test_fold=n % 2) for n, query in enumerate(field_texts.original_queries(whole))]
    queries = field_texts.store_queries(site, version, target, asked, imported).id
    folds = tuple(mftr.FoldParameters(number, (1.0, 0.0, 0.0, 0.0), 0.3, 15.0, 0.0, 0.0) for number in range(2))
    key = (version, evaluation.contract.hash, tools, queries, {}, ParameterSource.IMPORTED)
    made = mftr.ParameterSet(mftr.parameter_set_id(*key, folds), *key, 2, folds)
    with site.database.session() as session:
        mftr.add_parameters(session, made)
    return StoredWeights(tools, queries, made.id)
