"""Tables of what people say about labels: reviewed samples of accepted combinations, and disputed verdicts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, ForeignKeyConstraint, String, Text, UniqueConstraint
from sqlmodel import Field

from store.models import Table, _one_of, new_run_id, utc_now


class ReviewerRole(StrEnum):
    """A ``reviewer`` judges items blind; an ``adjudicator`` decides where two reviewers disagree."""

    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"


class ReviewSlot(StrEnum):
    """The two independent reviews of an item, and the one that decides a disagreement."""

    FIRST = "first"
    SECOND = "second"
    THIRD = "third"


class DisputeSubject(StrEnum):
    """What is disputed: whether a tool serves a sub-query, or whether a set answers a query."""

    EQUIVALENT = "equivalent"
    COMBINATION = "combination"


class DisputeState(StrEnum):
    """How far a dispute is."""

    OPEN = "open"
    UPHELD = "upheld"
    REJECTED = "rejected"


class ValidationSample(Table, table=True):
    """Accepted combinations of one benchmark version that people review.

    Attributes:
        size: items that were asked for; there may be fewer.
        seed: of the draw.
        note: the lead's words.
        lead_hash: sha256 hex of the lead's secret, which reads the report and invites reviewers.
        closed_at: since when no more reviews are taken and the report is public; null while it is open.
    """

    __tablename__ = "validation_sample"

    id: str = Field(default_factory=new_run_id, primary_key=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id", index=True)
    size: int
    seed: int
    note: str = Field(default="", sa_type=Text)
    lead_hash: str = Field(unique=True)
    created_at: datetime = Field(default_factory=utc_now)
    closed_at: datetime | None = None


class ValidationReviewer(Table, table=True):
    """Somebody who was invited; known by the secret in their link.

    Attributes:
        name: unique within the sample.
        secret_hash: sha256 hex of the secret.
    """

    __tablename__ = "validation_reviewer"
    __table_args__ = (_one_of("role", ReviewerRole), UniqueConstraint("sample_id", "name"))

    id: str = Field(default_factory=new_run_id, primary_key=True)
    sample_id: str = Field(foreign_key="validation_sample.id", index=True)
    name: str
    role: str = ReviewerRole.REVIEWER
    secret_hash: str = Field(unique=True)
    created_at: datetime = Field(default_factory=utc_now)


class ValidationItem(Table, table=True):
    """One accepted combination of a sample; see ``pipeline.toolex.sampling.ITEMS``."""

    __tablename__ = "validation_item"

    sample_id: str = Field(
        sa_column=Column(String, ForeignKey("validation_sample.id", ondelete="CASCADE"), primary_key=True)
    )
    item: str = Field(primary_key=True)
    place: int
    query_id: str
    tool_ids: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    domain: str = ""
    subqueries: int
    stratum_items: int
    reason: str = Field(default="", sa_type=Text)
    judge: str = ""


class ValidationReview(Table, table=True):
    """One person's word on one item, or that the item lies before them.

    Attributes:
        valid: the verdict; null as long as the item is only taken.
        reason: a sentence.
        bucket: ``pipeline.toolex.validation.Bucket`` when it is invalid, else null.
        taken_at: when the item was last handed out to the person.
        made_at: when the verdict was last given.
    """

    __tablename__ = "validation_review"
    __table_args__ = (
        _one_of("slot", ReviewSlot),
        CheckConstraint("valid IS NULL OR valid = (bucket IS NULL)", name="bucket"),
        CheckConstraint("(valid IS NULL) = (made_at IS NULL)", name="made"),
        ForeignKeyConstraint(
            ["sample_id", "item"], ["validation_item.sample_id", "validation_item.item"], ondelete="CASCADE"
        ),
        UniqueConstraint("sample_id", "item", "reviewer_id"),
    )

    sample_id: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    slot: str = Field(primary_key=True)
    reviewer_id: str = Field(foreign_key="validation_reviewer.id", index=True)
    valid: bool | None = None
    reason: str = Field(default="", sa_type=Text)
    bucket: str | None = None
    taken_at: datetime = Field(default_factory=utc_now)
    made_at: datetime | None = None


class Dispute(Table, table=True):
    """Somebody says that a verdict of a benchmark version is wrong.

    Attributes:
        position: of the sub-query; null for a combination.
        tool_ids: the tool, or the set.
        claimed_valid: what the verdict should be.
        person: who says so.
        resolution: the keeper's words.
    """

    __tablename__ = "dispute"
    __table_args__ = (
        _one_of("subject", DisputeSubject),
        _one_of("state", DisputeState),
        CheckConstraint("(subject = 'equivalent') = (position IS NOT NULL)", name="position"),
    )

    id: str = Field(default_factory=new_run_id, primary_key=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id", index=True)
    query_id: str
    subject: str
    position: int | None = None
    tool_ids: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    claimed_valid: bool
    reason: str = Field(sa_type=Text)
    person: str = ""
    state: str = DisputeState.OPEN
    resolution: str = Field(default="", sa_type=Text)
    resolved_by: str = ""
    created_at: datetime = Field(default_factory=utc_now)
    resolved_at: datetime | None = None
