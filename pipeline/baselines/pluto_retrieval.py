"""PLUTo over a benchmark: ground the tools, plan every query, order what was kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pipeline.baselines.pluto import PLAN_PROMPT, SELECT_PROMPT, Fill, PlutoSettings, ordered, plan_and_retrieve
from pipeline.baselines.pluto_grounding import EDIT_PROMPT, USE_CASES_PROMPT, ground
from pipeline.baselines.result import BaselineResult, method_hash
from pipeline.baselines.text_scores import TextScores, text_scores
from pipeline.benchmark import Benchmark
from pipeline.errors import JudgeError, UsageError
from pipeline.formats.messages import plural
from pipeline.llm.asking import total_usage
from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Asker
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.documents import documents_in_order, queries_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, retrieval_texts, search_texts
from pipeline.run import RunTarget

#: A tool without a name is called by the beginning of its document.
_NAME_CHARACTERS = 60


def retrieve_pluto(
    benchmark: Benchmark,
    model: ModelSpec,
    asker: Asker,
    llm: str,
    preset: Preset | str = Preset.CARD,
    settings: PlutoSettings | None = None,
    *,
    instruction: bool = False,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> BaselineResult:
    """Rank the benchmark's tools by PLUTo.

    Args:
        benchmark: the benchmark.
        model: BM25 or a dense model.
        asker: who answers.
        llm: the language model, ``provider/model``.
        preset: ``card`` or ``paper``: how the model encodes.
        settings: see ``PlutoSettings``; its defaults when None.
        instruction: whether the queries of the Full-Doc ranking that fills the lists come with their instruction.
        depth: results kept for a query.
        cache: where embeddings are kept; without one, documents are encoded four times.
        progress: stages ``use cases``, ``edits``, ``documents``, ``planning``, and those of Full-Doc.
        cancelled: asked between parts.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; call again to go on.
        Cancelled: on request.
        JudgeError: the language model cannot be asked at all, or planned no query.
        ModelError: the retriever cannot be loaded or used.
        UsageError: the depth is below 1.
    """
    if depth < 1:
        raise UsageError(f"The depth is {depth}; it must be at least 1.")
    settings = settings or PlutoSettings()
    contract = model.contract(preset, instruction=instruction)
    bare = model.contract(preset)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    documents = documents_in_order(benchmark, texts.target)
    queries, _ = queries_in_order(benchmark, texts.target)

    def search(rows: Sequence[str]) -> TextScores:
        return text_scores(rows, model, bare, cache, progress=progress, cancelled=cancelled)

    ids = texts.target.tools.ids
    tools = ground(documents, ids, search, asker, llm, settings.grounding, progress=progress, cancelled=cancelled)
    if tools.pending:
        return BaselineResult(None, tools.pending, tools.failures, tools.usage)
    descriptions = search(tools.descriptions)
    use_cases = search([text for found in tools.use_cases for text in found])
    plans = plan_and_retrieve(
        queries,
        texts.target.queries.ids,
        tools,
        _names(benchmark, texts.target, documents),
        descriptions,
        use_cases,
        asker,
        llm,
        settings,
        progress=progress,
        cancelled=cancelled,
    )
    failures = tools.failures + plans.failures
    usage = total_usage((tools.usage, plans.usage))
    if plans.pending:
        return BaselineResult(None, plans.pending, failures, usage)
    if any(plans.requests) and not plans.planned:
        name = "Full-Doc under the name of PLUTo" if settings.fill is Fill.FULL_DOC else "a run without results"
        raise JudgeError(
            f"{llm} planned none of {plural(len(queries), 'query', 'queries')}, so this would be {name}; the last: "
            f"{plans.failures[-1].reason}. Choose another model"
        )
    found = search_texts(texts, model, contract, depth, cache=cache, progress=progress, cancelled=cancelled)
    full_doc = found.run if settings.fill is Fill.FULL_DOC else None
    count, waited = len(queries), math.fsum(plans.seconds)
    cost = replace(
        found.efficiency,
        llm_calls_per_query=sum(plans.calls) / count if count else None,
        llm_seconds_per_query=waited / count if count and waited else None,
        llm_calls_per_tool=tools.questions / len(documents) if documents else None,
    )
    prompts = [load_prompt(name).reference for name in (PLAN_PROMPT, SELECT_PROMPT, USE_CASES_PROMPT, EDIT_PROMPT)]
    return BaselineResult(
        replace(
            found,
            run=ordered(plans.kept, full_doc, depth).run(texts.target),
            contract_hash=method_hash(contract.hash, "pluto", settings, prompts, llm),
            efficiency=cost,
            notes=(*found.notes, *_notes(plans.kept, tools.edited, len(failures), sum(plans.requests), llm, settings)),
        ),
        0,
        failures,
        usage,
    )


def _names(benchmark: Benchmark, target: RunTarget, documents: Sequence[str]) -> list[str]:
    """A short name of each tool, in the order of the ids."""
    names = [" ".join(text.split())[:_NAME_CHARACTERS] for text in documents]
    places = target.tools.find(benchmark.tools["tool_id"].to_list())
    for place, name in zip(places.tolist(), benchmark.tools["name"].to_list(), strict=True):
        names[place] = name or names[place]
    return names


def _notes(
    kept: Sequence[Sequence[int]], edited: int, failures: int, requests: int, llm: str, settings: PlutoSettings
) -> list[str]:
    notes = [
        f"{llm} planned each query in up to {settings.hops} hops and kept the relevant of {settings.retrieved} tools "
        f"retrieved for each action (PLUTo); {plural(edited, 'description was', 'descriptions were')} rewritten.",
        "Kept tools come first, by hop, then score; "
        + (
            "the Full-Doc ranking of the query follows. Scores only say the place."
            if settings.fill is Fill.FULL_DOC
            else "nothing follows. Scores only say the place."
        ),
        f"Calls count the {settings.draws} draws of one prompt once; {requests:,} requests were sent for the queries.",
    ]
    empty = sum(not tools for tools in kept)
    if empty:
        notes.append(f"For {plural(empty, 'query', 'queries')} no tool was kept.")
    if failures:
        notes.append(f"{plural(failures, 'question')} got no valid answer.")
    return notes
