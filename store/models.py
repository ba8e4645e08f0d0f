"""The SQL tables.

Benchmark content, rankings and per-query scores are artifacts (``store.artifacts``); a row holds their hashes.
Closed sets are text with a CHECK constraint, times are UTC with a zone, figures are fractions in full precision.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlmodel import Field, SQLModel

#: Constraint names are the same on every database, so that migrations can address them.
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(SQLModel):
    """Base of all tables, with metadata of its own: nothing else's tables can get into the migrations."""

    metadata = MetaData(naming_convention=NAMING)


class Level(StrEnum):
    """What was asked: the whole query, or its sub-queries one by one (a diagnostic that knows the needs)."""

    QUERY = "query"
    SUB_QUERY = "sub-query"


class Provenance(StrEnum):
    """Where a run's figures come from: printed in a paper, an uploaded ranking, retrieved by this site."""

    REPORTED = "reported"
    UPLOADED = "uploaded"
    MEASURED = "measured"


class State(StrEnum):
    """How far a run is."""

    VALIDATED = "validated"
    SCORED = "scored"
    IN_REVIEW = "in_review"
    PUBLISHED = "published"
    WITHDRAWN = "withdrawn"


class Visibility(StrEnum):
    """Who may see a run; a private one is in no list and is read through its token."""

    PUBLIC = "public"
    PRIVATE = "private"


class Trained(StrEnum):
    """Whether the retriever was trained on the benchmark; never assumed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class View(StrEnum):
    """Scored against C* alone, or the best over all valid combinations."""

    OLD = "old"
    NEW = "new"


class AverageOf(StrEnum):
    """What a figure is the mean of: domain means, all queries, one domain's queries, one source's queries."""

    MACRO = "macro"
    MICRO = "micro"
    DOMAIN = "domain"
    SOURCE = "source"


class SubmissionState(StrEnum):
    """How far a submitted file is; ``refused`` and ``failed`` keep the report or the error."""

    RECEIVED = "received"
    VALIDATED = "validated"
    SCORED = "scored"
    REFUSED = "refused"
    FAILED = "failed"


def utc_now() -> datetime:
    """The present moment, with its zone."""
    return datetime.now(UTC)


#: Without 0, 1, i, l, o: ids are read aloud and typed.
_ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def new_run_id() -> str:
    """14 characters, 69 bits: short enough for an address, too long to guess."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(14))


def new_token() -> str:
    """The unguessable part of a private link (192 bits)."""
    return secrets.token_urlsafe(24)


