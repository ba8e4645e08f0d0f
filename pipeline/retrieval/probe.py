"""A short look at a model before a job is queued: it loads, and gives finite, repeatable, distinct embeddings."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from pipeline.errors import ModelError
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.encoder import OutOfMemory, shared_encoder
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.registry import Source

_TEXTS = (
    "Convert an amount from one currency to another at today's rate.",
    "What is the weather going to be in Lisbon tomorrow afternoon?",
    '{"name": "send_email", "parameters": {"to": {"type": "string"}, "subject": {"type": "string"}}}',
)
#: Cosine of two answers to one text; endpoints may differ in the last bits.
_REPEATABLE = 0.9999


@dataclass(frozen=True)
class Probe:
    """What was found.

    Attributes:
        dimension: length of an embedding; None for BM25.
        device: where it computes.
        load_seconds: until the first answer.
        text_ms: milliseconds a text, in one small batch.
        notes: what is worth knowing, in sentences.
    """

    dimension: int | None
    device: str
    load_seconds: float
    text_ms: float
    notes: tuple[str, ...]


def probe_model(spec: ModelSpec, preset: Preset | str = Preset.CARD) -> Probe:
    """Load the model and encode three texts twice.

    Raises:
        ModelError: it cannot be loaded, or its answers cannot be used: NaN, zeros, another dimension than the registry
            says, different for the same text, or equal for different ones.
    """
    notes: tuple[str, ...] = (spec.entry.notes,) if spec.entry.notes else ()
    contract = spec.contract(preset)
    if not spec.entry.dense:
        return Probe(None, "cpu", 0.0, 0.0, notes)
    start = time.perf_counter()
    encoder = shared_encoder(spec, contract)
    loaded = time.perf_counter()
    texts = [contract.document(text) for text in _TEXTS]
    try:
        once = encoder.encode(texts)
        between = time.perf_counter()
        again = encoder.encode(texts)
        end = time.perf_counter()
    except OutOfMemory as error:
        raise ModelError(f"{spec.entry.name} does not fit into the memory of {encoder.device}.") from error
    dimension = once.shape[1]
    if spec.entry.dimension is not None and dimension != spec.entry.dimension:
        raise ModelError(
            f"{spec.entry.name} gives {dimension} dimensions, but {spec.entry.dimension} are expected of it."
        )
    if again.shape != once.shape:
        raise ModelError(f"{spec.entry.name} gave {dimension} dimensions first and {again.shape[1]} then.")
    unit, unit_again = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (once.astype(np.float64), again))
    agreement = float((unit * unit_again).sum(axis=1).min())
    if agreement < _REPEATABLE:
        raise ModelError(
            f"{spec.entry.name} is not deterministic: two answers to the same text have cosine {agreement:.4f}."
        )
    if not np.array_equal(once, again):
        notes += ("Two answers to the same text differ in the last digits.",)
    likeness = unit @ unit.T
    if likeness[np.triu_indices(len(_TEXTS), 1)].min() > 1 - 1e-6:
        raise ModelError(f"{spec.entry.name} gives the same embedding for different texts.")
    if spec.entry.source is Source.HUB and not spec.entry.pinned:
        notes += ("No commit is pinned: the weights may change under this name.",)
    return Probe(dimension, encoder.device, loaded - start, 1000 * (end - between) / len(texts), notes)
