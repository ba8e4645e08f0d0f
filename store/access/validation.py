"""Samples of accepted combinations that people review, and who was invited to.

There are no accounts yet: the secret in somebody's link is who they are. Only its hash is kept; it is shown once, and
making a new one ends the old one.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.database import exclusive
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion, new_token, utc_now
from store.records import record
from store.validation_models import (
    ReviewerRole,
    ReviewSlot,
    ValidationItem,
    ValidationReview,
    ValidationReviewer,
    ValidationSample,
)

#: People of one sample, and samples of one version that are reviewed at a time.
MOST_PEOPLE = 100
MOST_OPEN = 20
LONGEST_NAME = 100
LONGEST_NOTE = 500

_NO_LINK = "this link opens no review: it is not complete, or a new one was made since. Ask whoever sent it"


@dataclass(frozen=True)
class SampleRecord:
    """One sample; see ``store.validation_models.ValidationSample``."""

    id: str
    benchmark_version_id: int
    size: int
    seed: int
    note: str
    created_at: datetime
    closed_at: datetime | None

    @property
    def is_closed(self) -> bool:
        """Whether no more reviews are taken; its report is public then."""
        return self.closed_at is not None


@dataclass(frozen=True)
class PersonRecord:
    """Somebody who was invited; see ``store.validation_models.ValidationReviewer``."""

    id: str
    sample_id: str
    name: str
    role: str
    created_at: datetime


@dataclass(frozen=True)
class ItemRecord:
    """One item of a sample; see ``store.validation_models.ValidationItem``."""

    sample_id: str
    item: str
    place: int
    query_id: str
    tool_ids: tuple[str, ...]
    domain: str
    subqueries: int
    stratum_items: int
    reason: str
    judge: str


@dataclass(frozen=True)
class Opened:
    """Whose link a secret is.

    Attributes:
        person: None for the lead.
    """

    sample: SampleRecord
    person: PersonRecord | None


@dataclass(frozen=True)
class NewSample:
    """A sample at the only moment that its lead's secret can be read."""

    sample: SampleRecord
    secret: str


@dataclass(frozen=True)
class NewPerson:
    """Somebody at the only moment that their secret can be read."""

    person: PersonRecord
    secret: str


@dataclass(frozen=True)
class Standing:
    """How far a sample is.

    Attributes:
        items: how many there are.
        begun: with one of the two reviews.
        reviewed: with both.
        disputed: with both, which disagree.
        adjudicated: of those, decided by a third person.
    """

    items: int
    begun: int
    reviewed: int
    disputed: int
    adjudicated: int

    @property
    def decided(self) -> int:
        """Items with a final verdict."""
        return self.reviewed - self.disputed + self.adjudicated


def add_sample(session: Session, sample: ValidationSample, items: Sequence[ValidationItem]) -> NewSample:
    """Store a sample with its items; the lead's secret is in the answer and nowhere else.

    Args:
        session: of ``Database.session``.
        sample: a new row; its ``lead_hash`` is set here.
        items: new rows; their ``sample_id`` and ``place`` are set here, in the order given.

    Raises:
        NotFound: the benchmark version is not stored.
        InvalidRecord: there are no items, or the note is too long or has invisible characters.
        Conflict: too many samples of the version are open.
    """
    exclusive(session, f"samples {sample.benchmark_version_id}")
    if session.get(BenchmarkVersion, sample.benchmark_version_id) is None:
        raise NotFound(f"no benchmark version has the id {sample.benchmark_version_id}")
    if not items:
        raise InvalidRecord("a sample needs at least one item")
    if sum(not known.is_closed for known in list_samples(session, sample.benchmark_version_id)) >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} samples of this version are open: close one first (`equirank validation close`)")
    sample.note = _text("note", sample.note, LONGEST_NOTE, empty=True)
    secret = new_token()
    sample.lead_hash = _digest(secret)
    session.add(sample)
    session.flush()
    for place, item in enumerate(items):
        item.sample_id, item.place = sample.id, place
    session.add_all(items)
    session.flush()
    return NewSample(record(SampleRecord, sample), secret)


