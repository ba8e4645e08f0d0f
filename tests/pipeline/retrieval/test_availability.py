"""What a retriever needs is said before a job is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.retrieval.availability import Need, all_availabilities, availability
from pipeline.retrieval.models import Permissions
from pipeline.retrieval.registry import default_registry


@pytest.fixture(autouse=True)
def _empty_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))


def needs(key: str, permissions: Permissions | None = None, *, gpu: bool = False) -> list[Need]:
    return list(availability(default_registry().get(key), permissions or Permissions(), gpu=gpu).needs)


def test_what_comes_with_the_program_works() -> None:
    for key in ("bm25s", "minilm-l6"):
        assert needs(key) == []
    first, second, *rest = all_availabilities(Permissions(), gpu=False)
    assert {first.entry.key, second.entry.key} == {"bm25s", "minilm-l6"}
    assert first.words == "works here" and all(item.needs for item in rest)


def test_needs_are_named_and_refusals_explained() -> None:
    assert needs("bge-large") == [Need.HUB]
    assert needs("qwen3-emb-8b") == [Need.HUB, Need.GPU]
    assert needs("qwen3-emb-8b", gpu=True) == [Need.HUB]
    assert needs("nv-embed-v1") == [Need.REMOTE_CODE, Need.HUB, Need.GPU]
    assert needs("nv-embed-v1", Permissions(remote_code=True)) == [Need.HUB, Need.GPU]
    assert needs("contriever") == [Need.PICKLE, Need.HUB]
    assert needs("tool-embed-0.6b") == [Need.COMMIT, Need.HUB]
    refused = availability(default_registry().get("nv-embed-v1"), Permissions(), gpu=False)
    assert not refused.allowed and "Python code" in refused.refused
    assert refused.words == "needs remote code, the hub and a GPU"
    assert availability(default_registry().get("bge-large"), Permissions(), gpu=False).allowed


def test_refused_retrievers_come_last() -> None:
    allowed = [item.allowed for item in all_availabilities(Permissions(), gpu=False)]
    assert allowed == sorted(allowed, reverse=True) and not all(allowed)


def test_downloaded_weights_need_no_hub(tmp_path: Path) -> None:
    entry = default_registry().get("bge-large")
    snapshot = tmp_path / "models--BAAI--bge-large-en-v1.5" / "snapshots" / entry.revision
    assert entry.hf_id == "BAAI/bge-large-en-v1.5"
    snapshot.mkdir(parents=True)
    assert needs("bge-large") == [Need.HUB], "a folder without weights is an interrupted download"
    (snapshot / "model.safetensors").write_bytes(b"")
    assert needs("bge-large") == []
