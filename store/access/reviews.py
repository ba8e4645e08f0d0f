"""Handing out the items of a sample, and taking verdicts on them.

An item has two slots for reviewers who see nothing of each other, and a third for whoever decides where they disagree.
Handing an item out takes a slot, so that nobody's work is in vain; who leaves it without a verdict loses it to the next
person after ``HELD``. Everything that takes a slot or a verdict is alone with its sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, select
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.access.validation import ItemRecord, _person, _sample, lock_of, refuse_closed
from store.database import exclusive
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import utc_now
from store.records import record
from store.validation_models import (
    ReviewerRole,
    ReviewSlot,
    ValidationItem,
    ValidationReview,
    ValidationReviewer,
)

#: How long an item stays with somebody who has not given a verdict, once another person could have it.
HELD = timedelta(hours=2)
LONGEST_REASON = 1_000
#: What may be wrong with an item: the values of ``pipeline.toolex.validation.Bucket``, which this floor cannot import.
BUCKETS = (
    "decomposition ambiguity",
    "near-synonym but not substitutable",
    "incomplete coverage",
    "cross-platform mismatch",
    "other",
)

_PAIR = (ReviewSlot.FIRST.value, ReviewSlot.SECOND.value)
_THIRD = ReviewSlot.THIRD.value


@dataclass(frozen=True)
class ReviewRecord:
    """One verdict, or an item that somebody has before them; see ``store.validation_models.ValidationReview``."""

    sample_id: str
    item: str
    slot: str
    reviewer_id: str
    valid: bool | None
    reason: str
    bucket: str | None
    taken_at: datetime
    made_at: datetime | None


@dataclass(frozen=True)
class OwnReview:
    """A verdict as the person sees it who gave it.

    Attributes:
        is_open: whether they may still change it.
    """

    item: ItemRecord
    review: ReviewRecord
    is_open: bool


def take_next(
    session: Session, person_id: str, *, after: int | None = None, now: datetime | None = None
) -> ItemRecord | None:
    """Hand out the next item that waits for this person; None when none does.

    A reviewer gets items without a verdict of theirs that have a free slot, an adjudicator those that two others
    disagree about. What the person had before them without a verdict is given back, unless it is the same item.

    Args:
        session: of ``Database.session``.
        person_id: of a reviewer or adjudicator.
        after: start behind this place and come round: to skip an item.
        now: the present moment.

    Raises:
        NotFound: there is no such person.
        Conflict: the sample is closed.
    """
    moment = now or utc_now()
    person = _locked(session, person_id)
    offered = _waiting(session, person, moment)
    if after is not None:
        offered.sort(key=lambda found: found[1] <= after)
    row = _item(session, person.sample_id, offered[0][0]) if offered else None
    for held in session.scalars(
        select(ValidationReview).where(
            col(ValidationReview.reviewer_id) == person_id, col(ValidationReview.made_at).is_(None)
        )
    ).all():
        if row is None or held.item != row.item:
            session.delete(held)
    session.flush()
    if row is None:
        return None
    _take(session, person, row.item, moment)
    session.flush()
    return record(ItemRecord, row)


def hold(session: Session, person_id: str, item: str, *, now: datetime | None = None) -> ItemRecord | None:
    """Keep an item for the person who has it before them; None when it is no longer theirs to review.

    Raises:
        NotFound: there is no such person or item.
        Conflict: the sample is closed.
    """
    moment = now or utc_now()
    person = _locked(session, person_id)
    row = _item(session, person.sample_id, item)
    slot = _take(session, person, item, moment)
    session.flush()
    return None if slot is None else record(ItemRecord, row)


def give(
    session: Session,
    person_id: str,
    item: str,
    *,
    valid: bool,
    reason: str,
    bucket: str | None = None,
    now: datetime | None = None,
) -> ReviewRecord:
    """Store a verdict, or change one's own while that is allowed.

    A reviewer may change theirs until the item has both reviews, an adjudicator until the sample is closed.

    Args:
        session: of ``Database.session``.
        person_id: who gives it.
        item: of the person's sample.
        valid: the verdict.
        reason: a sentence.
        bucket: why it is invalid; None when it is valid.
        now: the present moment.

    Raises:
        NotFound: there is no such person or item.
        Conflict: the sample is closed, the item does not wait for this person, or their verdict stands already.
        InvalidRecord: the reason is empty, too long or has invisible characters; the bucket is unknown or
            does not fit the verdict.
    """
    moment = now or utc_now()
    said = " ".join(reason.split())
    if not said or len(said) > LONGEST_REASON or has_unseen(said):
        raise InvalidRecord(
            f"a verdict needs a sentence of 1 to {LONGEST_REASON} characters that says why, "
            "without control or invisible characters"
        )
    if valid != (bucket is None):
        raise InvalidRecord("an invalid item needs the kind of its fault, a valid one has none")
    if bucket is not None and bucket not in BUCKETS:
        raise InvalidRecord(f"an item is not invalid as {bucket[:80]!r}: choose {', '.join(BUCKETS)}")
    person = _locked(session, person_id)
    _item(session, person.sample_id, item)
    slots = _slots(session, person.sample_id, item).get(item, [])
    own_slot = next((one.slot for one in slots if one.reviewer_id == person_id and one.made_at is not None), None)
    if own_slot is not None and not _is_open(own_slot, slots):
        raise Conflict("the item has both its reviews now, so that your verdict stands as it was")
    if own_slot is None:
        mine = _take(session, person, item, moment)
    else:
        mine = session.get(ValidationReview, (person.sample_id, item, own_slot))
    if mine is None:
        raise Conflict(
            "this item needs no verdict of yours any more: others have reviewed it while it lay before you. "
            "Nothing was stored"
        )
    mine.valid, mine.reason, mine.bucket, mine.made_at = valid, said, bucket, moment
    session.flush()
    return record(ReviewRecord, mine)


def waiting(session: Session, person_id: str, *, now: datetime | None = None) -> int:
    """How many items wait for this person, the one before them included.

    Raises:
        NotFound: there is no such person.
    """
    return len(_waiting(session, _person(session, person_id), now or utc_now()))


def own(session: Session, person_id: str) -> list[OwnReview]:
    """The verdicts that this person gave, the latest first.

    Raises:
        NotFound: there is no such person.
    """
    person = _person(session, person_id)
    closed = _sample(session, person.sample_id).closed_at is not None
    slots = _slots(session, person.sample_id)
    query = (
        select(ValidationReview, ValidationItem)
        .join(
            ValidationItem,
            and_(
                col(ValidationItem.sample_id) == col(ValidationReview.sample_id),
                col(ValidationItem.item) == col(ValidationReview.item),
            ),
        )
        .where(col(ValidationReview.reviewer_id) == person_id, col(ValidationReview.made_at).is_not(None))
        .order_by(col(ValidationReview.made_at).desc(), col(ValidationItem.place).desc())
    )
    return [
        OwnReview(
            record(ItemRecord, item),
            record(ReviewRecord, review),
            not closed and _is_open(review.slot, slots[item.item]),
        )
        for review, item in session.execute(query).all()
    ]


def of_item(session: Session, sample_id: str, item: str) -> list[ReviewRecord]:
    """The verdicts on one item by slot: for whoever decides a disagreement, never for a reviewer."""
    query = (
        select(ValidationReview)
        .where(
            col(ValidationReview.sample_id) == sample_id,
            col(ValidationReview.item) == item,
            col(ValidationReview.made_at).is_not(None),
        )
        .order_by(col(ValidationReview.slot))
    )
    return [record(ReviewRecord, row) for row in session.scalars(query)]


def verdicts(session: Session, sample_id: str) -> list[ReviewRecord]:
    """Every verdict of a sample, by item and slot."""
    query = (
        select(ValidationReview)
        .where(col(ValidationReview.sample_id) == sample_id, col(ValidationReview.made_at).is_not(None))
        .order_by(col(ValidationReview.item), col(ValidationReview.slot))
    )
    return [record(ReviewRecord, row) for row in session.scalars(query)]


def _locked(session: Session, person_id: str) -> ValidationReviewer:
    """The person, alone with an open sample."""
    person = _person(session, person_id)
    exclusive(session, lock_of(person.sample_id))
    session.refresh(person)
    sample = _sample(session, person.sample_id)
    session.refresh(sample)
    refuse_closed(sample)
    return person


def _item(session: Session, sample_id: str, item: str) -> ValidationItem:
    row = session.get(ValidationItem, (sample_id, item))
    if row is None:
        raise NotFound(f"the sample has no item {item!r}")
    return row


class _Slot(NamedTuple):
    """What decides who may have an item: a taken slot, without its words."""

    slot: str
    reviewer_id: str
    valid: bool | None
    taken_at: datetime
    made_at: datetime | None


def _slots(session: Session, sample_id: str, item: str | None = None) -> dict[str, list[_Slot]]:
    """The taken slots by item, of a whole sample or of one item."""
    columns = [col(getattr(ValidationReview, name)) for name in ("item", *_Slot._fields)]
    query = select(*columns).where(col(ValidationReview.sample_id) == sample_id)
    if item is not None:
        query = query.where(col(ValidationReview.item) == item)
    found: dict[str, list[_Slot]] = {}
    for name, *values in session.execute(query):
        found.setdefault(name, []).append(_Slot(*values))
    return found


def _waiting(session: Session, person: ValidationReviewer, now: datetime) -> list[tuple[str, int]]:
    """Items that the person may be handed now and has given no verdict on, with their place in the draw, in its order.

    Rows of the whole sample are looked through, so only what decides is read of each.
    """
    slots = _slots(session, person.sample_id)
    query = (
        select(col(ValidationItem.item), col(ValidationItem.place))
        .where(col(ValidationItem.sample_id) == person.sample_id)
        .order_by(col(ValidationItem.place), col(ValidationItem.item))
    )
    return [
        (item, place)
        for item, place in session.execute(query)
        if _place_for(person, slots.get(item, []), now) is not None
    ]


def _is_open(slot: str, reviews: Sequence[_Slot]) -> bool:
    """Whether a verdict in this slot may still be changed, as far as the item goes."""
    return slot == _THIRD or sum(row.made_at is not None for row in reviews if row.slot in _PAIR) < 2


def _place_for(person: ValidationReviewer, reviews: Sequence[_Slot], now: datetime) -> str | None:
    """The slot of an item for the person's first verdict on it: the one they hold, a free one, or one left long ago.

    None where there is none for them: they gave a verdict, two others review it, or nothing is to be decided.
    """
    taken = {row.slot: row for row in reviews}
    pair = [taken[slot] for slot in _PAIR if slot in taken]
    if any(row.reviewer_id == person.id and row.made_at is not None for row in reviews):
        return None
    slots: tuple[str, ...] = _PAIR
    if person.role == ReviewerRole.ADJUDICATOR.value:
        if {row.valid for row in pair if row.made_at is not None} != {True, False}:
            return None
        slots = (_THIRD,)
    for slot in slots:
        if slot in taken and taken[slot].reviewer_id == person.id:
            return slot
    free = [slot for slot in slots if slot not in taken]
    left = [
        slot for slot in slots if slot in taken and taken[slot].made_at is None and taken[slot].taken_at <= now - HELD
    ]
    return next(iter(free + left), None)


def _take(session: Session, person: ValidationReviewer, item: str, now: datetime) -> ValidationReview | None:
    """The person's place in an item, None where there is none for them; it is held anew from now on."""
    slot = _place_for(person, _slots(session, person.sample_id, item).get(item, []), now)
    if slot is None:
        return None
    row = session.get(ValidationReview, (person.sample_id, item, slot))
    if row is not None:
        row.reviewer_id, row.taken_at = person.id, now
        return row
    made = ValidationReview(sample_id=person.sample_id, item=item, slot=slot, reviewer_id=person.id, taken_at=now)
    session.add(made)
    return made
