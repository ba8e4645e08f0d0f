"""The review page: one person's link shows one person's work, blind; the lead's invites and closes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.review_item import CHOICES, choice_text, much_alike
from pipeline.jobs.labels.samples import draw_sample
from pipeline.jobs.site import Site
from pipeline.toolex.validation import Bucket
from store.access import benchmarks, reviews, validation
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole
from tests.dashboard.conftest import APP
from tests.dashboard.dashboard_app import open_page

DEMO = "demo-tools@1"


@dataclass(frozen=True)
class Review:
    """A sample of three items, and everybody's secret."""

    site: Site
    benchmark: BenchmarkRecord
    sample: str
    links: dict[str, str]
    people: dict[str, str]

    def say(self, name: str, place: int, bucket: Bucket | None, reason: str) -> None:
        with self.site.database.session() as session:
            item = validation.items(session, self.sample)[place].item
            reviews.give(
                session, self.people[name], item, valid=bucket is None, reason=reason,
                bucket=None if bucket is None else bucket.value,
            )  # fmt: skip


@pytest.fixture
def review(site: Site) -> Review:
    with site.database.reading() as session:
        record = benchmarks.get(session, DEMO)
    made = draw_sample(site, record, 3, 7)
    links, people = {"lead": made.secret}, {}
    with site.database.session() as session:
        for name, role in (("Annabel", "reviewer"), ("Bobby", "reviewer"), ("Cydney", "adjudicator")):
            person = validation.invite(session, made.sample.id, name, ReviewerRole(role))
            links[name], people[name] = person.secret, person.person.id
    return Review(site, record, made.sample.id, links, people)


def texts(page: AppTest) -> str:
    """Everything that the page says."""
    blocks = [*page.title, *page.subheader, *page.markdown, *page.text, *page.caption, *page.info, *page.success]
    blocks += [*page.error, *page.warning, *page.code]
    tables = [frame.value.to_csv() for frame in (*page.dataframe, *page.table)]
    return re.sub(r"\\(.)", r"\1", "\n".join([*(str(block.value) for block in blocks), *tables]))


def choose(page: AppTest, bucket: Bucket | None, reason: str) -> AppTest:
    page.radio[0].set_value(CHOICES.index(bucket))
    page.text_area[0].set_value(reason)
    return press(page, "Save and go on")


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.button if button.label == label).click().run()


def test_without_the_secret_there_is_nothing(app: AppTest, review: Review) -> None:
    for query in ({}, {"token": "not-a-secret"}):
        page = open_page(app, "review", **query)
        assert not page.exception and not page.radio and not page.button
        assert "demo-tools" not in texts(page)


def test_a_reviewer_goes_through_the_items(app: AppTest, review: Review) -> None:
    review.say("Bobby", 0, Bucket.OTHER, "Bobby wrote this sentence.")
    page = open_page(app, "review", token=review.links["Annabel"])
    assert not page.exception
    first = page.subheader[0].value
    # The judge's words are there, but below the form and folded: they must not lead.
    (judge,) = [box for box in page.expander if box.label.startswith("What the judge wrote")]
    assert not judge.proto.expanded and judge.text[0].value
    # Half a verdict is not saved, and what was typed stays.
    page.text_area[0].set_value("Typed already.")
    press(page, "Save and go on")
    assert "a verdict is missing" in page.warning[0].value and page.text_area[0].value == "Typed already."
    choose(page, None, "Both steps are there.")
    second = page.subheader[0].value
    assert second != first
    press(page, "Skip for now")
    assert page.subheader[0].value not in (first, second)
    choose(page, Bucket.PLATFORM, "It needs a token.")
    assert page.subheader[0].value == second
    said = texts(page)
    assert "Both steps are there." in said and "Invalid: cross-platform mismatch" in said
    # Nothing of the other's review, of any judge's or model's name, or of a score.
    assert all(word not in said for word in ("Bobby", "Cydney", "EquiRank authors", "NDCG", "κ"))
    # The first item has both reviews now: only the other one can be changed.
    (change,) = page.selectbox
    assert len(change.options) == 1
    change.set_value(_open_item(review))
    press(page, "Open it again")
    assert page.text_area[0].value == "It needs a token."
    page.radio[0].set_value(CHOICES.index(None))
    press(page, "Save the change")
    assert page.subheader[0].value == second
    with review.site.database.reading() as session:
        mine = reviews.own(session, review.people["Annabel"])
    assert [(one.review.valid, one.is_open) for one in mine] == [(True, True), (True, False)]


def _open_item(review: Review) -> str:
    with review.site.database.reading() as session:
        return next(one.item.item for one in reviews.own(session, review.people["Annabel"]) if one.is_open)


