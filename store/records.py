"""What the reads of ``store.access`` return: frozen records that outlive their session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import inspect
from sqlmodel import SQLModel

R = TypeVar("R")


@dataclass(frozen=True)
class Count:
    """A domain or source of a benchmark and its number of queries, None where no paper prints it."""

    name: str
    n: int | None


@dataclass(frozen=True)
class BenchmarkRecord:
    """One benchmark version; see ``store.models.BenchmarkVersion`` for the fields."""

    id: int
    slug: str
    version: str
    title: str
    kind: str
    licence: str
    source: str
    revision: str
    headline: str
    parents: tuple[str, ...]
    content_hash: str | None
    queries: int | None
    tools: int | None
    subqueries: int | None
    equivalents: int | None
    combinations: int | None
    domains: tuple[Count, ...]
    sources: tuple[Count, ...]
    statistics: Mapping[str, Any]
    ks: tuple[int, ...]
    artifacts: Mapping[str, str]
    compiled_key: str | None
    citation: str
    notes: tuple[str, ...]
    is_demo: bool
    created_at: datetime

    @property
    def name(self) -> str:
        """``slug@version``."""
        return f"{self.slug}@{self.version}"

    @property
    def has_content(self) -> bool:
        """Whether runs can be scored against it; otherwise it only carries reported figures."""
        return self.content_hash is not None


@dataclass(frozen=True)
class RetrieverRecord:
    """One retriever; see ``store.models.Retriever`` for the fields."""

    id: int
    key: str
    name: str
    family: str
    parameters: int | None
    dimension: int | None
    fine_tuned: bool | None
    base_key: str | None
    open_weights: bool | None
    licence: str
    link: str
    notes: str
    created_at: datetime


@dataclass(frozen=True)
class RunRecord:
    """One run; see ``store.models.Run`` for the fields."""

    id: str
    benchmark_version_id: int
    retriever_id: int
    method: str
    level: str
    contract: str
    contract_hash: str | None
    provenance: str
    state: str
    visibility: str
    private_token: str | None
    place: str
    ranking_artifact: str | None
    ranking_hash: str | None
    per_query_artifact: str | None
    raw_artifact: str | None
    raw_name: str | None
    scorer_version: str | None
    benchmark_hash: str | None
    depth: int | None
    queries_total: int | None
    queries_answered: int | None
    missing: int | None
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    efficiency: Mapping[str, Any] | None
    method_settings: Mapping[str, Any] | None
    statistics_artifact: str | None
    statistics_version: str | None
    statistics_at: datetime | None
    trained_on_benchmark: str
    link: str
    licence: str
    created_at: datetime
    published_at: datetime | None
    withdrawn_at: datetime | None


@dataclass(frozen=True)
class BoardStatisticsRecord:
    """What was computed over a board; see ``store.statistics_models.BoardStatistics``."""

    benchmark_version_id: int
    computed_from: str
    tie_groups_artifact: str
    gains_artifact: str
    made_at: datetime


@dataclass(frozen=True)
class WorkerRecord:
    """One worker; see ``store.models.Worker``.

    Attributes:
        silent_s: seconds since its last heartbeat, by the database's clock.
    """

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    device: str
    started_at: datetime
    seen_at: datetime
    silent_s: float


@dataclass(frozen=True)
class SubmissionRecord:
    """One submitted file; see ``store.models.Submission``. ``contact`` is for the operator, never for a page."""

    id: int
    run_id: str | None
    benchmark_version_id: int
    person: str
    contact: str
    link: str
    licence: str
    file_name: str
    size: int | None
    sha256: str | None
    order: str | None
    part: str | None
    report: Mapping[str, Any]
    state: str
    last_error: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class TokenRecord:
    """One API token without its secret; see ``store.token_models.ApiToken``."""

    id: str
    label: str
    person: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def state(self, now: datetime) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True)
class Summary:
    """One figure of a run, a fraction in [0, 1].

    Attributes:
        view: ``old`` or ``new``.
        metric: ``NDCG``, ``Recall`` or ``Comp``.
        k: cutoff, 1 or more.
        average: ``macro``, ``micro``, ``domain`` or ``source``.
        domain: the domain's or source's name, "" for macro and micro.
        low, high: ends of the 95 % interval.
        n: queries in the mean.
        printed: the digits as a paper prints them.
        note: a remark on this one figure.
    """

    view: str
    metric: str
    k: int
    average: str
    value: float
    domain: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    printed: str | None = None
    note: str | None = None


def record(kind: type[R], row: SQLModel) -> R:
    """Copy a row into its record; JSON lists become tuples."""
    columns = set(inspect(type(row)).column_attrs.keys())
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in columns:
            continue
        value = getattr(row, field.name)
        if field.name in {"domains", "sources"}:
            value = tuple(Count(str(item["name"]), item["n"]) for item in value)
        elif isinstance(value, list):
            value = tuple(value)
        values[field.name] = value
    return kind(**values)
