"""The lead's page of a review: who reviews, how far they are, the report so far, and closing it."""

from __future__ import annotations

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.failures import show
from dashboard.components.numbers import day, whole
from dashboard.components.untrusted import plain
from dashboard.components.validation_report import show_report
from pipeline.jobs.labels.reports import read_report
from pipeline.jobs.labels.samples import review_address
from pipeline.jobs.site import Site
from store.access import validation
from store.access.validation import LONGEST_NAME, NewPerson, PersonRecord, SampleRecord, Standing
from store.errors import StoreError
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole

ROLES = {
    ReviewerRole.REVIEWER.value: "reviews",
    ReviewerRole.ADJUDICATOR.value: "decides disagreements",
}
#: Of the session: links that nobody said to have yet, by sample and person: whose each is, and its secret.
_MADE = "review_made_links"


def show_lead(site: Site, sample: SampleRecord, benchmark: BenchmarkRecord) -> None:
    """Draw the lead's page below its title."""
    with site.database.reading() as session:
        standing = validation.standing(session, sample.id)
        people = validation.people(session, sample.id)
        given = validation.given(session, sample.id)
    state(sample, standing)
    st.subheader("People", anchor=False)
    new_links(sample)
    if not people:
        st.markdown(
            "Nobody is invited yet. Two people review every item without seeing each other; a third decides where they "
            "disagree. More reviewers share the items; each item still gets two."
        )
    for person in people:
        one_person(site, sample, person, given.get(person.id, 0))
    if not sample.is_closed:
        invite(site, sample)
    st.subheader("Report" if sample.is_closed else "Report so far", anchor=False)
    show_report(site, read_report(site, sample.id), key=f"lead_{sample.id}")
    if not sample.is_closed:
        closing(site, sample, standing)


def state(sample: SampleRecord, standing: Standing) -> None:
    """How far the sample is."""
    said = f"{whole(standing.items)} items, seed {sample.seed}, drawn {day(sample.created_at)}"
    if sample.note:
        said += f": {sample.note}"
    st.text(said)
    st.progress(
        standing.decided / standing.items if standing.items else 0.0,
        text=(
            f"{whole(standing.decided)} decided · {whole(standing.reviewed)} with both reviews · "
            f"{whole(standing.begun)} with one · {whole(standing.disputed - standing.adjudicated)} to adjudicate"
        ),
    )
    if sample.is_closed:
        st.info(f"Closed on {day(sample.closed_at)}. The report is public on the benchmark's card.")


def keep_link(made: NewPerson) -> None:
    """Show somebody's new link until the lead has it; it takes the place of their old one, which opens nothing."""
    samples: dict[str, dict[str, tuple[str, str]]] = st.session_state.setdefault(_MADE, {})
    links = samples.setdefault(made.person.sample_id, {})
    links.pop(made.person.id, None)
    links[made.person.id] = (made.person.name, made.secret)


def new_links(sample: SampleRecord) -> None:
    """The links of this session that the lead did not say to have, the newest last."""
    made: dict[str, tuple[str, str]] = st.session_state.get(_MADE, {}).get(sample.id, {})
    for person, (name, secret) in list(made.items()):
        with st.container(border=True):
            st.markdown(f"**Link for {plain(name)}.** It is shown only now: copy it, and send it to nobody else.")
            st.code(permalinks.full_address(review_address(secret)), language=None, wrap_lines=True)
            if st.button("I have it", key=f"lead_have_{person}"):
                del made[person]
                st.rerun()


def one_person(site: Site, sample: SampleRecord, person: PersonRecord, given: int) -> None:
    """A line about somebody, with what can be done."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        verdicts = f"{whole(given)} verdict{'' if given == 1 else 's'}"
        st.markdown(f"**{plain(person.name)}** {ROLES[person.role]} · {verdicts}", width="content")
        if st.button("New link", type="tertiary", icon=":material/link:", key=f"lead_link_{person.id}"):
            with site.database.session() as session:
                made = validation.renew(session, person.id)
            keep_link(made)
            st.rerun()
        if sample.is_closed:
            return
        reviews = person.role == ReviewerRole.REVIEWER.value
        label = "Let them decide disagreements" if reviews else "Let them review"
        if st.button(label, type="tertiary", icon=":material/swap_horiz:", key=f"lead_role_{person.id}"):
            with site.database.session() as session:
                role = ReviewerRole.ADJUDICATOR if reviews else ReviewerRole.REVIEWER
                validation.change_role(session, person.id, role)
            st.rerun()


def invite(site: Site, sample: SampleRecord) -> None:
    """The form that invites somebody."""
    with st.form(f"lead_invite_{sample.id}", border=False, clear_on_submit=True):
        left, middle, right = st.columns([3, 3, 2], vertical_alignment="bottom")
        name = left.text_input("Name", max_chars=LONGEST_NAME, key="lead_name")
        role = middle.selectbox("What they do", list(ROLES), format_func=ROLES.__getitem__, key="lead_role")
        sent = right.form_submit_button("Invite", icon=":material/person_add:", width="stretch")
    st.caption("Names are for you alone: no report and no file has them.")
    if not sent:
        return
    try:
        with site.database.session() as session:
            made = validation.invite(session, sample.id, name or "", ReviewerRole(role))
    except StoreError as error:
        show(str(error))
        return
    keep_link(made)
    st.rerun()


def closing(site: Site, sample: SampleRecord, standing: Standing) -> None:
    """The button that ends the review, behind a question."""
    left = standing.items - standing.decided
    disputed = standing.disputed - standing.adjudicated
    with st.popover("Close the review", icon=":material/lock:", key="lead_close_menu"):
        if left:
            st.markdown(f"**{whole(left)} of {whole(standing.items)} items are not decided;** they will not count.")
        if disputed:
            st.markdown(
                f"Disagreements that no third reviewer has decided: **{whole(disputed)}**. The public report will say "
                "so, and give precision as a range."
            )
        st.markdown(
            "Nobody can review any more, and the report becomes public with every verdict and sentence, without names. "
            "It cannot be opened again."
        )
        if st.button("Close it", type="primary", key="lead_close"):
            with site.database.session() as session:
                validation.close(session, sample.id)
            st.rerun()
