"""The budget of an expansion: fields where empty is the operator's limit, if any, and 0 is zero; never above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.annotation_judges import PREFIX
from dashboard.components.annotation_words import dollars, spent_sentence
from dashboard.components.batch_files import then
from dashboard.components.kind_words import counted
from dashboard.components.numbers import whole
from dashboard.current_site import the_site
from pipeline.jobs.annotations import requests
from pipeline.jobs.annotations.requests import MOST_CALLS, MOST_DOLLARS

if TYPE_CHECKING:
    from pipeline.jobs.annotations.following import AnnotationProgress
    from store.access.annotations import AnnotationRecord

#: Why live work does not start.
UNBOUNDED = (
    "Nobody says yet what this may cost. Give a budget in US dollars or in calls; or write a batch file, which asks "
    "nobody from here."
)


def bounded(max_cost: float | None, max_calls: int | None) -> bool:
    """Whether a budget, or else the operator, sets any limit."""
    settings = the_site().settings
    return not (max_cost is None and max_calls is None and not settings.llm_budget_dollars + settings.llm_budget_calls)


def choose_budget() -> tuple[float | None, int | None]:
    """The hard bounds of a new expansion in dollars and calls; None for no bound of its own."""
    most_dollars, most_calls = _most()
    no_cost, no_calls = _placeholders()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        cost = permalinks.number(
            "Budget in US dollars", PREFIX + "cost", 0.0, most_dollars, None, 1.0, placeholder=no_cost,
            width=200, help="It never goes over: a call's worst case is reserved before it is sent.",
        )  # fmt: skip
        calls = permalinks.number(
            "Budget in calls", PREFIX + "calls", 0, most_calls, None, 100, placeholder=no_calls, width=200
        )  # fmt: skip
    return cost, calls


def budget_button(progress: AnnotationProgress, *, first: bool = False) -> None:
    """A button that opens a small form for the budget; ``first`` where only that helps."""
    if st.button(
        "Change the budget", icon=":material/payments:", key=f"an_budget_{progress.record.id}",
        type="primary" if first else "secondary",
    ):  # fmt: skip
        _budget(progress)


@st.dialog("Budget of this expansion")
def _budget(progress: AnnotationProgress) -> None:
    """New bounds, and on with it."""
    st.markdown(spent_sentence(progress.spent, progress.budget))
    cost, calls = change_fields(progress.record)
    limited = bounded(cost, calls)
    if not limited:
        st.info("Give a budget in US dollars or in calls: it asks live.", icon=":material/payments:")
    if st.button(
        "Set it and go on", type="primary", icon=":material/play_arrow:", key="an_new_budget", disabled=not limited
    ):

        def change() -> None:
            requests.set_budget(the_site(), progress.record.id, cost, calls)
            requests.start(the_site(), progress.record.id)

        then(change)


def change_fields(record: AnnotationRecord) -> tuple[float | None, int | None]:
    """The same fields for an expansion that has a budget; one above what the fields take is lowered, and that is said.

    Args:
        record: the expansion.
    """
    most_dollars, most_calls = _most()
    no_cost, no_calls = _placeholders()
    was_cost, was_calls = record.max_cost, record.max_calls
    lowered = []
    if was_cost is not None and was_cost > most_dollars:
        lowered.append(f"{dollars(was_cost)} to {dollars(most_dollars)}")
        was_cost = most_dollars
    if was_calls is not None and was_calls > most_calls:
        lowered.append(f"{whole(was_calls)} to {counted(most_calls, 'call')}")
        was_calls = most_calls
    if lowered:
        st.info(
            f"Its budget is above the most that one expansion may use here. Below it is lowered from "
            f"{' and from '.join(lowered)}.",
            icon=":material/payments:",
        )
    # Seeded and not the default: a field with a default cannot be emptied.
    st.session_state.setdefault("an_new_cost", was_cost)
    st.session_state.setdefault("an_new_calls", was_calls)
    cost: float | None = st.number_input(
        "US dollars in all", 0.0, most_dollars, None, 1.0, key="an_new_cost", placeholder=no_cost
    )
    calls: int | None = st.number_input(
        "Calls in all", 0, most_calls, None, 100, key="an_new_calls", placeholder=no_calls
    )
    return cost, calls


def _most() -> tuple[float, int]:
    """The most that the fields take: what the operator allows, within what a budget may be."""
    settings = the_site().settings
    cost, calls = settings.llm_budget_dollars or MOST_DOLLARS, settings.llm_budget_calls or MOST_CALLS
    return float(min(cost, MOST_DOLLARS)), min(calls, MOST_CALLS)


def _said(limit: str) -> str:
    """What an empty field stands for: the operator's limit, or none yet, which starts nothing."""
    return f"operator's limit, {limit}" if limit else "none yet"


def _placeholders() -> tuple[str, str]:
    """What the empty fields say, in dollars and in calls."""
    settings = the_site().settings
    cost, calls = settings.llm_budget_dollars, settings.llm_budget_calls
    return _said(dollars(cost) if cost else ""), _said(whole(calls) if calls else "")
