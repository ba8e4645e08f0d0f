"""The text that Full-Doc retrieval searches, and the ids that a run is over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.benchmark import Benchmark, Kind
from pipeline.errors import BenchmarkError
from pipeline.formats.skill_document import split_skill_document
from pipeline.identifiers import IdTable
from pipeline.run import RunTarget


def full_doc_texts(benchmark: Benchmark) -> list[str]:
    """The searched text of every tool, in the order of ``benchmark.tools``.

    A tool's is its documentation, byte for byte; a skill's is ``name | description | skill_md`` as SkillRet joins
    them.
    """
    documentation: list[str] = benchmark.tools["documentation"].to_list()
    if benchmark.info.kind is not Kind.SKILL:
        return documentation
    names: list[str] = benchmark.tools["name"].to_list()
    return [
        f"{name} | {description} | {skill_md}"
        for name, document in zip(names, documentation, strict=True)
        for description, skill_md in [split_skill_document(document)]
    ]


def documents_in_order(benchmark: Benchmark, target: RunTarget) -> list[str]:
    """``full_doc_texts`` in the order of ``target.tools`` (ids sorted by bytes)."""
    texts = full_doc_texts(benchmark)
    places = target.tools.find(benchmark.tools["tool_id"].to_list())
    ordered = [""] * len(texts)
    for place, text in zip(places.tolist(), texts, strict=True):
        ordered[place] = text
    return ordered


def queries_in_order(benchmark: Benchmark, target: RunTarget) -> tuple[list[str], list[str]]:
    """(texts, instructions) of the queries in the order of ``target.queries``."""
    places = target.queries.find(benchmark.queries["query_id"].to_list())
    order = np.argsort(places).tolist()
    texts, instructions = benchmark.queries["text"].to_list(), benchmark.queries["instruction"].to_list()
    return [texts[i] for i in order], [instructions[i] or "" for i in order]


def run_target(benchmark: Benchmark) -> RunTarget:
    """What a run of ``benchmark`` is over; equal to ``CompiledBenchmark.target`` but made without compiling.

    Raises:
        BenchmarkError: a ground truth names an unknown query or tool.
    """
    queries = _sorted_ids(benchmark.queries["query_id"].to_list())
    tools = _sorted_ids(benchmark.tools["tool_id"].to_list())
    rows = queries.find(benchmark.ground_truth["query_id"].to_list())
    labels: list[list[str]] = benchmark.ground_truth["tool_ids"].to_list()
    truth: list[npt.NDArray[np.int32]] = [np.empty(0, dtype=np.int32)] * len(queries)
    for row, ids in zip(rows.tolist(), labels, strict=True):
        found = tools.find(ids)
        if row < 0 or (found < 0).any():
            raise BenchmarkError(f"The ground truth of {benchmark.info.slug} names an unknown query or tool.")
        truth[row] = found
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum([len(t) for t in truth], out=offsets[1:])
    flat = np.concatenate(truth) if truth else np.empty(0, dtype=np.int32)
    return RunTarget(f"{benchmark.info.slug}@{benchmark.info.version}", queries, tools, offsets, flat)


def _sorted_ids(ids: list[str]) -> IdTable:
    return IdTable.from_ids(sorted(ids, key=str.encode))
