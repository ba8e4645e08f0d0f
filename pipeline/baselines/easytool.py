"""EasyTool (Yuan et al. 2025) as a retrieval baseline: search a concise text instead of the documentation.

A language model condenses each document to its purpose and numbered functions (one call), then writes for each
function its parameters, a scenario and an example call (one call a function). Nothing is asked for a query. Where any
of a tool's answers fails, the tool's documentation stands verbatim, so that no tool leaves the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.baselines.result import BaselineResult, Failed, method_hash
from pipeline.benchmark import Benchmark
from pipeline.errors import JudgeError, UsageError
from pipeline.formats.messages import plural
from pipeline.llm.asking import ask_all, pending_count, total_usage, usage_of
from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Answer, Asker, Failure, Question, Usage
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.documents import documents_in_order
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.retrieval.retrieve import Method, retrieval_texts, search_texts

OVERVIEW_PROMPT = "easytool_overview"
GUIDE_PROMPT = "easytool_guide"
INSTEAD = "its documentation is searched verbatim"

_TEXT = {"type": "string"}
OVERVIEW_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"purpose": _TEXT, "functions": {"type": "array", "items": _TEXT}},
    "required": ["purpose", "functions"],
    "additionalProperties": False,
}
GUIDE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "parameters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": _TEXT, "description": _TEXT},
                "required": ["name", "description"],
                "additionalProperties": False,
            },
        },
        "scenario": _TEXT,
        "example": _TEXT,
    },
    "required": ["parameters", "scenario", "example"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class EasyToolSettings:
    """Settings of the baseline.

    Attributes:
        functions: functions of a tool that get a guide; a longer list is cut there.
        document_characters: longer documents are cut there before they are shown to the model.
    """

    functions: int = 8
    document_characters: int = 12_000


@dataclass(frozen=True, eq=False)
class ConciseDocuments:
    """The texts that are searched instead of the documents.

    Attributes:
        texts: one a document; the document itself where condensing failed, or where it is blank.
        failures: documents that stand verbatim because an answer failed.
        blank: documents without text, for which nothing was asked.
        questions: how many questions were asked, equal ones of different tools counted each.
        pending: distinct questions that wait for a batch's answers; texts are final only when it is 0.
        usage: of the answers.
    """

    texts: list[str]
    failures: tuple[Failed, ...]
    blank: int
    questions: int
    pending: int
    usage: Usage


def condense(
    documents: Sequence[str],
    names: Sequence[str],
    asker: Asker,
    llm: str,
    settings: EasyToolSettings = EasyToolSettings(),
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> ConciseDocuments:
    """Condense every document.

    Args:
        documents: verbatim documentation.
        names: what to call each in the record of failures, as tool ids.
        asker: who answers.
        llm: the language model, ``provider/model``.
        settings: limits.
        progress: stages ``overviews`` and ``guides``, in questions.
        cancelled: see ``ask_all``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    shown = [document[: settings.document_characters] for document in documents]
    filled = [i for i, document in enumerate(documents) if document.strip()]
    overview = [_overview_question(shown[i], llm, settings) for i in filled]
    first = ask_all(asker, overview, stage="overviews", check=_check_overview, progress=progress, cancelled=cancelled)
    overviews = {i: out.value for i, out in zip(filled, first, strict=True) if isinstance(out, Answer)}
    functions = {i: _functions(value)[: settings.functions] for i, value in overviews.items()}
    owners = [i for i, found in functions.items() for _ in found]
    guide = [_guide_question(shown[i], text, llm) for i, found in functions.items() for text in found]
    second = ask_all(asker, guide, stage="guides", progress=progress, cancelled=cancelled)

    guides: dict[int, list[Mapping[str, Any]]] = {i: [] for i in functions}
    reasons: dict[int, str] = {}
    for i, outcome in [*zip(filled, first, strict=True), *zip(owners, second, strict=True)]:
        if isinstance(outcome, Failure):
            reasons.setdefault(i, outcome.reason)
    for i, outcome in zip(owners, second, strict=True):
        if isinstance(outcome, Answer):
            guides[i].append(outcome.value)
    texts = list(documents)
    for i, found in functions.items():
        if i not in reasons and len(guides[i]) == len(found):
            texts[i] = concise_text(str(overviews[i]["purpose"]), found, guides[i])
    failures = tuple(Failed(names[i], "condensing", reasons[i], INSTEAD) for i in sorted(reasons))
    outcomes = [*first, *second]
    return ConciseDocuments(
        texts,
        failures,
        len(documents) - len(filled),
        len(outcomes),
        pending_count(outcomes),
        total_usage(usage_of(outcome) for outcome in outcomes),
    )


