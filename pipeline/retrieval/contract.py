"""The encoding contract: everything that decides which vector or term list a text becomes.

Two runs of one model may be compared only when their contracts agree; ``Contract.hash`` says whether they do.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property


class Preset(StrEnum):
    """Whose way of encoding is followed: the model card's, or that of the papers' harness."""

    CARD = "card"
    PAPER = "paper"


class Pooling(StrEnum):
    """How token vectors become one vector; ``model`` leaves it to the repository's own modules."""

    MEAN = "mean"
    CLS = "cls"
    LAST_TOKEN = "lasttoken"
    MODEL = "model"


class Similarity(StrEnum):
    """What the inner product of two embeddings means."""

    COSINE = "cosine"
    DOT = "dot"


class Dtype(StrEnum):
    """The number format a model computes in; embeddings are kept as float32."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True)
class PromptedText:
    """A text as the model reads it.

    Attributes:
        prompt: what precedes the text (prefix and instruction).
        text: the rest.
    """

    prompt: str
    text: str

    @property
    def whole(self) -> str:
        """Prompt and text together."""
        return self.prompt + self.text


@dataclass(frozen=True)
class Contract:
    """How one model encodes, with every choice made.

    Attributes:
        model: hub id, folder hash or endpoint name: what the revision is a revision of.
        revision: commit of the weights, or another fingerprint of them.
        query_format: holds ``{query}`` once and ``{instruction}`` at most once, before it.
        bare_query_format: for queries without an instruction; equal to ``query_format`` unless that has one.
        document_format: holds ``{document}`` once.
        pooling: None for a lexical model.
        normalise: whether embeddings have length 1.
        dtype: None where it does not apply (lexical models, endpoints).
        max_tokens: longer texts are cut; None leaves it to the repository's own settings.
        prompt_pooled: whether the prompt's tokens take part in pooling.
        lexical: the analyser and weighting of a lexical model, in one line; "" for dense ones.
    """

    model: str
    revision: str
    query_format: str
    bare_query_format: str
    document_format: str
    pooling: Pooling | None = None
    normalise: bool = False
    similarity: Similarity | None = None
    dtype: Dtype | None = None
    max_tokens: int | None = None
    prompt_pooled: bool = True
    lexical: str = ""

    @cached_property
    def hash(self) -> str:
        """sha256 hex over every attribute: equal exactly when the contracts are."""
        return _digest("equirank contract 1", asdict(self))

    @cached_property
    def space(self) -> str:
        """sha256 hex over what acts on a formatted text: contracts that differ only in formats share embeddings."""
        values = asdict(self)
        for key in ("query_format", "bare_query_format", "document_format"):
            del values[key]
        return _digest("equirank embedding space 1", values)

    def query(self, text: str, instruction: str = "") -> PromptedText:
        """A query as the model reads it; ``instruction`` is used only where the format has a place for it."""
        before, _, after = (self.query_format if instruction else self.bare_query_format).partition("{query}")
        return PromptedText(before.replace("{instruction}", instruction), text + after)

    def document(self, text: str) -> PromptedText:
        """A document as the model reads it."""
        before, _, after = self.document_format.partition("{document}")
        return PromptedText(before, text + after)

    def key(self, text: PromptedText) -> bytes:
        """sha256 of a formatted text (32 bytes); with the prompt told apart where pooling does."""
        separator = "" if self.prompt_pooled else "\0"
        return hashlib.sha256(f"{text.prompt}{separator}{text.text}".encode()).digest()


def _digest(what: str, values: dict[str, object]) -> str:
    return hashlib.sha256(f"{what}\n{json.dumps(values, sort_keys=True)}".encode()).hexdigest()