def list_samples(session: Session, benchmark_version_id: int | None = None) -> list[SampleRecord]:
    """Samples of one version, or all of them; newest first."""
    query = select(ValidationSample)
    if benchmark_version_id is not None:
        query = query.where(col(ValidationSample.benchmark_version_id) == benchmark_version_id)
    query = query.order_by(col(ValidationSample.created_at).desc(), col(ValidationSample.id))
    return [record(SampleRecord, row) for row in session.scalars(query)]


def get_sample(session: Session, sample_id: str) -> SampleRecord:
    """A sample by id.

    Raises:
        NotFound: there is none.
    """
    return record(SampleRecord, _sample(session, sample_id))


def open_link(session: Session, secret: str) -> Opened:
    """Whose link this is. The look-up is by hash.

    Raises:
        NotFound: nobody's, or not any more; the two cannot be told apart.
    """
    digest = _digest(secret)
    person = session.scalars(select(ValidationReviewer).where(col(ValidationReviewer.secret_hash) == digest)).first()
    if person is not None:
        return Opened(get_sample(session, person.sample_id), record(PersonRecord, person))
    sample = session.scalars(select(ValidationSample).where(col(ValidationSample.lead_hash) == digest)).first()
    if sample is None:
        raise NotFound(_NO_LINK)
    return Opened(record(SampleRecord, sample), None)


def renew_lead(session: Session, sample_id: str) -> str:
    """A new secret for the lead; the old link opens nothing from now on.

    Raises:
        NotFound: there is no such sample.
    """
    row = _sample(session, sample_id, lock=True)
    secret = new_token()
    row.lead_hash = _digest(secret)
    session.flush()
    return secret


def close(session: Session, sample_id: str) -> SampleRecord:
    """Take no more reviews and make the report public. It cannot be opened again: its verdicts can be read now.

    Raises:
        NotFound: there is no such sample.
    """
    exclusive(session, lock_of(sample_id))
    row = _sample(session, sample_id, lock=True)
    if row.closed_at is None:
        row.closed_at = utc_now()
    session.flush()
    return record(SampleRecord, row)


def invite(session: Session, sample_id: str, name: str, role: ReviewerRole) -> NewPerson:
    """Invite somebody to an open sample; their secret is in the answer and nowhere else.

    Raises:
        NotFound: there is no such sample.
        Conflict: somebody of that name was invited already, the sample is closed, or there are too many people.
        InvalidRecord: the name is empty, too long or has invisible characters.
    """
    exclusive(session, lock_of(sample_id))
    refuse_closed(_sample(session, sample_id))
    shown = _text("name", name, LONGEST_NAME)
    known = people(session, sample_id)
    if any(_compared(person.name) == _compared(shown) for person in known):
        raise Conflict(f"{shown} was invited already; make a new link for them if theirs is lost")
    if len(known) >= MOST_PEOPLE:
        raise Conflict(f"{len(known)} people were invited; that is the most for one sample")
    secret = new_token()
    row = ValidationReviewer(
        sample_id=sample_id, name=shown, role=ReviewerRole(role).value, secret_hash=_digest(secret)
    )
    session.add(row)
    session.flush()
    return NewPerson(record(PersonRecord, row), secret)


def renew(session: Session, person_id: str) -> NewPerson:
    """A new secret for somebody; their old link opens nothing from now on, and their reviews stay.

    Raises:
        NotFound: there is no such person.
    """
    row = _person(session, person_id, lock=True)
    secret = new_token()
    row.secret_hash = _digest(secret)
    session.flush()
    return NewPerson(record(PersonRecord, row), secret)


def change_role(session: Session, person_id: str, role: ReviewerRole) -> PersonRecord:
    """Let a reviewer adjudicate, or the other way round; nobody ever adjudicates what they reviewed.

    Raises:
        NotFound: there is no such person.
        Conflict: the sample is closed.
    """
    row = _person(session, person_id, lock=True)
    exclusive(session, lock_of(row.sample_id))
    refuse_closed(_sample(session, row.sample_id))
    row.role = ReviewerRole(role).value
    session.flush()
    return record(PersonRecord, row)


