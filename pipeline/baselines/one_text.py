"""The one-text variants of Table 3: whole standardized documents, whole rewritten queries, or both.

A standardized document's text is the JSON of its four fields in their order, a rewritten query's the JSON of its needs
and arguments, non-ASCII characters escaped, exactly as Python writes the published files. Of the forms tried (JSON
with and without escapes, indented, labelled lines, plain lines) it is the one that gives the published figures to four
decimals: MiniLM with the ``paper`` preset on apibank has NDCG@10 .5774 (Stand. Only), .6842 (Rewrite Only) and .6622
(Stand. + Rewrite), where plain lines have .7114 for Rewrite Only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from pipeline.baselines.ablation_variants import Combination, Documents, Queries, Variant
from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.formats.messages import plural
from pipeline.mftr.files import rewritten_to_json, standardized_to_json
from pipeline.mftr.schema import RewrittenQuery, StandardizedTool
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.documents import queries_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, Retrieval, retrieval_texts, search_texts


def standardized_text(tool: StandardizedTool) -> str:
    """A standardized document as one text."""
    return json.dumps(standardized_to_json(tool))


def rewritten_text(query: RewrittenQuery) -> str:
    """A rewritten query as one text."""
    return json.dumps(rewritten_to_json(query))


def retrieve_one_text(
    benchmark: Benchmark,
    variant: Variant,
    model: ModelSpec,
    preset: Preset | str = Preset.CARD,
    *,
    standardized: Iterable[StandardizedTool] = (),
    rewritten: Iterable[RewrittenQuery] = (),
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Retrieval:
    """Rank the tools by one text each.

    A tool that was not standardized is searched verbatim, a query that was not rewritten goes as it is; notes count
    them.

    Args:
        benchmark: the benchmark.
        variant: a one-text variant.
        model: BM25 or a dense model.
        preset: ``card`` or ``paper``: how the model encodes.
        standardized: the tools, in any order; others than the benchmark's are left aside.
        rewritten: the queries, likewise.
        depth: results kept for a query.
        cache: where embeddings are kept.
        progress: stages of Full-Doc.
        cancelled: asked between batches.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used.
        UsageError: the variant scores fields, or the depth is below 1.
    """
    if variant.combination is not Combination.ONE_TEXT:
        raise UsageError(f"{variant.label} scores fields one by one; it is run with MFTR's training.")
    if depth < 1:
        raise UsageError(f"The depth is {depth}; it must be at least 1.")
    contract = model.contract(preset)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    notes = []
    if variant.documents is Documents.STANDARDIZED:
        fields = {tool.tool_id: standardized_text(tool) for tool in standardized}
        ids = texts.target.tools.ids
        documents = [
            contract.document(fields[tool_id]) if tool_id in fields else verbatim
            for tool_id, verbatim in zip(ids, texts.documents, strict=True)
        ]
        texts = replace(texts, documents=documents)
        missing = sum(tool_id not in fields for tool_id in ids)
        if missing:
            notes.append(f"{plural(missing, 'tool was', 'tools were')} not standardized and searched verbatim.")
    if variant.queries is Queries.REWRITTEN:
        needs = {query.query_id: rewritten_text(query) for query in rewritten}
        ids = texts.target.queries.ids
        originals, _ = queries_in_order(benchmark, texts.target)
        queries = [contract.query(needs.get(query_id, text)) for query_id, text in zip(ids, originals, strict=True)]
        texts = replace(texts, queries=queries)
        missing = sum(query_id not in needs for query_id in ids)
        if missing:
            several = plural(
                missing,
                "query was not rewritten and searched as it is",
                "queries were not rewritten and searched as they are",
            )
            notes.append(f"{several}.")
    found = search_texts(texts, model, contract, depth, cache=cache, progress=progress, cancelled=cancelled)
    return replace(found, notes=(*found.notes, *notes))
