"""Reviewing: one item after the other, one's own verdicts, and what waits for whoever decides disagreements."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import polars as pl
import streamlit as st

from dashboard import query_reading
from dashboard.charts.layout import shortened
from dashboard.components import viewport
from dashboard.components.failures import show
from dashboard.components.numbers import whole
from dashboard.components.review_item import Given, choice_text, evidence, judge_words, said_of_it, verdict_form
from dashboard.components.review_place import mark_top
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from pipeline.benchmark import Benchmark
from pipeline.jobs.site import Site
from pipeline.toolex.review_card import review_card
from pipeline.toolex.validation import Bucket
from store.access import reviews
from store.access.reviews import OwnReview, ReviewRecord
from store.access.validation import ItemRecord, PersonRecord, SampleRecord
from store.errors import Conflict
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole

#: Of the session: the item that is open, the place of the last one, and the own verdict that is being changed.
ITEM, AFTER, CHANGED = "review_item", "review_after", "review_changed"
_QUERY = 90


@dataclass(frozen=True)
class Work:
    """Somebody's part of a sample.

    Attributes:
        own: their verdicts, the latest first.
    """

    site: Site
    sample: SampleRecord
    person: PersonRecord
    benchmark: BenchmarkRecord
    own: tuple[OwnReview, ...]

    @property
    def decides(self) -> bool:
        """Whether they decide disagreements."""
        return self.person.role == ReviewerRole.ADJUDICATOR.value

    @property
    def labels(self) -> Benchmark:
        """The reviewed version's content."""
        return query_reading.content(self.benchmark).benchmark


def show_work(site: Site, sample: SampleRecord, person: PersonRecord, benchmark: BenchmarkRecord) -> None:
    """Draw a reviewer's or adjudicator's page."""
    with site.database.reading() as session:
        own = tuple(reviews.own(session, person.id))
        waiting = reviews.waiting(session, person.id)
    work = Work(site, sample, person, benchmark, own)
    if sample.is_closed:
        st.title("This review is closed", anchor=False)
        st.markdown(f"You gave {_counted(len(own))}. Thank you. The report is on the card of {plain(benchmark.name)}.")
        own_verdicts(work)
        return
    gap: Literal["small", "large"] = "small" if viewport.is_narrow() else "large"
    left, right = st.columns([2, 1], gap=gap, vertical_alignment="bottom")
    with left:
        task(work)
    with right:
        progress(work, waiting)
    changed = next((one for one in own if one.is_open and one.item.item == st.session_state.get(CHANGED)), None)
    item = changed.item if changed else next_item(work)
    if item is None:
        nothing_waits(work)
    else:
        one_item(work, item, changed)
    own_verdicts(work)


def task(work: Work) -> None:
    """What this person is asked to do, in two lines."""
    with st.container(gap="xxsmall"):
        title = "Deciding disagreements" if work.decides else "Reviewing combinations"
        st.markdown(f"**{title}** of {plain(work.benchmark.name)} · {plain(work.person.name)}")
        st.caption(
            f"Can the candidate's {work.benchmark.kind}s answer the query as well as the ground truth's? "
            "Other names, interfaces or parameter formats are no fault. Once the review is closed, verdicts and "
            "sentences are public, without names."
        )


def progress(work: Work, waiting: int) -> None:
    """How far this person is."""
    done = len(work.own)
    what = "decided" if work.decides else "reviewed"
    st.progress(
        done / (done + waiting) if done + waiting else 0.0,
        text=f"{whole(done)} {what} by you · {whole(waiting)} {'waits' if waiting == 1 else 'wait'} for you",
    )


def next_item(work: Work) -> ItemRecord | None:
    """The item before this person: the same as long as it is theirs, then the next one."""
    opened: str | None = st.session_state.get(ITEM)
    with work.site.database.session() as session:
        held = reviews.hold(session, work.person.id, opened) if opened else None
        item = held or reviews.take_next(session, work.person.id, after=st.session_state.get(AFTER))
    if opened and held is None:
        st.info("The item that lay before you needs no verdict of yours any more; nothing of it was saved.")
    st.session_state[ITEM] = None if item is None else item.item
    return item


