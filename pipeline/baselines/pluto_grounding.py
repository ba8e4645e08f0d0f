"""Edit-and-Ground (PLUTo, Huang et al. 2024): rewrite descriptions that a retriever finds badly.

A language model writes up to five use cases of each tool. Where one of them ranks its own tool badly, the model
rewrites the description, which replaces the document if the mean reciprocal rank over the tool's use cases rises.
Every tool is judged against the others' original documents, old and new description by one index, so that no order
of the tools and no shift of term statistics decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.baselines.result import Failed
from pipeline.baselines.text_scores import TextScores, parts
from pipeline.llm.asking import ask_all, pending_count, total_usage, usage_of
from pipeline.llm.prompts import load_prompt
from pipeline.llm.records import Answer, Asker, Failure, Outcome, Question, Usage
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback

USE_CASES_PROMPT = "pluto_use_cases"
EDIT_PROMPT = "pluto_edit"

USE_CASES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"use_cases": {"type": "array", "items": {"type": "string"}}},
    "required": ["use_cases"],
    "additionalProperties": False,
}
EDIT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"description": {"type": "string"}},
    "required": ["description"],
    "additionalProperties": False,
}

#: Makes a retriever over documents.
Search: TypeAlias = Callable[[Sequence[str]], TextScores]
_Ranks: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GroundingSettings:
    """Settings of Edit-and-Ground.

    Attributes:
        use_cases: of a tool at most.
        poor_rank: a use case that ranks its tool below this place makes the tool's description be rewritten.
        rivals: tools found instead that are shown to the model.
        document_characters: longer documents are cut there before they are shown.
    """

    use_cases: int = 5
    poor_rank: int = 5
    rivals: int = 3
    document_characters: int = 6_000


@dataclass(frozen=True, eq=False)
class GroundedTools:
    """Tools as the plan's actions search them.

    Attributes:
        descriptions: the document, or the rewritten description where that is found better.
        use_cases: of each tool; none where the document is blank or the answer failed.
        edited: how many descriptions were replaced.
        failures: what the model gave no valid answer for.
        questions: how many questions were asked.
        pending: distinct questions that wait for a batch's answers; the rest is final only when it is 0.
        usage: of the answers.
    """

    descriptions: list[str]
    use_cases: list[tuple[str, ...]]
    edited: int
    failures: tuple[Failed, ...]
    questions: int
    pending: int
    usage: Usage


def ground(
    documents: Sequence[str],
    names: Sequence[str],
    search: Search,
    asker: Asker,
    llm: str,
    settings: GroundingSettings = GroundingSettings(),
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> GroundedTools:
    """Write use cases, find the tools that are found badly and rewrite their descriptions.

    Args:
        documents: verbatim documentation in byte order of the tool ids.
        names: what to call each in the record of failures, as tool ids.
        search: makes a retriever over documents.
        asker: who answers.
        llm: the language model, ``provider/model``.
        settings: limits.
        progress: stages ``use cases`` and ``edits``, in questions.
        cancelled: see ``ask_all``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the model cannot be asked at all.
    """
    descriptions, use_cases = list(documents), [()] * len(documents)  # type: list[str], list[tuple[str, ...]]
    filled = [i for i, document in enumerate(documents) if document.strip()]
    asked = [_use_case_question(documents[i], llm, settings) for i in filled]
    first = ask_all(asker, asked, stage="use cases", check=_check_use_cases, progress=progress, cancelled=cancelled)
    for i, outcome in zip(filled, first, strict=True):
        if isinstance(outcome, Answer):
            use_cases[i] = tuple(_lines(outcome.value["use_cases"])[: settings.use_cases])
    failures = _failures(filled, first, names, "writing use cases", "it is searched by its description alone")
    if pending_count(first):
        return _grounded(descriptions, use_cases, 0, failures, first)

    owners = np.array([i for i, texts in enumerate(use_cases) for _ in texts], dtype=np.int64)
    texts = [text for found in use_cases for text in found]
    instead = _found_instead(search(documents), texts, owners, settings) if texts else {}
    badly: dict[int, list[int]] = {}
    for row in instead:
        badly.setdefault(int(owners[row]), []).append(row)
    poor = sorted(badly)
    asked = []
    for i in poor:
        rivals = list(dict.fromkeys(rival for row in badly[i] for rival in instead[row]))[: settings.rivals]
        shown = [documents[rival][: settings.document_characters // 6] for rival in rivals]
        asked.append(_edit_question(documents[i], [texts[row] for row in badly[i]], shown, llm, settings))
    second = ask_all(asker, asked, stage="edits", check=_check_edit, progress=progress, cancelled=cancelled)
    outcomes: list[Outcome] = [*first, *second]
    failures += _failures(poor, second, names, "rewriting the description", "its documentation stays")
    proposals = {
        i: " ".join(str(outcome.value["description"]).split())
        for i, outcome in zip(poor, second, strict=True)
        if isinstance(outcome, Answer)
    }
    better = _better(documents, proposals, texts, owners, search) if proposals and not pending_count(second) else []
    for i in better:
        descriptions[i] = proposals[i]
    return _grounded(descriptions, use_cases, len(better), failures, outcomes)


def _grounded(
    descriptions: list[str],
    use_cases: list[tuple[str, ...]],
    edited: int,
    failures: list[Failed],
    outcomes: list[Outcome],
) -> GroundedTools:
    usage = total_usage(usage_of(outcome) for outcome in outcomes)
    waiting = pending_count(outcomes)
    return GroundedTools(descriptions, use_cases, edited, tuple(failures), len(outcomes), waiting, usage)


def _found_instead(
    scorer: TextScores, texts: Sequence[str], owners: _Ranks, settings: GroundingSettings
) -> dict[int, list[int]]:
    """For each text that ranks its own tool poorly (by the ranking rule) the tools that score higher, best first."""
    instead: dict[int, list[int]] = {}
    for part in parts(len(texts), len(scorer)):
        scores = scorer.scores(texts[part])
        for line in np.flatnonzero(_rank_of(scores, owners[part]) > settings.poor_rank).tolist():
            # Ascending and stable, read backwards: score descending, then position descending.
            order = np.argsort(scores[line], kind="stable")[::-1]
            above = np.count_nonzero(scores[line] > scores[line, owners[part.start + line]])
            instead[part.start + line] = order[: min(settings.rivals, int(above))].tolist()
    return instead


def _rank_of(scores: npt.NDArray[np.float32], owners: _Ranks) -> _Ranks:
    own = scores[np.arange(len(owners)), owners][:, None]
    later = np.arange(scores.shape[1])[None, :] > owners[:, None]
    ranks: _Ranks = 1 + np.count_nonzero((scores > own) | ((scores == own) & later), axis=1)
    return ranks


def _better(
    documents: Sequence[str], proposals: Mapping[int, str], texts: Sequence[str], owners: _Ranks, search: Search
) -> list[int]:
    """The tools whose mean reciprocal rank over their use cases rises with the proposed description."""
    scorer = search([*documents, *proposals.values()])
    place = {i: len(documents) + number for number, i in enumerate(proposals)}
    rows = np.flatnonzero(np.isin(owners, list(proposals)))
    gains = dict.fromkeys(proposals, 0.0)
    for part in parts(len(rows), len(scorer)):
        chosen = rows[part]
        scores = scorer.scores([texts[row] for row in chosen])
        old = scores[:, : len(documents)]
        new = old.copy()
        for line, row in enumerate(chosen):
            new[line, owners[row]] = scores[line, place[int(owners[row])]]
        change = _reciprocal(new, owners[chosen]) - _reciprocal(old, owners[chosen])
        for row, gain in zip(chosen, change.tolist(), strict=True):
            gains[int(owners[row])] += gain
    return [i for i, gain in gains.items() if gain > 1e-12]


def _reciprocal(scores: npt.NDArray[np.float32], owners: _Ranks) -> npt.NDArray[np.float64]:
    """1 / rank of each row's own tool."""
    return 1.0 / _rank_of(scores, owners)


