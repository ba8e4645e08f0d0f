"""Asking for an expansion: benchmark, judges, candidates, rules, then what it will cost, then start."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from dashboard import annotation_reading, reading
from dashboard.components import permalinks, viewport
from dashboard.components.annotation_budget import UNBOUNDED, bounded, choose_budget
from dashboard.components.annotation_judges import PREFIX, KeyState, choose_judges
from dashboard.components.annotation_pool import choose_pool
from dashboard.components.annotation_rules import choose_rules
from dashboard.components.annotation_version import keep_shown, next_version, refused
from dashboard.components.annotation_words import (
    EXPANSION,
    dollars,
    estimate_sentence,
    estimate_table,
    total_cost,
    unpriced,
)
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import message_of, show
from dashboard.components.kind_words import counted
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from dashboard.components.worker_state import has_gpu_worker, known_workers, show_workers
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs.annotations import requests
from pipeline.jobs.annotations.requests import AnnotationRequest
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.toolex.estimate import StageEstimate
from pipeline.toolex.settings import ToolexSettings
from store.errors import StoreError
from store.records import BenchmarkRecord

#: On a phone what it costs comes right after the stage.
NARROW = ("Stage", "Calls", "Price", "Judge", "Questions", "Tokens in", "Tokens out")


def expansion_form() -> None:
    """Draw it; starting leads to the expansion's own address."""
    records = [record for record in reading.benchmarks() if record.has_content]
    if not records:
        no_benchmarks()
        return
    workers = known_workers()
    left, right = st.columns(2, gap="large")
    with left:
        first = next((record.name for record in records if not record.is_demo), records[0].name)
        benchmark = choose_version(records, PREFIX + "benchmark", first, label="Benchmark to expand")
        suggested = next_version(benchmark, reading.benchmarks(), annotation_reading.claimed_versions(benchmark.slug))
        version = permalinks.text("Number of the new version", PREFIX + "version", placeholder=suggested, max_chars=40)
        if benchmark.equivalents:
            st.caption(
                f"{plain(benchmark.name)} has valid answers already. They are not looked at: queries, "
                f"{benchmark.kind}s and ground truth are expanded anew."
            )
        pool = choose_pool(gpu=has_gpu_worker(workers))
    with right:
        judges, keys = choose_judges(the_site().settings.llm_base_url, benchmark.kind)
    rules = choose_rules(benchmark.kind)
    if pool.refused:
        show(pool.refused)
    unusable = [state.words for state in keys.values() if not state.usable]
    if unusable or pool.refused or not pool.members:
        if not pool.members:
            st.info("Choose at least one retriever that candidates come from.", icon=":material/edit:")
        return
    settings = ToolexSettings(**judges, **rules, pool=pool.members, depth=pool.depth)
    found = annotation_reading.estimated(benchmark.name, settings)
    st.markdown(estimate_sentence(found))
    text_table(
        estimate_table(found), key="an_estimate", label="Questions, calls, tokens and price by stage",
        order=NARROW if viewport.is_narrow() else None,
    )  # fmt: skip
    st.caption(estimate_note(found))
    _start(benchmark, version.strip(), suggested, settings, found, keys)
    show_workers(workers, "llm")


def estimate_note(found: Sequence[StageEstimate]) -> str:
    """How sure the figures are, and what they leave out."""
    most = sum(one.most_calls for one in found)
    said = [
        "The first stage is counted. The second is the most it can be: as if the pool's retrievers shared no result. "
        "Of the third it is not known how much the second accepts, so it is taken to be as much as in the paper "
        f"(4.3 combinations a query beside the labelled one). At most {counted(most, 'call')}. Answers that are kept "
        "from earlier runs cost nothing."
    ]
    missing = unpriced(found)
    if missing:
        names = ", ".join(plain(name) for name in missing)
        said.append(f"The price of {names} is not known here; EQUIRANK_LLM_PRICES says it.")
    return " ".join(said)


def _start(
    benchmark: BenchmarkRecord,
    named: str,
    suggested: str,
    settings: ToolexSettings,
    found: Sequence[StageEstimate],
    keys: dict[str, KeyState],
) -> None:
    """The budget, and the two ways to begin.

    Args:
        benchmark: what is expanded.
        named: the new version as somebody named it; "" takes the suggested number.
        suggested: a number that is free.
        settings: how.
        found: what it will ask and cost.
        keys: what each judge needs.
    """
    version = named or suggested
    cost, calls = choose_budget()
    request = AnnotationRequest(benchmark.name, version, settings, max_cost=cost, max_calls=calls, person=LOCAL_PERSON)
    missing = list(dict.fromkeys(f"{model} {state.words}" for model, state in keys.items() if not state.ready))
    limited = bounded(cost, calls)
    blocked = bool(missing) or not limited or (cost is not None and bool(unpriced(found)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        shown = (benchmark.slug, suggested)
        live = st.button(
            "Start", type="primary", icon=":material/play_arrow:", key="an_start", disabled=blocked,
            on_click=keep_shown, args=shown,
        )  # fmt: skip
        batch = st.button(
            "Write a batch file", icon=":material/description:", key="an_batch", on_click=keep_shown, args=shown
        )
        st.caption(f"Makes {plain(benchmark.slug)}@{plain(version)}. A batch file needs no key, and providers take "
                   "about half the price for it: you upload the answers, once a stage.", width="stretch")  # fmt: skip
    if live or batch:
        words = "" if named else refused(benchmark.slug, suggested)
        if words:
            show(words)
        else:
            _begin(request, batch=batch)
    if missing:
        st.info(f"{plain('; '.join(missing))}. A batch file needs no key.", icon=":material/key_off:")
    if not limited:
        st.info(UNBOUNDED, icon=":material/payments:")
        _offer_budget(found)
    if cost is not None and unpriced(found):
        st.info(
            "A budget in dollars stops before the first call whose price is not known. Empty it and bound the calls "
            "instead, or say the price in EQUIRANK_LLM_PRICES.",
            icon=":material/payments:",
        )
    expected = total_cost(found)
    if cost is not None and expected is not None and expected > cost:
        st.caption(
            f"The estimate of {dollars(expected)} is above the budget of {dollars(cost)}. It stops before it would "
            "cost more, keeps every answer, and goes on once the budget is raised."
        )


def _offer_budget(found: Sequence[StageEstimate]) -> None:
    """The estimate, rounded up to whole dollars, as a budget; nothing where a price is not known."""
    expected = total_cost(found)
    if expected is None:
        return
    budget = float(max(math.ceil(expected), 1))
    st.button(
        f"Take {dollars(budget)}, the estimate rounded up", icon=":material/payments:", key="an_take_estimate",
        on_click=permalinks.reset({PREFIX + "cost": budget}),
    )  # fmt: skip


def _begin(request: AnnotationRequest, *, batch: bool) -> None:
    """Write down what is wanted and go to its page; what cannot be asked for is said in words."""
    try:
        record = requests.define(the_site(), request)
        if not batch and not bounded(record.max_cost, record.max_calls):
            # It was known, from a batch file, and had no budget: this one is its first.
            record = requests.set_budget(the_site(), record.id, request.max_cost, request.max_calls)
        requests.start(the_site(), record.id, batch=batch)
    except (EquiRankError, StoreError) as error:
        show(message_of(error))
        return
    st.switch_page("pages/annotate.py", query_params={EXPANSION: record.id})
