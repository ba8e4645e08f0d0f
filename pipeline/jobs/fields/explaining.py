"""Why a stored run over fields gives a tool its rank for a query (MFTR, Table 4).

No model is loaded: a dense model's embeddings come from the cache, and what is no longer there is said in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from pipeline.errors import MftrError
from pipeline.jobs import measuring
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.jobs.evaluation_request import permissions
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.fields.options import method_settings
from pipeline.jobs.fields.parameters import learned_folds
from pipeline.jobs.fields.reading import EXPLAINED
from pipeline.jobs.fields.scoring import Scored, scorer_of, stage_texts
from pipeline.jobs.site import Site
from pipeline.mftr.explain import Explanation, explain
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.learned_parameters import LearnedFolds, mean_of_fields
from pipeline.mftr.settings import DEFAULT_PRESET, MftrSettings
from pipeline.retrieval.contract import Contract, Dtype
from pipeline.retrieval.models import resolve_model
from pipeline.run import RunTarget
from store.access import benchmarks, mftr, runs
from store.errors import NotFound
from store.records import RunRecord


def explain_tool(site: Site, run_id: str, query_id: str, tool_id: str) -> Explanation:
    """Why a run over fields gives a tool its rank for a query: field scores and ranks, weights, parameters, penalty.

    ``full_doc_rank`` comes from the published Full-Doc run of the same model and encoding, where there is one.

    Raises:
        MftrError: the run has no fields, or the embeddings of its texts are not in the cache any more.
        NotFound: there is no such run, query or tool.
    """
    return explain_in(site, run_work(site, run_id), query_id, tool_id)


@dataclass(frozen=True, eq=False)
class RunWork:
    """A stored run over fields, ready to score again.

    Attributes:
        scored: φ over its texts.
        settings, learned: how it weighs.
        full_doc: the ranking artifact of its Full-Doc counterpart; None where there is none.
    """

    run: RunRecord
    target: RunTarget
    scored: Scored
    settings: MftrSettings
    learned: LearnedFolds
    full_doc: str | None


def run_work(site: Site, run_id: str) -> RunWork:
    """Everything that ``explain`` needs of a run; takes seconds for a big corpus, so keep it between two looks.

    Raises:
        MftrError: the run has no fields, or the embeddings of its texts are not in the cache any more.
        NotFound: there is no such run.
    """
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
    said = run.method_settings
    if run.method not in EXPLAINED or said is None:
        raise MftrError(
            f"the run {run_id} is not over fields ({run.method}): there is nothing to explain field by field"
        )
    target = load_compiled(site, version.id).target
    tools = field_texts.tool_fields(site, said["tools"], target)
    queries = field_texts.query_fields(site, said["queries"], target)
    settings = method_settings(FieldMethod(run.method), said["preset"] or DEFAULT_PRESET)
    learned = mean_of_fields(len(queries), settings.fields)
    if said["parameters"] is not None:
        with site.database.reading() as session:
            stored = mftr.parameters(session, said["parameters"])
        learned = learned_folds(stored, settings, queries, target)
    model = resolve_model(
        said["model"], permissions=permissions(site.settings), dtype=Dtype(said["dtype"]) if said["dtype"] else None
    )
    contract = model.contract(said["encoding"])
    if contract.hash != said["encoding_contract"]:
        raise MftrError(
            f"the run {run_id} was encoded in another way than {model.entry.name} is now: evaluate the model again"
        )
    _require_embeddings(site, tools, queries, model.entry.dense, contract)
    scored = scorer_of(tools, queries, model, contract, measuring.embedding_cache(site))
    full_doc = _full_doc_ranking(site, version.id, said["encoding_contract"])
    return RunWork(run, target, scored, settings, learned, full_doc)


def _require_embeddings(site: Site, tools: ToolFields, queries: QueryFields, dense: bool, contract: Contract) -> None:
    """A web process must not encode: refuse when a text's embedding is gone."""
    if not dense:
        return
    cache = measuring.embedding_cache(site)
    for texts in stage_texts(tools, queries, contract).values():
        if not cache.holds(contract.space, [contract.key(text) for text in texts]).all():
            raise MftrError(
                "the embeddings of this run's texts are not in the cache any more: evaluate the model again, which "
                "brings them back"
            )


def _full_doc_ranking(site: Site, version_id: int, contract_hash: str) -> str | None:
    with site.database.reading() as session:
        listed = runs.list_runs(session, benchmark_version_id=version_id)
        shown = listed.filter(
            (pl.col("method") == "full-doc") & (pl.col("state") == "published") & (pl.col("visibility") == "public")
        )
        for run_id in shown["run_id"]:
            record = runs.get(session, run_id)
            if record.contract_hash == contract_hash and record.ranking_artifact:
                return record.ranking_artifact
    return None


def _places(target: RunTarget, query_id: str, tool_id: str) -> tuple[int, int]:
    query, tool = int(target.queries.find([query_id])[0]), int(target.tools.find([tool_id])[0])
    if query < 0 or tool < 0:
        what = f"query {query_id!r}" if query < 0 else f"tool {tool_id!r}"
        raise NotFound(f"{target.name} has no {what}")
    return query, tool


def explain_in(site: Site, work: RunWork, query_id: str, tool_id: str) -> Explanation:
    """``explain_tool`` with a ``run_work`` that was kept; raises as that."""
    query, tool = _places(work.target, query_id, tool_id)
    found = explain(work.scored.scorer, work.settings, work.learned, query, tool)
    return _with_full_doc(site, work, found, query_id, tool_id)


def _with_full_doc(site: Site, work: RunWork, found: Explanation, query_id: str, tool_id: str) -> Explanation:
    if work.full_doc is None:
        return found
    ranked = site.artifacts.scan(work.full_doc).filter(pl.col("query_id") == query_id).collect()
    places = [place for place, tool in enumerate(ranked["tool_id"], start=1) if tool == tool_id]
    return replace(found, full_doc_rank=places[0] if places else None)