def _failures(
    places: Sequence[int], outcomes: Sequence[Outcome], names: Sequence[str], what: str, instead: str
) -> list[Failed]:
    return [
        Failed(names[i], what, outcome.reason, instead)
        for i, outcome in zip(places, outcomes, strict=True)
        if isinstance(outcome, Failure)
    ]


def _use_case_question(document: str, llm: str, settings: GroundingSettings) -> Question:
    prompt = load_prompt(USE_CASES_PROMPT)
    messages = prompt.messages(documentation=document[: settings.document_characters], count=str(settings.use_cases))
    return Question(llm, prompt.reference, messages, USE_CASES_SCHEMA, "pluto_use_cases", "pluto")


def _edit_question(
    document: str, requests: Sequence[str], rivals: Sequence[str], llm: str, settings: GroundingSettings
) -> Question:
    prompt = load_prompt(EDIT_PROMPT)
    messages = prompt.messages(
        documentation=document[: settings.document_characters],
        requests="\n".join(f"- {text}" for text in requests),
        found_instead="\n\n".join(rivals) or "(none)",
    )
    return Question(llm, prompt.reference, messages, EDIT_SCHEMA, "pluto_edit", "pluto")


def _lines(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(line for text in texts if (line := " ".join(text.split()))))


def _check_use_cases(question: Question, value: Mapping[str, Any]) -> str | None:
    return None if _lines(value["use_cases"]) else "no use case is written"


def _check_edit(question: Question, value: Mapping[str, Any]) -> str | None:
    return None if str(value["description"]).strip() else "the description is blank"
