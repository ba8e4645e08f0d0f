"""Picking a method with its options: the plain ones, MFTR, its rivals and variants.

Without a key nothing asks one: rules put documents into fields and queries stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.model_choice import PREFIX
from dashboard.components.numbers import day, whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline import published
from pipeline.baselines.methods import METHODS as ENTRIES
from pipeline.errors import JudgeError
from pipeline.formats.method_labels import method_title
from pipeline.jobs.estimate import Estimate
from pipeline.jobs.fields import reading as mftr_reading
from pipeline.jobs.fields.methods import LLM, ORIGINAL, RULES, FieldMethod
from pipeline.jobs.fields.options import DEFAULT_LLM
from pipeline.llm.providers import COMPATIBLE, providers_with_keys, require_key
from pipeline.llm.providers import provider_of as provider
from pipeline.mftr.settings import DEFAULT_PRESET, PRESETS
from pipeline.retrieval.retrieve import Method
from store.field_text_models import FieldTextKind
from store.records import BenchmarkRecord

#: US dollars, where the operator sets no limit.
_USUAL_BUDGET = 5.0
_MOST_BUDGET = 10_000.0

_TITLES = {Method.FULL_DOC: "Full-doc", Method.SUB_QUERY: "Sub-query ‡", Method.ADAPTER: "Adapter"}
_SAID = {
    Method.FULL_DOC: "The whole query is matched with every whole document.",
    Method.SUB_QUERY: "‡ Each need behind a query is searched by itself, top 20 each, and the lists are fused "
    "(reciprocal ranks, k = 60). The needs are written from the labels, so this is a diagnostic, ranked apart.",
    Method.ADAPTER: "A linear adapter on the queries is trained on the benchmark's own labels in 5 folds; each query "
    "is ranked by the adapter that has not seen it. It makes a fine-tuned partner for a base model.",
}
#: In the order in which they are offered.
_ORDER: tuple[Method | FieldMethod, ...] = (
    Method.FULL_DOC,
    FieldMethod.MFTR,
    FieldMethod.EASYTOOL,
    FieldMethod.PLUTO,
    FieldMethod.ONLINERAG,
    Method.ADAPTER,
    Method.SUB_QUERY,
    *(method for method in FieldMethod if method not in ("mftr", "easytool", "pluto", "onlinerag")),
)
#: The choice of weights that are not imported.
_LEARNED = "learned"
#: These compare rewritten queries with raw documents: the query itself is none.
_REWRITES = (FieldMethod.REWRITE_ONLY, FieldMethod.WEIGHTING_REWRITE)


@dataclass(frozen=True)
class ChosenMethod:
    """A method with its options.

    Attributes:
        said: arguments of ``EvaluationRequest``.
        missing: why it cannot be started, in words with what to do; "" when it can.
    """

    method: Method | FieldMethod
    said: dict[str, Any] = field(default_factory=dict)
    missing: str = ""


def choose_method(benchmark: BenchmarkRecord, *, dense: bool) -> ChosenMethod:
    """Draw the widgets.

    Args:
        benchmark: what is measured on.
        dense: whether the model has embeddings.
    """
    offered = {
        str(method): method
        for method in _ORDER
        if (dense or not _dense_only(method)) and (method is not Method.SUB_QUERY or benchmark.subqueries)
    }
    keyed = bool(providers_with_keys() or the_site().settings.llm_base_url)
    with st.container(gap="xsmall"):
        name = permalinks.described_select(
            "Method", list(offered), PREFIX + "method", str(Method.FULL_DOC),
            describe=lambda name: _described(offered[name], keyed),
        )  # fmt: skip
        method = offered[name]
        st.caption(_SAID[method] if isinstance(method, Method) else _summary(method))
    if isinstance(method, Method):
        return ChosenMethod(method, {"method": str(method)})
    return _with_options(benchmark, method, keyed)


def _dense_only(method: Method | FieldMethod) -> bool:
    return method is Method.ADAPTER or (isinstance(method, FieldMethod) and method.needs.dense)


def title(method: Method | FieldMethod) -> str:
    """The method's name in the form."""
    if isinstance(method, Method):
        return _TITLES[method]
    return method_title(str(method))


def _described(method: Method | FieldMethod, keyed: bool) -> str:
    parts = [title(method)]
    if isinstance(method, FieldMethod):
        if method.value in {entry.key for entry in published.methods() if entry.ablation}:
            parts.append("a part of MFTR")
        if method.needs.asks or method in _REWRITES:
            parts.append("asks a language model" if keyed else "needs a language model, no key here")
    return " · ".join(parts)


def _summary(method: FieldMethod) -> str:
    for entry in ENTRIES:
        if entry.name == method:
            without = entry.without_llm[:1].lower() + entry.without_llm[1:]
            return plain(entry.summary + (f" Without a language model, {without}" if without else ""))
    known = {entry.key: entry for entry in published.methods()}
    return plain(known[str(method)].description)


