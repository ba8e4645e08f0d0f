"""Human validation of one benchmark version: drawing a sample, how far reviews are, and the reports of closed ones."""

from __future__ import annotations

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.failures import show
from dashboard.components.numbers import day, whole
from dashboard.components.validation_report import show_report
from pipeline.errors import EquiRankError
from pipeline.jobs.labels.reports import read_report
from pipeline.jobs.labels.samples import MOST_ITEMS, MOST_SEED, draw_sample, review_address
from pipeline.jobs.site import Site
from store.access import validation
from store.access.validation import LONGEST_NOTE, SampleRecord
from store.errors import StoreError
from store.records import BenchmarkRecord

#: Of the session: leads' links that nobody said to have yet, by benchmark version and sample: its seed, the secret.
_MADE = "val_made"


def validation_section(site: Site, record: BenchmarkRecord) -> None:
    """Draw everything about the validation of a version.

    Args:
        site: where the samples are.
        record: a version with content.
    """
    st.subheader("Human validation", anchor=False)
    st.markdown(
        "Two people check each accepted combination of a sample without seeing each other, a third decides where they "
        "disagree. The share that is valid, with its interval, says how far the new metrics can be trusted."
    )
    with site.database.reading() as session:
        samples = validation.list_samples(session, record.id)
    lead_links(record)
    for sample in (one for one in samples if not one.is_closed):
        open_sample(site, sample)
    if accepted(record) < 1:
        st.caption("This version has no accepted combination besides its labels: there is nothing to review.")
    else:
        drawing(site, record)
    for sample in (one for one in samples if one.is_closed):
        closed_sample(site, sample)


def validation_results(site: Site, record: BenchmarkRecord) -> None:
    """Draw the reports of closed reviews of a version; nothing where there is none."""
    with site.database.reading() as session:
        samples = [one for one in validation.list_samples(session, record.id) if one.is_closed]
    if not samples:
        return
    st.subheader("Human validation", anchor=False)
    for sample in samples:
        closed_sample(site, sample)


def accepted(record: BenchmarkRecord) -> int:
    """Accepted combinations besides the labels."""
    return (record.combinations or 0) - (record.queries or 0)


def drawing(site: Site, record: BenchmarkRecord) -> None:
    """The form that draws a sample."""
    most = min(accepted(record), MOST_ITEMS)
    with st.form(f"val_draw_{record.id}", border=False, enter_to_submit=False):
        left, middle, right = st.columns([1, 1, 3], vertical_alignment="bottom")
        size = left.number_input(
            "Items", 1, most, min(100, most), key=f"val_size_{record.id}",
            help=f"Of {whole(accepted(record))} accepted combinations, by domain and number of sub-queries.",
        )  # fmt: skip
        seed = middle.number_input(
            "Seed", 0, MOST_SEED, 1, key=f"val_seed_{record.id}", help="The same seed draws the same sample."
        )
        note = right.text_input("Note", max_chars=LONGEST_NOTE, key=f"val_note_{record.id}")
        sent = st.form_submit_button("Draw a sample", icon=":material/shuffle:")
    if not sent:
        return
    try:
        made = draw_sample(site, record, int(size), int(seed), note or "")
    except (EquiRankError, StoreError) as error:
        show(str(error))
        return
    st.session_state.setdefault(_MADE, {}).setdefault(record.id, {})[made.sample.id] = (made.sample.seed, made.secret)
    st.rerun()


def lead_links(record: BenchmarkRecord) -> None:
    """The leads' links of samples drawn in this session, each until its lead has it; the newest last."""
    made: dict[str, tuple[int, str]] = st.session_state.get(_MADE, {}).get(record.id, {})
    for sample, (seed, secret) in list(made.items()):
        with st.container(border=True):
            st.markdown(
                f"**Your link to lead the review of seed {seed}.** It is shown only now: keep it, and send it to "
                "nobody."
            )
            address = permalinks.full_address(review_address(secret))
            st.code(address, language=None, wrap_lines=True)
            with st.container(horizontal=True, gap="small"):
                st.page_link(
                    "pages/review.py", label="Open it and invite reviewers", icon=":material/person_add:",
                    query_params={"token": secret},
                )  # fmt: skip
                if st.button("I have it", key=f"val_have_{sample}"):
                    del made[sample]
                    st.rerun()


def open_sample(site: Site, sample: SampleRecord) -> None:
    """How far an open review is; who reviews is for its lead alone."""
    with site.database.reading() as session:
        standing = validation.standing(session, sample.id)
    st.text(described(sample, standing.items))
    st.progress(
        standing.decided / standing.items if standing.items else 0.0,
        text=f"{whole(standing.decided)} decided, {whole(standing.reviewed)} with both reviews. "
        "Its report is public once its lead closes it.",
    )


def closed_sample(site: Site, sample: SampleRecord) -> None:
    """A closed review with its report."""
    report = read_report(site, sample.id)
    st.text(described(sample, report.overall.items) + f"; closed {day(sample.closed_at)}")
    show_report(site, report, key=f"val_{sample.id}")


def described(sample: SampleRecord, items: int) -> str:
    """``Sample of 100 items, seed 1, drawn 2026-12-01: note``."""
    said = (
        f"Sample of {whole(items)} item{'' if items == 1 else 's'}, seed {sample.seed}, drawn {day(sample.created_at)}"
    )
    return f"{said}: {sample.note}" if sample.note else said