def concise_text(purpose: str, functions: Sequence[str], guides: Sequence[Mapping[str, Any]]) -> str:
    """The text of a tool: its purpose, then each function by number with parameters, scenario and example call."""
    lines = [purpose.strip()]
    for number, (function, guide) in enumerate(zip(functions, guides, strict=True), start=1):
        lines.append(f"{number}. {function}")
        parameters = [f"{item['name']}: {item['description']}" for item in guide["parameters"]]
        for label, text in (
            ("Parameters", "; ".join(parameters)),
            ("Scenario", guide["scenario"]),
            ("Example", guide["example"]),
        ):
            if text.strip():
                lines.append(f"{label}: {text.strip()}")
    return "\n".join(lines)


def retrieve_easytool(
    benchmark: Benchmark,
    model: ModelSpec,
    asker: Asker,
    llm: str,
    preset: Preset | str = Preset.CARD,
    settings: EasyToolSettings = EasyToolSettings(),
    *,
    instruction: bool = False,
    depth: int = 100,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> BaselineResult:
    """Rank the benchmark's tools by their concise texts.

    Args:
        benchmark: the benchmark.
        model: BM25 or a dense model.
        asker: who answers the questions about the tools.
        llm: the language model, ``provider/model``.
        preset: ``card`` or ``paper``: how the model encodes.
        settings: see ``EasyToolSettings``.
        instruction: whether queries come with their instruction, where they have one.
        depth: results kept for a query.
        cache: where embeddings are kept.
        progress: stages ``overviews`` and ``guides``, then those of Full-Doc.
        cancelled: asked between parts.

    Raises:
        BudgetExceeded: before a call that could exceed the budget; call again to go on.
        Cancelled: on request.
        JudgeError: the language model cannot be asked at all, or condensed no tool.
        ModelError: the retriever cannot be loaded or used.
        UsageError: the depth is below 1.
    """
    if depth < 1:
        raise UsageError(f"The depth is {depth}; it must be at least 1.")
    contract = model.contract(preset, instruction=instruction)
    texts = retrieval_texts(benchmark, contract, Method.FULL_DOC)
    documents = documents_in_order(benchmark, texts.target)
    concise = condense(documents, texts.target.tools.ids, asker, llm, settings, progress=progress, cancelled=cancelled)
    if concise.pending:
        return BaselineResult(None, concise.pending, concise.failures, concise.usage)
    asked = sum(bool(document.strip()) for document in documents)
    if asked and len(concise.failures) == asked:
        raise JudgeError(
            f"{llm} condensed none of {asked:,} tools, so this would be Full-Doc under the name of EasyTool; the last: "
            f"{concise.failures[-1].reason}. Choose another model"
        )
    searched = replace(texts, documents=[contract.document(text) for text in concise.texts])
    found = search_texts(searched, model, contract, depth, cache=cache, progress=progress, cancelled=cancelled)
    notes = [
        f"Every tool is searched by a text that {llm} condensed from its documentation (EasyTool); "
        "queries go as they are."
    ]
    if concise.failures:
        count = len(concise.failures)
        notes.append(f"{plural(count, 'tool was', 'tools were')} not condensed and searched verbatim.")
    prompts = [load_prompt(name).reference for name in (OVERVIEW_PROMPT, GUIDE_PROMPT)]
    cost = replace(
        found.efficiency,
        llm_calls_per_query=0.0,
        llm_seconds_per_query=0.0,
        llm_calls_per_tool=concise.questions / len(documents) if documents else None,
    )
    identity = method_hash(contract.hash, "easytool", settings, prompts, llm)
    run = replace(found, contract_hash=identity, efficiency=cost, notes=(*found.notes, *notes))
    return BaselineResult(run, 0, concise.failures, concise.usage)


def _overview_question(document: str, llm: str, settings: EasyToolSettings) -> Question:
    prompt = load_prompt(OVERVIEW_PROMPT)
    messages = prompt.messages(documentation=document, limit=str(settings.functions))
    return Question(llm, prompt.reference, messages, OVERVIEW_SCHEMA, "easytool_overview", "easytool")


def _guide_question(document: str, function: str, llm: str) -> Question:
    prompt = load_prompt(GUIDE_PROMPT)
    messages = prompt.messages(documentation=document, function=function)
    return Question(llm, prompt.reference, messages, GUIDE_SCHEMA, "easytool_guide", "easytool")


def _functions(value: Mapping[str, Any]) -> list[str]:
    """The named functions in one line each, without blanks and repeats."""
    return list(dict.fromkeys(line for text in value["functions"] if (line := " ".join(text.split()))))


def _check_overview(question: Question, value: Mapping[str, Any]) -> str | None:
    if not str(value["purpose"]).strip():
        return "the purpose is blank"
    return None if _functions(value) else "no function is named"
