"""The retriever registry: every known retriever with its encoding contract, from ``registry.toml``, checked at load."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from rapidfuzz import process

from pipeline.errors import ModelError
from pipeline.formats.messages import listing, quote
from pipeline.retrieval.contract import Dtype, Pooling, Preset, Similarity

REGISTRY_FILE = Path(__file__).with_name("registry.toml")
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
#: Revision of a retriever whose commit nobody has recorded; refused unless the operator allows it.
UNPINNED = "unpinned"

_Key = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Source(StrEnum):
    """Where a retriever comes from."""

    BM25 = "bm25"
    PACKAGE = "package"
    HUB = "hub"
    FOLDER = "folder"
    ENDPOINT = "endpoint"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Encoding(_Record):
    """How one preset encodes.

    Attributes:
        query: format of a query without an instruction.
        query_with_instruction: format of a query with one.
        document: format of a document.
        normalise: whether embeddings get length 1; cosine needs it.
        max_tokens: None leaves it to the repository.
        prompt_pooled: whether the query's and document's prefix takes part in pooling.
    """

    query: str = "{query}"
    query_with_instruction: str = "{instruction} {query}"
    document: str = "{document}"
    pooling: Pooling | None = None
    normalise: bool = True
    similarity: Similarity = Similarity.COSINE
    dtype: Dtype = Dtype.FLOAT32
    max_tokens: int | None = Field(default=None, ge=8)
    prompt_pooled: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.similarity is Similarity.COSINE and not self.normalise:
            raise ValueError("similarity is cosine, so normalise must be true")
        for name in ("query", "query_with_instruction", "document"):
            text, place = getattr(self, name), "{document}" if name == "document" else "{query}"
            if text.count(place) != 1:
                raise ValueError(f"{name} must hold {place} exactly once")
        before, _, after = self.query_with_instruction.partition("{query}")
        if before.count("{instruction}") != 1 or "{instruction}" in after or "{instruction}" in self.query:
            raise ValueError("query_with_instruction must hold {instruction} once, before {query}, and query must not")
        return self


class RetrieverEntry(_Record):
    """One retriever.

    Attributes:
        key: unique; what ``--model`` takes.
        aliases: other names, compared without case.
        source: where it comes from.
        hf_id: ``owner/name`` on the Hugging Face hub.
        revision: full commit, ``unpinned``, or for models outside the hub a fingerprint of their content.
        code_revision: commit of the repository that remote code comes from, where that is another one.
        package: Python package whose folder ``model`` holds the weights.
        folder: local folder (``source = "folder"``).
        weights_sha256: file → sha256, checked at load.
        parameters: number of weights.
        dimension: length of an embedding.
        remote_code: whether the repository's own code must run.
        pickle: whether the weights exist only as pickle files, which can run code when they are read.
        tokenizer: options for the tokenizer.
        base: key of the retriever it was fine-tuned from.
        card: the model card's way of encoding.
        paper: the papers' harness's way; equal to ``card`` where they do not differ.
        notes: pitfalls, in sentences.
    """

    key: _Key
    name: str
    aliases: tuple[str, ...] = ()
    source: Source
    hf_id: str = ""
    revision: str
    code_revision: str = ""
    package: str = ""
    folder: str = ""
    weights_sha256: Mapping[str, _Sha256] = Field(default_factory=dict)
    parameters: int | None = Field(default=None, ge=1)
    dimension: int | None = Field(default=None, ge=1)
    family: str = ""
    base: str = ""
    licence: str = ""
    remote_code: bool = False
    pickle: bool = False
    tokenizer: Mapping[str, Any] = Field(default_factory=dict)
    card: Encoding = Encoding()
    paper: Encoding = Encoding()
    notes: str = ""

    @field_validator("hf_id")
    @classmethod
    def _hub_id(cls, value: str) -> str:
        if value and not HUB_ID.fullmatch(value):
            raise ValueError(f"{quote(value)} is not a hub id (owner/name)")
        return value

    @field_validator("code_revision")
    @classmethod
    def _commit(cls, value: str) -> str:
        if value and not COMMIT.fullmatch(value):
            raise ValueError(f"{quote(value)} is not a full commit (40 hex digits)")
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        on_hub = self.source in (Source.HUB, Source.PACKAGE)
        if on_hub and self.revision != UNPINNED and not COMMIT.fullmatch(self.revision):
            raise ValueError(
                f'revision must be a full commit (40 hex digits) or "unpinned", found {quote(self.revision)}'
            )
        for source, names in _NEEDS.items():
            missing = [name for name in names if not getattr(self, name)]
            if self.source is source and missing:
                raise ValueError(f"source is {source}, so {listing(missing)} must be given")
        dense = self.source is not Source.BM25
        for preset in (self.card, self.paper):
            if dense and self.source is not Source.ENDPOINT and preset.pooling is None:
                raise ValueError("pooling must be given for a dense model")
        return self

    @property
    def pinned(self) -> bool:
        """Whether the same name always means the same weights."""
        return self.revision != UNPINNED

    @property
    def dense(self) -> bool:
        """Whether it embeds texts."""
        return self.source is not Source.BM25

    def encoding(self, preset: Preset) -> Encoding:
        """The preset's way of encoding."""
        return self.card if preset is Preset.CARD else self.paper


