from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import ModelError
from pipeline.published import retrievers
from pipeline.retrieval.contract import Dtype, Pooling, Preset
from pipeline.retrieval.models import Permissions, resolve_model
from pipeline.retrieval.registry import default_registry, load_registry

EVERYTHING = Permissions(unpinned=True, remote_code=True, pickle=True)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.shared
def test_every_retriever_of_the_catalogue_is_there(shared: Path) -> None:
    with (shared / "reference" / "model_catalogue.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    registry = default_registry()
    assert [row["key"] for row in rows if registry.find(row["key"]) is None] == []
    for row in rows:
        entry = registry.get(row["key"])
        if not entry.dense:
            continue
        assert row["hf_id"].split(" ")[0] == entry.hf_id
        # MiniLM's pin is that of the packaged weights, not the catalogue's.
        if len(row["revision_pin"]) == 40 and entry.key != "minilm-l6":
            assert entry.revision == row["revision_pin"]
        assert str(entry.dimension) == row["dim"].split(" ")[0]
        assert entry.remote_code == (row["trust_remote_code"].startswith("YES"))
        assert entry.card.similarity == row["similarity"].split(" ")[0]


def test_it_agrees_with_the_published_retrievers() -> None:
    registry = default_registry()
    for published in retrievers():
        entry = registry.get(published.key)
        for name in ("name", "family", "licence", "hf_id", "parameters", "dimension", "base"):
            assert (getattr(entry, name) or None) == (getattr(published, name) or None), (published.key, name)


def test_names_are_keys_aliases_and_hub_ids_in_any_case() -> None:
    names = ("minilm-l6", "minilm", "MiniLM", "sentence-transformers/all-MiniLM-L6-v2")
    assert {resolve_model(name).entry.key for name in names} == {"minilm-l6"}
    assert resolve_model("bm25").entry.key == "bm25s"


def test_formats_of_the_presets() -> None:
    model = resolve_model("minilm")
    card, paper = model.contract(Preset.CARD), model.contract(Preset.PAPER)
    assert (card.query("a").whole, card.max_tokens) == ("a", 256)
    assert (paper.query("a").whole, paper.max_tokens) == ("Instruct: \nQuery: a", 512)
    assert paper.document("d {query}").whole == "d {query}"
    wanted = model.contract(Preset.PAPER, instruction=True)
    assert wanted.query("a {query}", "do {x}").whole == "Instruct: do {x}\nQuery: a {query}"
    assert wanted.query("a", "").whole == "Instruct: \nQuery: a"
    e5 = resolve_model("me5-base").contract("card")
    assert (e5.query("a").whole, e5.document("d").whole) == ("query: a", "passage: d")
    assert resolve_model("me5-base").contract("paper").document("d").whole == "d"
    qwen = resolve_model("qwen3-emb-0.6b").contract("card", instruction=True)
    assert qwen.query("a", "i").whole == "Instruct: i\nQuery:a"


def test_every_part_of_the_contract_moves_its_hash_and_formats_do_not_move_the_space() -> None:
    contract = resolve_model("minilm").contract()
    changed = [
        replace(contract, query_format="q: {query}"),
        replace(contract, document_format="d: {document}"),
        replace(contract, pooling=Pooling.CLS),
        replace(contract, normalise=False),
        replace(contract, dtype=Dtype.BFLOAT16),
        replace(contract, max_tokens=512),
        replace(contract, revision=COMMIT),
        replace(contract, model="other/model"),
    ]
    assert len({contract.hash, *(c.hash for c in changed)}) == 9
    assert len({contract.space, *(c.space for c in changed)}) == 7
    assert contract.hash == resolve_model("minilm").contract().hash


def test_where_the_prompt_is_not_pooled_it_is_part_of_the_key() -> None:
    pooled = resolve_model("minilm").contract("paper")
    assert pooled.key(pooled.query("a")) == pooled.key(pooled.document("Instruct: \nQuery: a"))
    apart = replace(pooled, prompt_pooled=False)
    assert apart.key(apart.query("a")) != apart.key(apart.document("Instruct: \nQuery: a"))


@pytest.mark.parametrize(
    ("name", "permissions", "message"),
    [
        ("minilm-16", Permissions(), 'nearest known are "minilm-l6"'),
        ("zzzzzzzzzzzz", Permissions(), "Known are"),
        ("tool-embed-4b", Permissions(), "no recorded commit"),
        ("owner/model", Permissions(), "no recorded commit"),
        ("gritlm-7b", Permissions(), "runs Python code"),
        ("contriever", Permissions(), "pickle"),
        ("owner/model@main", Permissions(), "full commit"),
        ("owner/mo del", EVERYTHING, "not the name of a model"),
        ("../../etc/passwd", EVERYTHING, "no model in the folder"),
        ("litellm/a b", EVERYTHING, "does not name an endpoint"),
        ("litellm/openai/x", Permissions(endpoints=False), "not allowed"),
        ("/srv/model", Permissions(local_folders=False), "not allowed"),
        ("bm25s@" + COMMIT, EVERYTHING, "no revisions"),
    ],
)
def test_what_is_refused_and_why(name: str, permissions: Permissions, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        resolve_model(name, permissions=permissions)
    assert caught.value.exit_code == 3


def test_what_the_operator_allows() -> None:
    for entry in default_registry().entries:
        assert resolve_model(entry.key, permissions=EVERYTHING).entry is entry
    pinned = resolve_model(f"tool-embed-4b@{COMMIT}")
    assert (pinned.entry.key, pinned.entry.revision, pinned.entry.base) == ("tool-embed-4b", COMMIT, "qwen3-emb-4b")
    other = resolve_model(f"minilm@{COMMIT}").entry
    assert (other.source, other.revision, dict(other.weights_sha256)) == ("hub", COMMIT, {})
    assert resolve_model(f"owner/model@{COMMIT}").contract().pooling is Pooling.MODEL
    one = resolve_model("litellm/openai/x", endpoint_url="http://127.0.0.1:1").contract()
    two = resolve_model("litellm/openai/x", endpoint_url="http://127.0.0.1:2").contract()
    assert one.hash != two.hash


GOOD = f"""
[[retriever]]
key = "one"
name = "One"
source = "hub"
hf_id = "owner/one"
revision = "{COMMIT}"
card = {{ pooling = "mean" }}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (COMMIT, "abc123", 'retriever "one", field as a whole: revision must be a full commit'),
        ('"mean"', '"median"', 'retriever "one", field card.pooling'),
        ('"mean"', '"mean", normalise = false', 'retriever "one", field card: similarity is cosine'),
        ('"mean"', '"mean", query = "q"', "must hold {query} exactly once"),
        ('"mean"', '"mean", max_tokens = 0', "field card.max_tokens"),
        ('name = "One"', "", 'retriever "one", field name: Field required'),
        ('name = "One"', 'name = "One"\nnmae = 1', 'retriever "one", field nmae: Extra inputs'),
        ('name = "One"', 'name = "One"\nbase = "two"', 'field base: there is no retriever "two"'),
        ("owner/one", "one", "not a hub id"),
        ('hf_id = "owner/one"', "", "must be given"),
        ('key = "one"', 'key = "One!"', "field key"),
        ("[[retriever]]", "[[retriever", "cannot be read"),
        ("[[retriever]]", "[[model]]", "nothing else"),
    ],
)
def test_a_wrong_registry_names_entry_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "r.toml").write_text(GOOD, encoding="utf-8")
    assert load_registry(tmp_path / "r.toml").get("ONE").paper.pooling is Pooling.MEAN
    assert old in GOOD
    (tmp_path / "r.toml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        load_registry(tmp_path / "r.toml")
    assert message in str(caught.value)


def test_a_name_may_not_be_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(GOOD + GOOD.replace('key = "one"', 'key = "two"'), encoding="utf-8")
    with pytest.raises(ModelError, match='"owner/one" also names "one"'):
        load_registry(tmp_path / "r.toml")
