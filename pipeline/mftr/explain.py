"""Why a tool has its rank: its score in every field, its parameters and what they are charged (MFTR, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipeline.mftr.field_kernels import missing_share
from pipeline.mftr.field_scores import FieldScorer, field_scores
from pipeline.mftr.learned_parameters import LearnedFolds, weight_shares
from pipeline.mftr.schema import Field
from pipeline.mftr.search import combine
from pipeline.mftr.settings import AbsentField, FieldScale, MftrSettings, Penalty
from pipeline.retrieval.rankings import Rankings


@dataclass(frozen=True)
class FieldMatch:
    """One field of a tool against one query.

    Attributes:
        field: which.
        query_text: the need that fits best; "" for the parameters, and where one side has no text.
        tool_text: the tool's text that it fits.
        score: S_f as the retriever gives it.
        scaled: S_f as it is weighed.
        rank: of the tool by this field alone, over the full corpus; ties by tool id bytes descending. None where
            nothing matches, so that the place among equals would be that of the id.
        weight: w_f; 0 for a field that does not count.
        share: w_f / Σ w_f; None when a weight is negative or all are 0.
    """

    field: Field
    query_text: str
    tool_text: str
    score: float
    scaled: float
    rank: int | None
    weight: float
    share: float | None


@dataclass(frozen=True)
class ParameterMatch:
    """One parameter of a tool against one query.

    Attributes:
        name: of the parameter.
        required: whether it is required.
        argument: the argument that fits best, as ``name: description``; "" when none fits at all.
        score: s_p as it is compared with τ.
        missing: how far it counts as missing, 0 to 1; 0 where nothing is charged.
        penalty: L(p), what it takes off the score.
    """

    name: str
    required: bool
    argument: str
    score: float
    missing: float
    penalty: float


@dataclass(frozen=True)
class Explanation:
    """One tool for one query.

    Attributes:
        query_id: the query.
        tool_id: the tool.
        fold: whose parameters apply.
        fields: in the order of ``Field``.
        parameters: in document order.
        bias: b.
        tau: τ.
        penalty: P, the sum over the parameters.
        score: Σ w_f S_f + b − P.
        rank: by that score, over the full corpus.
        tools: size of the corpus.
        full_doc_rank: where Full-Doc ranks the tool; None when it is not in that list, or no list was given.
    """

    query_id: str
    tool_id: str
    fold: int
    fields: tuple[FieldMatch, ...]
    parameters: tuple[ParameterMatch, ...]
    bias: float
    tau: float
    penalty: float
    score: float
    rank: int
    tools: int
    full_doc_rank: int | None = None


def explain(
    scorer: FieldScorer,
    settings: MftrSettings,
    learned: LearnedFolds,
    query: int,
    tool: int,
    full_doc: Rankings | None = None,
) -> Explanation:
    """Explain one tool's rank for one query.

    Args:
        scorer: corpus, queries and φ.
        settings: how to score.
        learned: as for ``search``.
        query: its position.
        tool: its position.
        full_doc: Full-Doc's rankings of the same queries.
    """
    scores = field_scores(scorer, settings, query, query + 1)
    # Every field as the retriever gives it, those that do not count included.
    plain = replace(
        settings,
        fields=tuple(Field),
        absent_field=AbsentField.ZERO,
        field_scale=FieldScale.RAW,
        scaled_lexical_parameters=False,
    )
    raw = field_scores(scorer, plain, query, query + 1)
    fold = learned.folds[int(learned.fold_of[query])]
    shares = weight_shares(fold.weights)
    fields = []
    for place, field in enumerate(Field):
        counts = field in settings.fields
        query_text, tool_text = ("", "") if field is Field.PARAMETERS else _best_texts(scorer, field, query, tool)
        by = scores.fields[0, place] if counts else raw.fields[0, place]
        fields.append(
            FieldMatch(
                field,
                query_text,
                tool_text,
                float(raw.fields[0, place, tool]),
                float(by[tool]),
                rank_of(by, tool) if raw.fields[0, place, tool] else None,
                fold.weights[place] if counts else 0.0,
                None if shares is None else shares[place],
            )
        )
    sign = -1.0 if settings.penalty is Penalty.PRINTED_SIGN else 1.0
    arguments = scorer.queries[Field.PARAMETERS]
    words = [arguments.texts[i] for i in arguments.places[arguments.offsets[query] : arguments.offsets[query + 1]]]
    held = scorer.tools[Field.PARAMETERS]
    columns = scorer.places(Field.PARAMETERS)[held.offsets[tool] : held.offsets[tool + 1]]
    fits = scorer.text_scores(Field.PARAMETERS, query)[:, columns]
    parameters = []
    for i, parameter in enumerate(scorer.tools.tools[tool].parameters):
        score = float((scores if scores.parameters.size else raw).parameters[0, columns[i]])
        missing = float(missing_share(score, fold.tau, fold.alpha, sign)) if scores.charged[0] else 0.0
        best = int(np.argmax(fits[:, i])) if len(words) else -1
        parameters.append(
            ParameterMatch(
                parameter.name,
                parameter.required,
                words[best] if best >= 0 and fits[best, i] > 0 else "",
                score,
                missing,
                missing * (fold.required if parameter.required else fold.optional),
            )
        )
    totals = combine(scorer, settings, learned, scores)[0]
    return Explanation(
        scorer.queries.queries[query].query_id,
        scorer.tools.tools[tool].tool_id,
        int(learned.fold_of[query]),
        tuple(fields),
        tuple(parameters),
        fold.bias,
        fold.tau,
        sum(parameter.penalty for parameter in parameters),
        float(totals[tool]),
        rank_of(totals, tool),
        len(scorer.tools),
        None if full_doc is None else _listed(full_doc, query, tool),
    )


def rank_of(scores: npt.NDArray[np.float32], tool: int) -> int:
    """The 1-based rank of a tool by the ranking rule: score descending, ties by position descending."""
    ahead = np.count_nonzero(scores > scores[tool]) + np.count_nonzero(scores[tool + 1 :] == scores[tool])
    return int(ahead) + 1


def _listed(rankings: Rankings, query: int, tool: int) -> int | None:
    found = np.flatnonzero(rankings.tools[query, : rankings.counts[query]] == tool)
    return int(found[0]) + 1 if len(found) else None


def _best_texts(scorer: FieldScorer, field: Field, query: int, tool: int) -> tuple[str, str]:
    """The need and the tool's text that give S_f."""
    needs, texts = scorer.queries[field], scorer.tools[field]
    span = slice(int(texts.offsets[tool]), int(texts.offsets[tool + 1]))
    scores = scorer.text_scores(field, query)[:, scorer.places(field)[span]]
    if not scores.size:
        return "", ""
    need, text = np.unravel_index(int(np.argmax(scores)), scores.shape)
    return (
        needs.texts[needs.places[needs.offsets[query] + need]],
        texts.texts[texts.places[span.start + int(text)]],
    )
