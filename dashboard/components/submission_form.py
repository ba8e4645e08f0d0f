"""What a submitter says about a run: one form for a new run and for editing an old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard.components.numbers import whole
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.submission import LOCAL_PERSON, CheckedRun, SubmissionMetadata
from store.access import retrievers

METHODS = ("full-doc", "sub-query")
LEVELS = {"query": "whole queries", "sub-query": "sub-queries written from the labels"}
_NAMES_SHOWN = 20
TRAINED = {"unknown": "unknown", "no": "no", "yes": "yes"}


def known_retrievers() -> list[str]:
    """Names of retrievers that this person may know."""
    with the_site().database.reading() as session:
        return retrievers.suggested_names(session, LOCAL_PERSON)


def known_names(names: Sequence[str]) -> str:
    """What a name does, with the first names that there are."""
    said = "The name on the leaderboard. Runs of one retriever have one name."
    if not names:
        return said
    more = len(names) - _NAMES_SHOWN
    listed = ", ".join(plain(name) for name in names[:_NAMES_SHOWN])
    return f"{said} Known here: {listed}{f' and {whole(more)} more' if more > 0 else ''}."


def fields(key: str, given: Mapping[str, str]) -> SubmissionMetadata | None:
    """Draw the fields with what is given already; returns what they say, None while there is no name.

    Args:
        key: prefix of the widgets' keys.
        given: values by field name of ``SubmissionMetadata``.
    """
    left, right = st.columns(2)
    with left:
        # Plain text: a select box drops a new name that is left with Tab or a click instead of Enter.
        retriever = st.text_input(
            "Retriever", given.get("retriever", "").strip(), key=f"{key}_retriever", placeholder="its name here",
            help=known_names(known_retrievers()),
        )  # fmt: skip
        methods = list(dict.fromkeys([given.get("method") or "full-doc", *METHODS]))
        method = st.selectbox(
            "Method", methods, accept_new_options=True, key=f"{key}_method",
            help="How the query was put to the retriever; type another word if none fits.",
        )  # fmt: skip
        contract = st.text_input(
            "Setting, where one retriever has several", given.get("contract", ""), max_chars=200, key=f"{key}_contract",
            placeholder="with instruction, 512 tokens, …",
        )  # fmt: skip
        trained = st.segmented_control(
            "Trained on this benchmark?",
            list(TRAINED),
            default=given.get("trained_on_benchmark") or "unknown",
            required=True,
            key=f"{key}_trained",
        )
    with right:
        link = st.text_input("Link", given.get("link", ""), max_chars=500, key=f"{key}_link", placeholder="https://…")
        licence = st.text_input("Licence of the run", given.get("licence", ""), max_chars=100, key=f"{key}_licence")
        contact = st.text_input(
            "Contact (never shown)", given.get("contact", ""), max_chars=200, key=f"{key}_contact",
            help="For the operator of this site only.",
        )  # fmt: skip
        level = "query"
        if "level" in given:
            level = given["level"]
        else:
            level = st.selectbox("Asked with", list(LEVELS), format_func=LEVELS.__getitem__, key=f"{key}_level")
    if not retriever or not retriever.strip():
        return None
    return SubmissionMetadata(
        retriever=retriever,
        method=(method or "full-doc").strip(),
        level=level,
        contract=contract or "",
        link=link or "",
        licence=licence or "",
        contact=contact or "",
        trained_on_benchmark=trained or "unknown",
    )


def submission_form(checked: CheckedRun, key: str) -> tuple[SubmissionMetadata, bool] | None:
    """The form for a checked run; returns what was said and whether to publish, None until a button is pressed."""
    prefill = checked.reading.report.prefill
    given = {
        "retriever": prefill.get("retriever") or prefill.get("tag") or "",
        "contract": prefill.get("revision", ""),
        "link": prefill.get("link", ""),
        "licence": prefill.get("licence", ""),
    }
    with st.form(f"submit_form_{key}", border=False, enter_to_submit=False):
        metadata = fields(f"submit_{key}", given)
        with st.container(horizontal=True, vertical_alignment="center"):
            publish = st.form_submit_button("Publish", type="primary", icon=":material/public:")
            keep = st.form_submit_button("Keep private", icon=":material/lock:")
    if not (publish or keep):
        return None
    if metadata is None:
        st.warning("Give the retriever a name first. Nothing is stored yet.")
        return None
    return metadata, bool(publish)