_NEEDS = {
    Source.HUB: ("hf_id",),
    Source.PACKAGE: ("hf_id", "package", "weights_sha256"),
    Source.FOLDER: ("folder",),
    Source.ENDPOINT: (),
    Source.BM25: (),
}


class Registry:
    """Retrievers by key, alias and hub id.

    Args:
        entries: with distinct names.

    Raises:
        ModelError: a name is taken twice, or a base is not there.
    """

    def __init__(self, entries: tuple[RetrieverEntry, ...], origin: str = "the registry") -> None:
        self.entries = entries
        self._by_name: dict[str, RetrieverEntry] = {}
        for entry in entries:
            for name in dict.fromkeys(n.casefold() for n in (entry.key, *entry.aliases, entry.hf_id) if n):
                other = self._by_name.setdefault(name, entry)
                if other is not entry:
                    raise ModelError(
                        f"{origin}: retriever {quote(entry.key)}, field aliases: {quote(name)} also names "
                        f"{quote(other.key)}"
                    )
        keys = {entry.key for entry in entries}
        for entry in entries:
            if entry.base and entry.base not in keys:
                raise ModelError(
                    f"{origin}: retriever {quote(entry.key)}, field base: there is no retriever {quote(entry.base)}"
                )

    def find(self, name: str) -> RetrieverEntry | None:
        """The retriever of this key, alias or hub id (letter case does not matter); None when there is none."""
        return self._by_name.get(name.casefold())

    def get(self, name: str) -> RetrieverEntry:
        """As ``find``.

        Raises:
            ModelError: there is none; the message gives the nearest names.
        """
        entry = self.find(name)
        if entry is None:
            raise ModelError(f"Unknown model {quote(name)}. {self.nearest(name)}")
        return entry

    def nearest(self, name: str) -> str:
        """A sentence with the keys whose names come nearest."""
        near = process.extract(name.casefold(), list(self._by_name), limit=8, score_cutoff=55)
        keys = list(dict.fromkeys(self._by_name[found[0]].key for found in near))[:3]
        if keys:
            return f"The nearest known are {listing(keys)}."
        return f"Known are {listing([entry.key for entry in self.entries], 40)}."


@cache
def default_registry() -> Registry:
    """The registry that comes with EquiRank."""
    return load_registry(REGISTRY_FILE)


def load_registry(*files: Path) -> Registry:
    """Read and check registry files; what a later one adds stands beside the earlier ones.

    Raises:
        ModelError: a file cannot be read or an entry is wrong; the message names the file, the entry and the field.
    """
    entries: list[RetrieverEntry] = []
    for file in files:
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ModelError(f"The registry {file} cannot be read: {error}") from error
        rows = content.get("retriever")
        if not isinstance(rows, list) or content.keys() != {"retriever"}:
            raise ModelError(f"The registry {file} must hold [[retriever]] tables and nothing else.")
        entries += [_entry(row, place, file.name) for place, row in enumerate(rows, start=1)]
    return Registry(tuple(entries), ", ".join(file.name for file in files))


def _entry(row: Any, place: int, origin: str) -> RetrieverEntry:
    name = quote(str(row["key"])) if isinstance(row, dict) and "key" in row else f"number {place}"
    try:
        if isinstance(row, dict) and isinstance(row.get("card", {}), dict) and isinstance(row.get("paper", {}), dict):
            row = {**row, "paper": {**row.get("card", {}), **row.get("paper", {})}}
        return RetrieverEntry.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "as a whole"
        reason = first["msg"].removeprefix("Value error, ")
        raise ModelError(f"{origin}: retriever {name}, field {where}: {reason}") from error
