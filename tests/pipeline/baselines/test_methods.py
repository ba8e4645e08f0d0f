from __future__ import annotations

import pytest

from pipeline.baselines.methods import METHODS, Calls, check_defined, method, method_preset
from pipeline.errors import UsageError
from pipeline.mftr.settings import PRESETS
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import Method


def test_every_method_of_retrieve_and_table_2_is_listed_once():
    names = [entry.name for entry in METHODS]
    assert len(set(names)) == len(names)
    assert {"full-doc", "easytool", "pluto", "onlinerag", "mftr"} <= set(names)
    assert {str(known) for known in Method} <= set(names)
    assert [preset.name for preset in method("mftr").presets] == list(PRESETS)


def test_what_is_not_defined_is_refused_and_not_zero():
    bm25, minilm = resolve_model("bm25").entry, resolve_model("minilm").entry
    assert [entry.name for entry in METHODS if not entry.defined_for(bm25)] == ["onlinerag", "adapter"]
    assert all(entry.defined_for(minilm) for entry in METHODS)
    with pytest.raises(UsageError, match="OnlineRAG works on embeddings"):
        check_defined(method("onlinerag"), bm25)
    check_defined(method("onlinerag"), minilm)


def test_which_methods_ask_a_language_model():
    assert [entry.name for entry in METHODS if entry.needs_llm] == ["easytool", "pluto"]
    assert method("easytool").calls_per_query is Calls.NONE
    assert method("mftr").without_llm


def test_presets():
    assert method_preset(method("pluto")).name == "filled"
    assert method_preset(method("pluto"), "paper").name == "paper"
    assert method_preset(method("full-doc")) is None
    with pytest.raises(UsageError, match="no presets"):
        method_preset(method("full-doc"), "paper")
    with pytest.raises(UsageError, match="Unknown preset"):
        method_preset(method("pluto"), "v2")
    with pytest.raises(UsageError, match="Unknown method"):
        method("plato")