def _one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{value.value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _json(nullable: bool = False) -> Any:
    return Column(JSON(none_as_null=True), nullable=nullable)


class BenchmarkVersion(Table, table=True):
    """One version of a benchmark; without content (``content_hash`` null) it only carries reported figures.

    Attributes:
        headline: ``macro`` or ``micro``, the average that ranks the leaderboard.
        parents: ``slug@version`` of the versions it was made from.
        domains: ``[{"name", "n"}]`` in the benchmark's order, n counted in queries, null where not known.
        sources: ``[{"name", "n"}]``.
        statistics: Table 1 figures and distributions, by name.
        ks: cutoffs that runs are scored at.
        artifacts: table name (``tools``, ``queries``, …) → artifact hash.
        compiled_key: key of the compiled ground truth in the cache.
    """

    __tablename__ = "benchmark_version"
    __table_args__ = (
        UniqueConstraint("slug", "version"),
        CheckConstraint("kind IN ('tool', 'skill')", name="kind"),
        CheckConstraint("headline IN ('macro', 'micro')", name="headline"),
    )

    id: int | None = Field(default=None, primary_key=True)
    slug: str
    version: str
    title: str
    kind: str
    licence: str = ""
    source: str = ""
    revision: str = ""
    headline: str = "micro"
    parents: list[str] = Field(default_factory=list, sa_column=_json())
    content_hash: str | None = Field(default=None, index=True)
    queries: int | None = None
    tools: int | None = None
    subqueries: int | None = None
    equivalents: int | None = None
    combinations: int | None = None
    domains: list[dict[str, Any]] = Field(default_factory=list, sa_column=_json())
    sources: list[dict[str, Any]] = Field(default_factory=list, sa_column=_json())
    statistics: dict[str, Any] = Field(default_factory=dict, sa_column=_json())
    ks: list[int] = Field(default_factory=lambda: [1, 5, 10, 20], sa_column=_json())
    artifacts: dict[str, str] = Field(default_factory=dict, sa_column=_json())
    compiled_key: str | None = None
    citation: str = Field(default="", sa_type=Text)
    notes: list[str] = Field(default_factory=list, sa_column=_json())
    is_demo: bool = False
    created_at: datetime = Field(default_factory=utc_now)


class Retriever(Table, table=True):
    """A retriever of the registry or one that a submitter named.

    Attributes:
        key: registry key, or derived from the submitted name.
        name_folded: the name, case-folded with single spaces: how a submitted name finds its retriever.
        parameters: number of weights.
        dimension: length of an embedding.
        base_key: key of the retriever that it was fine-tuned from (may name one that is not stored).
    """

    __tablename__ = "retriever"

    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(unique=True)
    name: str
    name_folded: str = Field(default="", index=True)
    family: str = ""
    parameters: int | None = Field(default=None, sa_type=BigInteger)
    dimension: int | None = None
    fine_tuned: bool | None = None
    base_key: str | None = Field(default=None, index=True)
    open_weights: bool | None = None
    licence: str = ""
    link: str = ""
    notes: str = Field(default="", sa_type=Text)
    created_at: datetime = Field(default_factory=utc_now)


class Run(Table, table=True):
    """One scored ranking, or one line of a published table.

    A leaderboard row is the newest published public run of a benchmark version with the same retriever, method,
    level, contract, provenance and place; the older ones stay as its versions.

    Attributes:
        id: public and unguessable.
        contract: label of the encoding contract or setting (``card``, ``paper``, ``with instruction``, …).
        contract_hash: hash of prefix, pooling, normalisation, dtype, maximum length and revision, if known.
        private_token: what opens a private run; made anew whenever the run becomes private.
        place: where a reported figure is printed (``ToolEX Table 2``).
        ranking_hash: hash of the ranking itself; equal rankings have equal hashes.
        ranking_artifact, per_query_artifact, raw_artifact: hashes of files in the artifact store.
        benchmark_hash: the benchmark's content hash when the run was scored.
        flags: ``missing:4``, ``ties``, ``shallow``, ``partial``, …; ``partial`` is never ranked.
        efficiency: what a measured run cost, by name: ``encode_seconds_per_1000_documents``, ``query_ms``,
            ``dimension``, ``parameters``, ``index_bytes``, ``device``, ``llm_calls_per_query``, ….
        method_settings: what a measured run's method was set to beyond its contract, by name (preset, field texts,
            parameters, the model's own contract hash); null where the method has no settings.
        statistics_artifact: hash of the run's other readings (``store.access.statistics``); null until they are made.
        statistics_version: of the code that made them and the intervals.
        statistics_at: when.
    """

    __tablename__ = "run"
    __table_args__ = (
        _one_of("level", Level),
        _one_of("provenance", Provenance),
        _one_of("state", State),
        _one_of("visibility", Visibility),
        _one_of("trained_on_benchmark", Trained),
        CheckConstraint("state <> 'published' OR published_at IS NOT NULL", name="published_at"),
        CheckConstraint("provenance = 'reported' OR ranking_artifact IS NOT NULL", name="ranking"),
        CheckConstraint("visibility <> 'private' OR private_token IS NOT NULL", name="private_token"),
        Index("ix_run_board", "benchmark_version_id", "state", "visibility"),
        Index("ix_run_ranking", "benchmark_version_id", "ranking_hash"),
        Index(
            "uq_run_reported",
            "benchmark_version_id",
            "place",
            "retriever_id",
            "method",
            "level",
            "contract",
            unique=True,
            sqlite_where=text("provenance = 'reported'"),
            postgresql_where=text("provenance = 'reported'"),
        ),
    )

    id: str = Field(default_factory=new_run_id, primary_key=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id")
    retriever_id: int = Field(foreign_key="retriever.id", index=True)
    method: str = "full-doc"
    level: str = Level.QUERY.value
    contract: str = ""
    contract_hash: str | None = None
    provenance: str
    state: str = State.SCORED.value
    visibility: str = Visibility.PUBLIC.value
    private_token: str | None = Field(default=None, unique=True)
    place: str = ""
    ranking_artifact: str | None = None
    ranking_hash: str | None = None
    per_query_artifact: str | None = None
    raw_artifact: str | None = None
    raw_name: str | None = None
    scorer_version: str | None = None
    benchmark_hash: str | None = None
    depth: int | None = None
    queries_total: int | None = None
    queries_answered: int | None = None
    missing: int | None = None
    flags: list[str] = Field(default_factory=list, sa_column=_json())
    notes: list[str] = Field(default_factory=list, sa_column=_json())
    efficiency: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
    method_settings: dict[str, Any] | None = Field(default=None, sa_column=_json(nullable=True))
    statistics_artifact: str | None = None
    statistics_version: str | None = None
    statistics_at: datetime | None = None
    trained_on_benchmark: str = Trained.UNKNOWN.value
    link: str = ""
    licence: str = ""
    created_at: datetime = Field(default_factory=utc_now)
    published_at: datetime | None = None
    withdrawn_at: datetime | None = None


class MetricSummary(Table, table=True):
    """One figure of a run: a fraction in [0, 1], with the digits printed when it comes from a paper.

    The key is ordered so that a board's figure is one look-up a run, and all figures of a run lie together.

    Attributes:
        domain: the domain or source that the mean is over, "" for macro and micro.
        n: queries in the mean.
        low, high: ends of the 95 % interval.
    """

    __tablename__ = "metric_summary"
    __table_args__ = (
        CheckConstraint("view IN ('old', 'new')", name="view"),
        _one_of("average", AverageOf),
        CheckConstraint("k >= 1", name="k"),
        CheckConstraint("value >= 0 AND value <= 1", name="value"),
        CheckConstraint("average IN ('domain', 'source') OR domain = ''", name="domain"),
        {"sqlite_with_rowid": False},
    )

    run_id: str = Field(sa_column=Column(String, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True))
    metric: str = Field(primary_key=True)
    k: int = Field(primary_key=True)
    average: str = Field(primary_key=True)
    domain: str = Field(default="", primary_key=True)
    view: str = Field(primary_key=True)
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    printed: str | None = None
    note: str | None = None


class Submission(Table, table=True):
    """One submitted file and what became of it.

    Attributes:
        run_id: the run that it became; null when it was refused or failed.
        person: who submitted; ``local`` in single-user mode.
        contact: for the operator only, never shown.
        report: how the file was read, in the shape of ``equirank validate --format json``.
    """

    __tablename__ = "submission"
    __table_args__ = (
        _one_of("state", SubmissionState),
        Index("ix_submission_person_created_at", "person", "created_at"),
    )

    id: int | None = Field(default=None, primary_key=True)
    run_id: str | None = Field(default=None, foreign_key="run.id", unique=True)
    benchmark_version_id: int = Field(foreign_key="benchmark_version.id")
    person: str = "local"
    contact: str = ""
    link: str = ""
    licence: str = ""
    file_name: str = ""
    size: int | None = Field(default=None, sa_type=BigInteger)
    sha256: str | None = None
    order: str | None = Field(default=None, sa_column=Column("declared_order", String, nullable=True))
    part: str | None = None
    report: dict[str, Any] = Field(default_factory=dict, sa_column=_json())
    state: str = SubmissionState.RECEIVED.value
    last_error: str = Field(default="", sa_type=Text)
    created_at: datetime = Field(default_factory=utc_now)
    updated_at: datetime = Field(default_factory=utc_now)


class Worker(Table, table=True):
    """A process that does jobs, seen alive a moment ago; it takes its row away when it stops in order.

    Attributes:
        id: the name that the job system knows it by.
        host: name of its machine.
        pid: its process there.
        queues: what it serves.
        device: ``cpu`` or ``gpu``.
        seen_at: its last heartbeat, by the database's clock.
    """

    __tablename__ = "worker"

    id: str = Field(primary_key=True)
    host: str
    pid: int
    queues: list[str] = Field(default_factory=list, sa_column=_json())
    device: str = "cpu"
    started_at: datetime = Field(default_factory=utc_now)
    seen_at: datetime = Field(default_factory=utc_now)
