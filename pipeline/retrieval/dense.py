"""Encode many texts: deduplicated, in length-sorted batches, through the cache, with progress and a way to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.errors import ModelError
from pipeline.retrieval.contract import Contract, PromptedText
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.encoder import Encoder, OutOfMemory, shared_encoder
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback, Stage

FloatArray = npt.NDArray[np.float32]

#: Texts of one batch at most, on any device.
BATCH_TEXTS = 64
#: Characters of a token, on the safe side for English and JSON.
_CHARACTERS = 3.0


@dataclass(frozen=True, eq=False)
class Encoded:
    """Embeddings of some texts.

    Attributes:
        embeddings: float32 (texts, dimension), in the order of the texts.
        new: distinct texts that were encoded now; the others came from the cache.
        distinct: distinct texts in all.
        seconds: what encoding the distinct texts took, now or when they entered the cache.
        devices: where that was.
    """

    embeddings: FloatArray
    new: int
    distinct: int
    seconds: float
    devices: tuple[str, ...]


def batches(texts: Sequence[PromptedText], contract: Contract, batch_tokens: int) -> list[list[int]]:
    """Split texts into batches of similar length, the longest first; the same texts always give the same batches.

    Each batch holds about ``batch_tokens`` tokens, padding included, and at most 64 texts.

    Returns:
        Positions in ``texts``.
    """
    tokens = [_tokens(text, contract) for text in texts]
    order = sorted(range(len(texts)), key=lambda i: (-tokens[i], -len(texts[i].whole), texts[i].whole))
    found: list[list[int]] = []
    for i in order:
        if found and len(found[-1]) < min(BATCH_TEXTS, max(1, batch_tokens // tokens[found[-1][0]])):
            found[-1].append(i)
        else:
            found.append([i])
    return found


def _tokens(text: PromptedText, contract: Contract) -> int:
    estimate = int((len(text.prompt) + len(text.text)) / _CHARACTERS) + 2
    return min(estimate, contract.max_tokens or estimate)


def distinct_texts(texts: Sequence[PromptedText], contract: Contract) -> list[PromptedText]:
    """The texts without repeats, longest first: shards are slices of this list, so that they hold similar lengths."""
    unique = {contract.key(text): text for text in texts}
    return sorted(unique.values(), key=lambda text: (-_tokens(text, contract), -len(text.whole), text.whole))


def encode_texts(
    texts: Sequence[PromptedText],
    contract: Contract,
    encoder: Callable[[], Encoder],
    cache: EmbeddingCache | None = None,
    *,
    stage: str = "documents",
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Encoded:
    """Embeddings of ``texts``; the model is loaded only when the cache lacks one of them.

    Every finished batch is in the cache before the next one starts: after a stop, an error or ``kill -9`` the same
    call goes on where it was, with the same batches, and ends with the same embeddings.

    Args:
        texts: as ``Contract.query`` and ``Contract.document`` format them.
        contract: the contract they were formatted by.
        encoder: loads the model, as ``lambda: shared_encoder(spec, contract)``.
        cache: None keeps nothing.
        stage: the name that progress is reported under, in texts.
        progress: see ``Progress``.
        cancelled: asked after every batch.

    Raises:
        Cancelled: on request.
        ModelError: the model cannot be loaded or used, or a single text does not fit into memory.
    """
    keys = [contract.key(text) for text in texts]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    places = sorted(first.values())
    unique, unique_keys = [texts[i] for i in places], [keys[i] for i in places]
    row_of = {key: row for row, key in enumerate(unique_keys)}
    held = cache.look_up(contract.space, unique_keys) if cache is not None else None
    found = held.found if held is not None else np.zeros(len(unique), dtype=np.bool_)
    rows = held.embeddings if held is not None else None
    devices = set(held.devices) if held is not None else set()
    seconds = float(held.seconds.sum()) if held is not None else 0.0
    missing = int(np.count_nonzero(~found))
    if missing:
        counter = Stage(
            stage,
            len(unique),
            progress,
            cancelled,
            done=len(unique) - missing,
            work=float(
                sum(_tokens(text, contract) for text, there in zip(unique, found.tolist(), strict=True) if not there)
            ),
        )
        model = encoder()
        todo = [[i for i in batch if not found[i]] for batch in batches(unique, contract, model.batch_tokens)]
        fresh, cost = _encode(unique, unique_keys, [b for b in todo if b], contract, model, cache, counter)
        if rows is None:
            rows = np.zeros((len(unique), fresh.shape[1]), dtype=np.float32)
        elif rows.shape[1] != fresh.shape[1]:
            raise ModelError(
                f"{contract.model} gives {fresh.shape[1]} dimensions now but gave {rows.shape[1]} for the texts in the "
                "cache; what answers under this name has changed. Clear the embedding cache of this model."
            )
        rows[~found] = fresh
        seconds += cost
        devices.add(model.device)
    else:
        Stage(stage, len(unique), progress, cancelled, done=len(unique))
    if rows is None:
        rows = np.zeros((0, 1), dtype=np.float32)
    if len(unique) < len(texts):
        rows = rows[[row_of[key] for key in keys]]
    return Encoded(rows, missing, len(unique), seconds, tuple(sorted(devices)))


def encode_both(
    documents: Sequence[PromptedText],
    queries: Sequence[PromptedText],
    model: ModelSpec,
    contract: Contract,
    cache: EmbeddingCache | None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> tuple[Encoded, Encoded]:
    """Embeddings of documents and queries, under the stages of these names; raises as ``encode_texts``."""

    def encode(stage: str, texts: Sequence[PromptedText]) -> Encoded:
        return encode_texts(
            texts,
            contract,
            lambda: shared_encoder(model, contract),
            cache,
            stage=stage,
            progress=progress,
            cancelled=cancelled,
        )

    return encode("documents", documents), encode("queries", queries)


def _encode(
    texts: Sequence[PromptedText],
    keys: Sequence[bytes],
    todo: list[list[int]],
    contract: Contract,
    model: Encoder,
    cache: EmbeddingCache | None,
    counter: Stage,
) -> tuple[FloatArray, float]:
    """Encode the batches; (embeddings in the order of the texts' positions, seconds)."""
    order = np.array(sorted(i for batch in todo for i in batch), dtype=np.int64)
    out: FloatArray | None = None
    total, pieces = 0.0, 1
    with cache.writer(contract.space, len(order), model.device) if cache is not None else nullcontext() as writer:
        for batch in todo:
            start = time.perf_counter()
            vectors, pieces = _batch(texts, batch, model, pieces)
            seconds = time.perf_counter() - start
            total += seconds
            if writer is not None:
                writer.add([keys[i] for i in batch], vectors, seconds)
            if out is None:
                out = np.zeros((len(order), vectors.shape[1]), dtype=np.float32)
            out[np.searchsorted(order, batch)] = vectors
            counter.advance(len(batch), float(sum(_tokens(texts[i], contract) for i in batch)))
    assert out is not None
    return out, total


def _batch(texts: Sequence[PromptedText], batch: Sequence[int], model: Encoder, pieces: int) -> tuple[FloatArray, int]:
    """Encode one batch in ``pieces`` parts, in more when memory runs out; (embeddings, parts needed)."""
    while True:
        step = max(1, -(-len(batch) // pieces))
        try:
            parts = [model.encode([texts[i] for i in batch[s : s + step]]) for s in range(0, len(batch), step)]
            return np.concatenate(parts), pieces
        except OutOfMemory as error:
            if step == 1:
                longest = max(len(texts[i].whole) for i in batch)
                raise ModelError(
                    f"Out of memory on {model.device}: not even one text of {longest:,} characters fits. Use a smaller "
                    "model, a machine with more memory, or a preset with fewer tokens."
                ) from error
            pieces *= 2
