"""Samples, links and verdicts: two blind reviews an item whoever hurries, a third only where they disagree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from store.access import reviews, validation
from store.access.validation import NewSample, PersonRecord, Standing
from store.database import Database
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import utc_now
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole, ValidationItem, ValidationSample

REVIEWER, ADJUDICATOR = ReviewerRole.REVIEWER, ReviewerRole.ADJUDICATOR


@pytest.fixture
def sample(database: Database, benchmark: BenchmarkRecord) -> NewSample:
    """Four items."""
    items = [
        ValidationItem(
            sample_id="", item=name, place=0, query_id=f"q{name}", tool_ids=["t1", "t2"], subqueries=2, stratum_items=9
        )
        for name in "abcd"
    ]
    row = ValidationSample(benchmark_version_id=benchmark.id, size=4, seed=1, lead_hash="")
    with database.session() as session:
        return validation.add_sample(session, row, items)


@pytest.fixture
def invited(database: Database, sample: NewSample) -> Callable[..., PersonRecord]:
    def invite(name: str, role: ReviewerRole = REVIEWER) -> PersonRecord:
        with database.session() as session:
            return validation.invite(session, sample.sample.id, name, role).person

    return invite


def say(database: Database, person: PersonRecord, item: str, valid: bool, **how: object) -> None:
    with database.session() as session:
        bucket = None if valid else "incomplete coverage"
        reviews.give(session, person.id, item, valid=valid, reason="As it is.", bucket=bucket, **how)  # type: ignore[arg-type]


def taken(database: Database, person: PersonRecord, **how: object) -> str | None:
    with database.session() as session:
        found = reviews.take_next(session, person.id, **how)  # type: ignore[arg-type]
    return None if found is None else found.item


def test_a_link_is_its_secret_and_a_new_one_ends_the_old(database: Database, sample: NewSample) -> None:
    identifier = sample.sample.id
    with database.session() as session:
        made = validation.invite(session, identifier, " Ann  Lee ", REVIEWER)
        assert made.person.name == "Ann Lee"
        with pytest.raises(Conflict, match="invited already"):
            validation.invite(session, identifier, "ANN \uff2cEE", ADJUDICATOR)
        with pytest.raises(InvalidRecord, match="name"):
            validation.invite(session, identifier, "A\u202eB", REVIEWER)
    with database.reading() as session:
        assert validation.open_link(session, made.secret).person == made.person
        assert validation.open_link(session, sample.secret).person is None
        kept = str(session.execute(text("SELECT * FROM validation_reviewer, validation_sample")).all())
        assert made.secret not in kept and sample.secret not in kept
    with database.session() as session:
        again, lead = validation.renew(session, made.person.id), validation.renew_lead(session, identifier)
    with database.reading() as session:
        for old in (made.secret, sample.secret, "", "x" * 9_000, "\udcff"):
            with pytest.raises(NotFound, match="opens no review"):
                validation.open_link(session, old)
        assert validation.open_link(session, again.secret).person == made.person
        assert validation.open_link(session, lead).sample == sample.sample


def test_an_item_gets_two_reviews_and_never_a_third(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    ann, bob, cyd = invited("Ann"), invited("Bob"), invited("Cyd")
    assert (taken(database, ann), taken(database, bob), taken(database, cyd)) == ("a", "a", "b")
    with pytest.raises(Conflict, match="needs no verdict of yours"):
        say(database, cyd, "a", True)
    say(database, ann, "a", True)
    assert taken(database, ann) == "b"
    say(database, bob, "a", False)
    # b lies before Ann and Cyd, so Bob gets the next one; skipping goes on from there and comes round.
    assert [taken(database, bob), taken(database, bob, after=2), taken(database, bob, after=3)] == ["c", "d", "c"]
    with database.reading() as session:
        assert reviews.waiting(session, bob.id) == 2
        assert validation.standing(session, sample.sample.id) == Standing(4, 0, 1, 1, 0)
        assert validation.given(session, sample.sample.id) == {ann.id: 1, bob.id: 1}


def test_what_is_left_without_a_verdict_goes_to_somebody_else(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    ann, bob, cyd = invited("Ann"), invited("Bob"), invited("Cyd")
    long_ago = utc_now() - reviews.HELD - timedelta(minutes=1)
    assert taken(database, ann, now=long_ago) == "a"
    say(database, bob, "a", True)
    assert taken(database, cyd) == "a"
    say(database, cyd, "a", True)
    with pytest.raises(Conflict, match="Nothing was stored"):
        say(database, ann, "a", True)
    with database.session() as session:
        assert reviews.hold(session, ann.id, "a") is None
        assert validation.standing(session, sample.sample.id).reviewed == 1


def test_one_may_change_ones_mind_until_both_reviews_are_in(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    ann, bob = invited("Ann"), invited("Bob")
    say(database, ann, "a", True)
    say(database, ann, "a", False)
    with database.reading() as session:
        (mine,) = reviews.own(session, ann.id)
        assert mine.is_open and mine.review.valid is False
        assert reviews.own(session, bob.id) == []
    say(database, bob, "a", True)
    with pytest.raises(Conflict, match="stands as it was"):
        say(database, ann, "a", True)
    with database.reading() as session:
        assert [(one.is_open, one.review.valid) for one in reviews.own(session, ann.id)] == [(False, False)]


def test_only_disagreements_are_adjudicated_and_never_by_one_of_the_two(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    ann, bob, third = invited("Ann"), invited("Bob"), invited("Third", ADJUDICATOR)
    say(database, ann, "b", True)
    assert taken(database, third) is None
    say(database, bob, "b", False)
    say(database, ann, "c", True)
    say(database, bob, "c", True)
    with pytest.raises(Conflict):
        say(database, third, "c", False)
    with database.session() as session:
        validation.change_role(session, ann.id, ADJUDICATOR)
    assert taken(database, ann) is None
    assert taken(database, third) == "b"
    say(database, third, "b", False)
    say(database, third, "b", True)  # until the sample is closed
    with database.reading() as session:
        assert validation.standing(session, sample.sample.id) == Standing(4, 0, 2, 1, 1)
        assert [row.valid for row in reviews.of_item(session, sample.sample.id, "b")] == [True, False, True]


def test_a_closed_sample_takes_nothing(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    ann = invited("Ann")
    say(database, ann, "a", True)
    with database.session() as session:
        assert validation.close(session, sample.sample.id).is_closed
    for attempt in (
        lambda: taken(database, ann), lambda: say(database, ann, "a", False), lambda: invited("Bob"),
    ):  # fmt: skip
        with pytest.raises(Conflict, match="closed"):
            attempt()
    with database.reading() as session:
        assert [one.is_open for one in reviews.own(session, ann.id)] == [False]


def test_a_version_has_so_many_open_samples(
    database: Database, benchmark: BenchmarkRecord, sample: NewSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "MOST_OPEN", 1)
    row = ValidationSample(benchmark_version_id=benchmark.id, size=1, seed=1, lead_hash="")
    item = ValidationItem(sample_id="", item="x", place=0, query_id="q", tool_ids=["t"], subqueries=1, stratum_items=1)
    with pytest.raises(Conflict, match="close one first"), database.session() as session:
        validation.add_sample(session, row, [item])
    with database.session() as session:
        validation.close(session, sample.sample.id)
        assert validation.add_sample(session, row, [item]).sample.id != sample.sample.id


def test_half_a_verdict_is_refused(database: Database, sample: NewSample, invited: Callable[..., PersonRecord]) -> None:
    ann = invited("Ann")
    halves: list[tuple[str, str | None, bool, str]] = [
        ("  ", None, True, "needs a sentence"),
        ("x" * 1001, None, True, "needs a sentence"),
        ("a\u200bb", None, True, "needs a sentence"),
        ("No.", None, False, "kind of its fault"),
        ("Yes.", "other", True, "kind of its fault"),
    ]
    for reason, bucket, valid, words in halves:
        with pytest.raises(InvalidRecord, match=words), database.session() as session:
            reviews.give(session, ann.id, "a", valid=valid, reason=reason, bucket=bucket)
    with database.reading() as session:
        assert reviews.verdicts(session, sample.sample.id) == []


def test_people_who_hurry_never_share_a_slot(
    database: Database, sample: NewSample, invited: Callable[..., PersonRecord]
) -> None:
    """Six people at once: every item ends with exactly two verdicts of two people."""
    crowd = [invited(f"Person {number}") for number in range(6)]
    start = threading.Barrier(len(crowd))
    errors: list[BaseException] = []

    def work(person: PersonRecord) -> None:
        try:
            start.wait()
            while (item := taken(database, person)) is not None:
                say(database, person, item, True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(person,)) for person in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with database.reading() as session:
        said = reviews.verdicts(session, sample.sample.id)
    assert [(row.item, row.slot) for row in said] == [(item, slot) for item in "abcd" for slot in ("first", "second")]
    assert len({(row.item, row.reviewer_id) for row in said}) == 8
