"""How well a query fits a tool in each of the four fields (MFTR §3.4.1–3.4.2).

S_f(q, t) is the maximum of φ over the query's needs and the tool's texts of the field; for the parameters the mean of
s_p = max(0, max over the query's arguments of φ). Queries are scored in chunks: what is in memory is queries of a
chunk × distinct texts and queries of a chunk × tools, never queries × tools × parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.mftr.field_kernels import scale_tools, standardise_texts, tool_maximum, tool_mean
from pipeline.mftr.fields import FieldTexts, QueryFields, ToolFields
from pipeline.mftr.schema import Field
from pipeline.mftr.settings import AbsentField, EmptyArguments, FieldScale, MftrSettings

FloatArray = npt.NDArray[np.float32]
#: Numbers of one chunk: 16 M float32 are 64 MB.
_NUMBERS = 1 << 24
_QUERIES = 256


class FieldScorer(Protocol):
    """φ of one retriever between the texts of queries and tools.

    Attributes:
        tools: the corpus.
        queries: what is searched for.
        lexical: whether scores are BM25's, on no fixed scale.
    """

    tools: ToolFields
    queries: QueryFields
    lexical: bool

    def texts(self, field: Field) -> int:
        """Columns of ``best``: tool texts that are scored one by one."""

    def places(self, field: Field) -> npt.NDArray[np.int32]:
        """The column of each occurrence of a text, in the order of ``tools[field].places``; int32 (occurrences,)."""

    def best(self, field: Field, start: int, end: int) -> FloatArray:
        """The maximum of φ over a query's texts of the field.

        Returns:
            float32 (end − start, texts), a new array; 0 for a query without texts of the field.
        """

    def text_scores(self, field: Field, query: int) -> FloatArray:
        """φ of each of one query's texts of the field; float32 (query's texts, texts)."""


@dataclass(frozen=True, eq=False)
class FieldScores:
    """Scores of some consecutive queries.

    Attributes:
        start: position of the first query.
        fields: float32 (queries, 4, tools), S_f in the order of ``Field``.
        parameters: float32 (queries, parameter texts), s_p.
        charged: bool (queries,), whether missing parameters are charged.
    """

    start: int
    fields: FloatArray
    parameters: FloatArray
    charged: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.charged)


def field_scores(scorer: FieldScorer, settings: MftrSettings, start: int, end: int) -> FieldScores:
    """The scores of queries ``start`` to ``end`` over the full corpus, scaled as the settings say.

    Fields that the settings leave out are 0.
    """
    rows, tools = end - start, scorer.tools
    fields = np.zeros((rows, len(Field), len(tools)), dtype=np.float32)
    given = np.diff(scorer.queries[Field.PARAMETERS].offsets)[start:end] > 0
    charged = np.full(rows, settings.penalised)
    if settings.empty_arguments is EmptyArguments.NO_PENALTY:
        charged &= given
    parameters = np.zeros((rows, 0), dtype=np.float32)
    for place, field in enumerate(Field):
        texts, columns, out = tools[field], scorer.places(field), np.empty((rows, len(tools)), dtype=np.float32)
        if field is Field.PARAMETERS:
            if field not in settings.fields and not settings.penalised:
                continue
            parameters = scorer.best(field, start, end)
            np.maximum(parameters, 0, out=parameters)
            if scorer.lexical and settings.scaled_lexical_parameters:
                standardise_texts(parameters, np.bincount(columns, minlength=parameters.shape[1]))
            if field in settings.fields:
                tool_mean(parameters, columns, texts.offsets, out)
        elif field in settings.fields:
            tool_maximum(scorer.best(field, start, end), columns, texts.offsets, out)
        if field in settings.fields:
            _scale(out, texts, settings)
            fields[:, place] = out
    return FieldScores(start, fields, parameters, charged)


def _scale(scores: FloatArray, texts: FieldTexts, settings: MftrSettings) -> None:
    impute = settings.absent_field is AbsentField.CORPUS_MEAN
    standardise = settings.field_scale is FieldScale.Z_SCORE
    if impute or standardise:
        scale_tools(scores, texts.filled, impute, standardise)


def chunks(scorer: FieldScorer) -> Iterator[tuple[int, int]]:
    """(start, end) of consecutive queries whose scores fit into a few times 64 MB."""
    width = len(Field) * len(scorer.tools) + max(scorer.texts(field) for field in Field)
    step = max(1, min(_QUERIES, _NUMBERS // max(width, 1)))
    for start in range(0, len(scorer.queries), step):
        yield start, min(start + step, len(scorer.queries))