def people(session: Session, sample_id: str) -> list[PersonRecord]:
    """Who was invited, in that order."""
    query = (
        select(ValidationReviewer)
        .where(col(ValidationReviewer.sample_id) == sample_id)
        .order_by(col(ValidationReviewer.created_at), col(ValidationReviewer.id))
    )
    return [record(PersonRecord, row) for row in session.scalars(query)]


def find_person(session: Session, sample_id: str, name: str) -> PersonRecord:
    """Somebody by name; case and letters of another width apart.

    Raises:
        NotFound: nobody of that name was invited.
    """
    known = people(session, get_sample(session, sample_id).id)
    wanted = _compared(name)
    for person in known:
        if _compared(person.name) == wanted:
            return person
    names = ", ".join(person.name for person in known) or "nobody"
    raise NotFound(f"nobody called {name!r} was invited; invited: {names}")


def given(session: Session, sample_id: str) -> dict[str, int]:
    """Person id → verdicts that they gave; whoever gave none is left out."""
    query = (
        select(col(ValidationReview.reviewer_id), func.count())
        .where(col(ValidationReview.sample_id) == sample_id, col(ValidationReview.made_at).is_not(None))
        .group_by(col(ValidationReview.reviewer_id))
    )
    return {row[0]: row[1] for row in session.execute(query)}


def items(session: Session, sample_id: str) -> list[ItemRecord]:
    """The items, in the order of the draw."""
    query = (
        select(ValidationItem)
        .where(col(ValidationItem.sample_id) == sample_id)
        .order_by(col(ValidationItem.place), col(ValidationItem.item))
    )
    return [record(ItemRecord, row) for row in session.scalars(query)]


def standing(session: Session, sample_id: str) -> Standing:
    """How far a sample is, counted from the verdicts that were given."""
    counted = session.scalar(
        select(func.count()).select_from(ValidationItem).where(col(ValidationItem.sample_id) == sample_id)
    )
    query = select(col(ValidationReview.item), col(ValidationReview.slot), col(ValidationReview.valid)).where(
        col(ValidationReview.sample_id) == sample_id, col(ValidationReview.valid).is_not(None)
    )
    said: dict[str, dict[str, bool]] = {}
    for item, slot, valid in session.execute(query):
        said.setdefault(item, {})[slot] = valid
    first, second, third = (slot.value for slot in ReviewSlot)
    both = [slots for slots in said.values() if first in slots and second in slots]
    disputed = [slots for slots in both if slots[first] != slots[second]]
    return Standing(
        items=counted or 0,
        begun=len(said) - len(both),
        reviewed=len(both),
        disputed=len(disputed),
        adjudicated=sum(third in slots for slots in disputed),
    )


def lock_of(sample_id: str) -> str:
    """What ``exclusive`` is asked for by everything that hands out or takes reviews of a sample."""
    return f"validation {sample_id}"


def refuse_closed(sample: ValidationSample) -> None:
    """Refuse what an open sample allows.

    Raises:
        Conflict: it is closed.
    """
    if sample.closed_at is not None:
        raise Conflict("this review is closed: nothing can be added to it any more")


def _sample(session: Session, sample_id: str, *, lock: bool = False) -> ValidationSample:
    row = session.get(ValidationSample, sample_id, with_for_update=lock or None)
    if row is None:
        raise NotFound(f"no sample has the id {sample_id!r}: `equirank validation list` names them")
    return row


def _person(session: Session, person_id: str, *, lock: bool = False) -> ValidationReviewer:
    row = session.get(ValidationReviewer, person_id, with_for_update=lock or None)
    if row is None:
        raise NotFound(f"nobody who was invited has the id {person_id!r}")
    return row


def _compared(name: str) -> str:
    """A name as it is compared: two that look alike are one, whichever way their letters are encoded."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _text(what: str, value: str, longest: int, *, empty: bool = False) -> str:
    shown = " ".join(value.split())
    if not (shown or empty) or len(shown) > longest or has_unseen(shown):
        least = 0 if empty else 1
        raise InvalidRecord(f"the {what} is {least} to {longest} characters, without control or invisible characters")
    return shown