def nothing_waits(work: Work) -> None:
    """What to say when there is nothing to do."""
    if work.decides:
        st.info("No disagreement waits for you now. As reviewers go on there may be more: open this link again later.")
    elif work.own:
        st.success(
            "You are through: nothing waits for you. Until an item has its second review you can still change your "
            "verdict on it below."
        )
    else:
        st.info("Nothing waits for you: others review every item already. If they leave some, open this link again.")


def one_item(work: Work, item: ItemRecord, changed: OwnReview | None) -> None:
    """One item with its form."""
    person = work.person.id
    card = review_card(work.labels, item.query_id, item.tool_ids, item.reason)
    key = f"rv_{item.item}" + ("_again" if changed else "")
    mark_top(key, f"Item: {shortened(card.text or card.query_id, _QUERY)}")
    left, right = st.columns([2, 1], gap="large")
    with left:
        evidence(card, key, work.benchmark.kind)
    with right:
        if work.decides:
            said_of_it(both_reviews(work, item))
        before = None if changed is None else _given(changed.review)
        given = verdict_form(key, work.benchmark.kind, before, save="Save the change" if changed else "Save and go on")
        if changed:
            if st.button("Leave it as it was", type="tertiary", key=f"{key}_leave"):
                st.session_state.pop(CHANGED, None)
                st.rerun()
        elif st.button("Skip for now", type="tertiary", icon=":material/skip_next:", key=f"{key}_skip"):
            go_on(item)
        judge_words(card)
    if given is None:
        return
    bucket = None if given.bucket is None else given.bucket.value
    try:
        with work.site.database.session() as session:
            reviews.give(session, person, item.item, valid=given.valid, reason=given.reason, bucket=bucket)
    except Conflict as error:
        st.session_state.pop(CHANGED, None)
        show(str(error))
        st.button("Go on", key=f"{key}_on", on_click=go_on, args=(item, False))
        return
    st.toast("Saved.")
    if changed:
        st.session_state.pop(CHANGED, None)
        st.rerun()
    go_on(item)


def go_on(item: ItemRecord, rerun: bool = True) -> None:
    """Leave an item for the one after it."""
    st.session_state[ITEM] = None
    st.session_state[AFTER] = item.place
    if rerun:
        st.rerun()


def both_reviews(work: Work, item: ItemRecord) -> list[tuple[str, Given]]:
    """The two reviews without names, in an order that says nothing about who was first."""
    with work.site.database.reading() as session:
        said = reviews.of_item(session, work.sample.id, item.item)
    pair = [review for review in said if review.slot != "third"]
    if hashlib.sha256(item.item.encode()).digest()[0] % 2:
        pair.reverse()
    return list(zip(("One reviewer", "The other"), map(_given, pair), strict=False))


def own_verdicts(work: Work) -> None:
    """What this person said so far, and a way to change what may still be changed."""
    if not work.own:
        return
    texts = dict(work.labels.queries.select("query_id", "text").iter_rows())
    queries = [shortened(texts.get(one.item.query_id) or one.item.query_id, _QUERY) for one in work.own]
    with st.expander(f"Your verdicts: {whole(len(work.own))}"):
        said = [choice_text(_given(one.review).bucket) for one in work.own]
        columns = {
            "Query": queries,
            "Your verdict": said,
            "Why": [one.review.reason for one in work.own],
            "Can be changed": ["yes" if one.is_open else "no" for one in work.own],
        }
        order = ["Your verdict", "Query", "Why", "Can be changed"] if viewport.is_narrow() else None
        text_table(pl.DataFrame(columns), key="rv_own", label="Your verdicts", most_rows=10, order=order)
        open_ones = {
            one.item.item: f"{query} · {word}"
            for one, query, word in zip(work.own, queries, said, strict=True)
            if one.is_open
        }
        if open_ones:
            with st.form("rv_change_form", border=False):
                chosen = st.selectbox(
                    "Change a verdict", list(open_ones), format_func=lambda item: open_ones[item], key="rv_change"
                )
                sent = st.form_submit_button("Open it again", icon=":material/edit:")
            if sent:
                st.session_state[CHANGED] = chosen
                st.rerun()


def _given(review: ReviewRecord) -> Given:
    return Given(None if review.bucket is None else Bucket(review.bucket), review.reason)


def _counted(number: int) -> str:
    return f"{whole(number)} verdict{'' if number == 1 else 's'}"