def test_an_item_that_others_finished_is_said_and_left(app: AppTest, review: Review) -> None:
    page = open_page(app, "review", token=review.links["Annabel"])
    first = page.subheader[0].value
    with review.site.database.session() as session:
        item = validation.items(session, review.sample)[0].item
        session.delete(session.get(reviews.ValidationReview, (review.sample, item, "first")))
        dee = validation.invite(session, review.sample, "Dee", ReviewerRole.REVIEWER).person
        for person in (dee.id, review.people["Bobby"]):
            reviews.give(session, person, item, valid=True, reason="Yes.")
    page.radio[0].set_value(0)
    page.text_area[0].set_value("Late.")
    press(page, "Save and go on")
    assert page.subheader[0].value != first
    assert "needs no verdict of yours any more; nothing of it was saved" in texts(page)
    with review.site.database.reading() as session:
        assert reviews.own(session, review.people["Annabel"]) == []


def test_who_decides_sees_both_reasons_and_no_names(app: AppTest, review: Review) -> None:
    page = open_page(app, "review", token=review.links["Cydney"])
    assert "No disagreement waits" in texts(page) and not page.radio
    review.say("Annabel", 1, None, "It covers all of it.")
    review.say("Bobby", 1, Bucket.COVERAGE, "It lacks the second step.")
    page.run()
    said = texts(page)
    assert "It covers all of it." in said and "It lacks the second step." in said and "incomplete coverage" in said
    assert all(word not in said for word in ("Annabel", "Bobby", "EquiRank authors", "NDCG"))
    choose(page, Bucket.COVERAGE, "The second step is missing.")
    assert "No disagreement waits" in texts(page)
    with review.site.database.reading() as session:
        assert validation.standing(session, review.sample).adjudicated == 1


def test_the_lead_invites_and_closes(app: AppTest, review: Review) -> None:
    for place in range(3):
        review.say("Annabel", place, None, "Yes.")
        review.say("Bobby", place, None, "Yes.")
    assert "Human validation" not in texts(open_page(app, "benchmarks", bm_benchmark=DEMO))
    page = open_page(app, "review", token=review.links["lead"])
    said = texts(page)
    assert "100.0 % of the accepted combinations are valid" in said and "κ is not defined" in said
    page.text_input(key="lead_name").set_value("Deedee")
    press(page, "Invite")
    (link,) = [block.value for block in page.code]
    secret = re.fullmatch(r"https://board\.example/review\?token=([\w-]{32})", link)
    assert secret is not None
    with review.site.database.reading() as session:
        person = validation.open_link(session, secret[1]).person
    assert person is not None and person.name == "Deedee"
    press(page, "I have it")
    assert not page.code
    press(page, "Close it")
    assert not any(button.label == "Invite" for button in page.button)
    closed = texts(open_page(app, "review", token=review.links["Annabel"]))
    assert "This review is closed" in closed
    card = texts(open_page(app, "benchmarks", bm_benchmark=DEMO))
    assert "Human validation" in card and "3 of 3 decided" in card
    assert "Annabel" not in card and review.links["lead"] not in card


def test_links_stay_until_the_lead_has_them(app: AppTest, review: Review) -> None:
    page = open_page(app, "review", token=review.links["lead"])
    for name in ("Deedee", "Edwina"):
        page.text_input(key="lead_name").set_value(name)
        press(page, "Invite")
    first, second = (block.value for block in page.code)
    said = texts(page)
    assert "Link for Deedee." in said and "Link for Edwina." in said
    # A new link for somebody takes the place of their old one alone.
    with review.site.database.reading() as session:
        deedee = validation.find_person(session, review.sample, "Deedee").id
    page.button(key=f"lead_link_{deedee}").click().run()
    kept, renewed = (block.value for block in page.code)
    assert kept == second and renewed not in (first, second)
    page.button(key=f"lead_have_{deedee}").click().run()
    assert [block.value for block in page.code] == [second]
    # Another sample's lead sees none of them.
    other = draw_sample(review.site, review.benchmark, 3, 8)
    assert not open_page(app, "review", token=other.secret).code


def test_open_disagreements_lead_the_report(app: AppTest, review: Review, submitted: Callable[..., str]) -> None:
    submitted("Public")
    review.say("Annabel", 0, None, "Yes.")
    review.say("Bobby", 0, None, "Yes.")
    review.say("Annabel", 1, None, "Yes.")
    review.say("Bobby", 1, Bucket.COVERAGE, "No.")
    with review.site.database.session() as session:
        validation.change_role(session, review.people["Cydney"], ReviewerRole.REVIEWER)
    said = texts(open_page(app, "review", token=review.links["lead"]))
    assert "1 of 2 reviewed items is valid; 1 waits for a third reviewer, so precision lies between 50.0 and" in said
    assert "100.0 % of the accepted combinations are valid" not in said and "50.0 to 100.0" in said
    assert "Nobody is invited to decide disagreements yet" in said and "1 item lacks a review" in said
    assert "Disagreements without a third reviewer: 1. Corrected leaves them out" in said
    with review.site.database.session() as session:
        validation.close(session, review.sample)
    card = texts(open_page(app, "benchmarks", bm_benchmark=DEMO))
    assert "1 was not decided by a third reviewer" in card and "Nobody was invited to decide" in card