def _with_options(benchmark: BenchmarkRecord, method: FieldMethod, keyed: bool) -> ChosenMethod:
    needs = method.needs
    said: dict[str, Any] = {"method": str(method)}
    preset = _preset(method)
    if preset:
        said["method_preset"] = preset
    with st.container(horizontal=True, gap="small"):
        if needs.tools:
            said["standardizer"] = _source(benchmark, FieldTextKind.TOOLS, method, keyed)
        if needs.queries:
            said["rewriter"] = _source(benchmark, FieldTextKind.QUERIES, method, keyed)
    if not (needs.asks or LLM in (said.get("standardizer"), said.get("rewriter"))):
        return ChosenMethod(method, said)
    asking, missing = _asking()
    return ChosenMethod(method, said | asking, missing)


def _preset(method: FieldMethod) -> str:
    """The method's own preset; "" where it has none."""
    named = "mftr" if method.needs.fields else str(method)
    presets = {p.name: p.summary for entry in ENTRIES if entry.name == named for p in entry.presets}
    if method.needs.fields:
        presets = {name: presets.get(name, "") for name in PRESETS}
    if not presets:
        return ""
    first = DEFAULT_PRESET if method.needs.fields else next(iter(presets))
    with st.container(gap="xsmall"):
        said = "MFTR" if method.needs.fields else title(method)
        chosen = permalinks.segments(f"Preset of {said}", list(presets), PREFIX + "way", first)
        st.caption(presets[chosen])
    return str(chosen)


def _source(benchmark: BenchmarkRecord, kind: FieldTextKind, method: FieldMethod, keyed: bool) -> str:
    """Who puts documents or queries into fields: nobody or rules, a language model, or a stored set."""
    tools = kind is FieldTextKind.TOOLS
    words = {RULES: "rules, no language model"} if tools else {ORIGINAL: "as they were asked"}
    if not tools and method in _REWRITES:
        words = {}
    words[LLM] = "by a language model" if keyed else "by a language model (no key here)"
    usual = RULES if tools else ORIGINAL
    for found in mftr_reading.field_text_sets(the_site(), benchmark.name, kind):
        if found.source in ("llm", "imported"):
            words[found.id] = f"stored: {found.label or found.words}, {whole(found.filled)} of {whole(found.items)}"
    return permalinks.described_select(
        "Documents into fields" if tools else "Queries into fields",
        list(words),
        PREFIX + ("documents" if tools else "queries"),
        usual if usual in words else next(iter(words)),
        describe=lambda word: words[word],
        width=260,
    )


def choose_weights(benchmark: BenchmarkRecord, chosen: ChosenMethod, contract_hash: str) -> str:
    """Learned weights or imported ones, where there are some for these texts and this encoding; "" learns.

    Args:
        benchmark: what is measured on.
        chosen: the method with its texts.
        contract_hash: how the model encodes.
    """
    if not isinstance(chosen.method, FieldMethod) or not chosen.method.needs.learns:
        return ""
    texts = (str(chosen.said.get("standardizer", "")), str(chosen.said.get("rewriter", "")))
    found = mftr_reading.imported_weights(the_site(), benchmark.name, contract_hash, *texts)
    if not found:
        return ""
    words = {_LEARNED: "learned here, in five folds"}
    words |= {
        one.id: f"imported{'' if one.created is None else f' {day(one.created)}'}, {one.folds} folds · {one.id[:8]}"
        for one in found
    }
    picked = permalinks.described_select(
        "Weights of the fields", list(words), PREFIX + "weights", _LEARNED, describe=lambda word: words[word], width=260
    )
    return "" if picked == _LEARNED else picked


def _asking() -> tuple[dict[str, Any], str]:
    """Which language model, for how much, now or by a batch file; and what is missing for that."""
    settings = the_site().settings
    limit = settings.llm_budget_dollars or None
    model = permalinks.text("Language model", PREFIX + "llm", placeholder=DEFAULT_LLM).strip() or DEFAULT_LLM
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        budget = permalinks.number(
            "Budget in US dollars", PREFIX + "budget", 0.0, limit or _MOST_BUDGET, _USUAL_BUDGET, 1.0, width=180,
            help="It stops before it would cost more, and can be resumed with more.",
        )  # fmt: skip
        batch = permalinks.switch(
            "By a batch file", PREFIX + "batch",
            help="Writes the questions to a file in OpenAI's batch format, and goes on once its answers are imported.",
        )  # fmt: skip
    return {"llm": model, "budget": budget, "batch": batch}, "" if batch else _missing_key(model)


def _missing_key(model: str) -> str:
    try:
        if the_site().settings.llm_base_url and provider(model) in COMPATIBLE:
            return ""
        require_key(model)
    except JudgeError as error:
        return f"{error}. A batch file needs no key."
    return ""


def asking_sentence(found: Estimate) -> str:
    """What a language model will be asked, and what that costs; empty where none is."""
    asking = found.asking
    if asking is None:
        return ""
    times = f"Before that a language model is asked about {whole(asking.calls)} times"
    if asking.cost is None:
        return f"{times}; its price is not known here (EQUIRANK_LLM_PRICES says it)."
    most = "" if asking.worst_cost is None else f", at most ${asking.worst_cost:.2f}"
    return f"{times}, about ${asking.cost:.2f}{most}."