def test_every_fault_is_offered_in_words() -> None:
    assert [choice_text(choice) for choice in CHOICES] == ["Valid", *(f"Invalid: {bucket.value}" for bucket in Bucket)]


def test_differences_are_marked_where_documents_are_alike() -> None:
    one, other = (
        ("a", "", "Get the weather of a city by its name."),
        ("b", "", "Get the weather of a town by its name."),
    )
    assert much_alike(one, other)
    assert not much_alike(one, ("c", "", '{"summary": "Wetterlage", "parameters": {"ort": "string"}}'))


def test_a_verdict_is_disputed_on_its_querys_page_and_decided(app: AppTest, review: Review) -> None:
    page = open_page(app, "queries", q_benchmark=DEMO, q_query="ev-006")
    press(page, "Dispute it")
    assert "Nothing is sent yet" in page.warning[0].value
    page.text_area[0].set_value("It *only* reads.")
    press(page, "Dispute it")
    assert "Disputed (waits for a decision)" in texts(page) and "It *only* reads." in texts(page)
    page.text_area[0].set_value("Again.")
    press(page, "Dispute it")
    assert "disputed already" in page.error[0].value
    page = open_page(app, "annotate", an_view="Disputes", an_of=DEMO)
    assert "1 waits for a decision" in texts(page)
    press(page, "Uphold")
    assert "Nothing is decided yet" in page.warning[0].value
    page.text_input[0].set_value("So it does.")
    press(page, "Uphold")
    said = texts(page)
    assert "0 wait for a decision" in said and "upheld" in said and "So it does." in said


def test_a_dispute_starts_at_the_verdict_that_is_looked_at(app: AppTest, site: Site) -> None:
    def offered(page: AppTest) -> str:
        box = next(box for box in page.selectbox if box.label == "Verdict")
        return str(box.options[box.value])

    page = open_page(app, "queries", q_benchmark=DEMO, q_query="ev-006", q_need="2", q_tool="mcp/breeze/1")
    second = offered(page)
    assert second.startswith("need 2, ")
    # Within the session it follows: the same tool is judged for the other need too.
    page.selectbox(key="q_need").set_value("1").run()
    page.selectbox(key="q_tool").set_value("mcp/breeze/1").run()
    assert offered(page) == second.replace("need 2", "need 1", 1)
    page.selectbox(key="q_tool").set_value("almanac_now").run()
    assert offered(page) != second.replace("need 2", "need 1", 1)


def test_a_review_of_skills_speaks_of_skills(app: AppTest, site: Site) -> None:
    with site.database.reading() as session:
        record = benchmarks.get(session, "demo-skills@1")
    made = draw_sample(site, record, 1, 7)
    with site.database.session() as session:
        link = validation.invite(session, made.sample.id, "Annabel", ReviewerRole.REVIEWER).secret
    page = open_page(app, "review", token=link)
    ours = "\n".join(block.value for block in [*page.markdown, *page.caption])
    assert "the candidate's skills answer" in ours and "which skill does it" in ours
    assert not re.search(r"\btools?\b", ours)


def test_a_keeper_draws_a_sample_and_sees_what_to_verify_next(
    app: AppTest, review: Review, submitted: Callable[..., str]
) -> None:
    page = open_page(app, "annotate", an_view="Validate", an_of=DEMO)
    page.number_input[0].set_value(5)
    press(page, "Draw a sample")
    (link,) = [block.value for block in page.code]
    with review.site.database.reading() as session:
        opened = validation.open_link(session, link.rpartition("=")[2])
        assert opened.person is None and len(validation.items(session, opened.sample.id)) == 5
    assert "Sample of 5 items" in texts(page)
    page.number_input[1].set_value(2)
    press(page, "Draw a sample")
    assert len(page.code) == 2 and page.code[0].value == link
    press(page, "I have it")
    assert len(page.code) == 1 and page.code[0].value != link
    press(page, "I have it")
    assert not page.code
    submitted("Hidden", publish=False)
    fresh = AppTest.from_file(str(APP), default_timeout=60)
    page = open_page(fresh, "annotate", an_view="Grow", an_of=DEMO, gro_look="true")
    assert "No public run is on this version." in texts(page)
    submitted("Public")
    page.run()
    assert "wait for a verdict" in texts(page)
    assert list(page.dataframe[0].value.columns)[:3] == ["Tool", "Query", "Runs"]
