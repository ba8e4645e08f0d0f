"""Benchmark versions: one row each, the content in artifacts."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl
from sqlalchemy import case, func, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from store.artifacts import ArtifactStore
from store.errors import Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion, Run, State, Visibility
from store.records import BenchmarkRecord, record

_SLUG = re.compile(r"^[a-z0-9][a-z0-9._-]*$")

#: What describes a version without being its content.
_DESCRIPTION = (
    "title", "kind", "licence", "source", "revision", "headline", "parents", "statistics", "ks", "citation",
    "notes", "is_demo",
)  # fmt: skip
_CONTENT = (
    "content_hash", "queries", "tools", "subqueries", "equivalents", "combinations", "domains", "sources",
    "artifacts", "compiled_key",
)  # fmt: skip


@dataclass(frozen=True)
class BenchmarkName:
    """``slug`` or ``slug@version``; without a version the newest is meant."""

    slug: str
    version: str | None = None

    def __str__(self) -> str:
        """The name as it is typed."""
        return self.slug if self.version is None else f"{self.slug}@{self.version}"


def parse_name(text: str) -> BenchmarkName:
    """Read ``slug[@version]``.

    Raises:
        NotFound: the text is no such name.
    """
    slug, at, version = text.strip().partition("@")
    if not _SLUG.match(slug) or (at and not version):
        raise NotFound(f"{text!r} is not the name of a stored benchmark (slug or slug@version)")
    return BenchmarkName(slug, version or None)


def add_version(
    session: Session, version: BenchmarkVersion, *, artifacts: ArtifactStore | None = None
) -> BenchmarkRecord:
    """Store a benchmark version. Its content never changes afterwards.

    Adding the same version with the same content again returns the stored one. A version that so far only carried
    reported figures takes the content.

    Args:
        session: of ``Database.session``.
        version: a new row.
        artifacts: where the tables' artifacts are; required when ``version.artifacts`` names any.

    Raises:
        Conflict: the version exists with other content.
        ArtifactMissing: an artifact that the row names is not stored.
        InvalidRecord: the slug or version cannot be used.
    """
    _check(version)
    _require_artifacts(artifacts, version.artifacts)
    stored = _row(session, version.slug, version.version)
    if stored is None:
        try:
            with session.begin_nested():
                session.add(version)
        except IntegrityError:
            stored = _row(session, version.slug, version.version)
            if stored is None:
                raise InvalidRecord(f"the benchmark {version.slug}@{version.version} cannot be stored") from None
        else:
            return record(BenchmarkRecord, version)
    if stored.content_hash is None and version.content_hash is not None:
        for name in _DESCRIPTION + _CONTENT:
            setattr(stored, name, getattr(version, name))
        session.flush()
    elif stored.content_hash != version.content_hash:
        raise Conflict(
            f"{version.slug}@{version.version} is stored with other content "
            f"(hash {_short(stored.content_hash)}, this one {_short(version.content_hash)}): "
            "give the changed benchmark a new version"
        )
    return record(BenchmarkRecord, stored)


def upsert_description(session: Session, version: BenchmarkVersion) -> BenchmarkRecord:
    """Store or update the description of a version that may have no content (the papers' benchmarks).

    A version that has content keeps it, and its counts.
    """
    _check(version)
    stored = _row(session, version.slug, version.version)
    if stored is None:
        return add_version(session, version)
    for name in _DESCRIPTION:
        setattr(stored, name, getattr(version, name))
    if stored.content_hash is None:
        for name in _CONTENT:
            setattr(stored, name, getattr(version, name))
    session.flush()
    return record(BenchmarkRecord, stored)


def add_artifact(
    session: Session, benchmark_version_id: int, name: str, digest: str, *, artifacts: ArtifactStore
) -> None:
    """Keep something computed from the content of a version beside its tables.

    Args:
        session: of ``Database.session``.
        benchmark_version_id: the version.
        name: not that of a table.
        digest: of the artifact.
        artifacts: where it is.

    Raises:
        NotFound: there is no such version.
        ArtifactMissing, ArtifactDamaged: the artifact is not whole.
    """
    artifacts.require(digest)
    row = session.get(BenchmarkVersion, benchmark_version_id, with_for_update=True)
    if row is None:
        raise NotFound(f"no benchmark version has the id {benchmark_version_id}")
    # A new dict: a change within the stored one would not be noticed.
    row.artifacts = {**row.artifacts, name: digest}
    session.flush()


def get(session: Session, name: str, version: str | None = None) -> BenchmarkRecord:
    """The version called ``name`` (``slug`` or ``slug@version``); without a version, the newest.

    Raises:
        NotFound: there is none; the message lists what there is.
    """
    parsed = parse_name(name)
    wanted = version or parsed.version
    query = select(BenchmarkVersion).where(col(BenchmarkVersion.slug) == parsed.slug)
    if wanted is not None:
        query = query.where(col(BenchmarkVersion.version) == wanted)
    newest = col(BenchmarkVersion.created_at).desc(), col(BenchmarkVersion.id).desc()
    row = session.scalars(query.order_by(*newest).limit(1)).first()
    if row is None:
        known = [item.name for item in list_records(session)]
        listed = ", ".join(known[:20]) + (" …" if len(known) > 20 else "") if known else "none yet"
        raise NotFound(f"no benchmark {BenchmarkName(parsed.slug, wanted)} is stored; stored are: {listed}")
    return record(BenchmarkRecord, row)


def get_by_id(session: Session, benchmark_version_id: int) -> BenchmarkRecord:
    """The version with this id.

    Raises:
        NotFound: there is none.
    """
    row = session.get(BenchmarkVersion, benchmark_version_id)
    if row is None:
        raise NotFound(f"no benchmark version has the id {benchmark_version_id}")
    return record(BenchmarkRecord, row)


def with_content(session: Session, content_hash: str) -> list[BenchmarkRecord]:
    """Every version that has exactly this content, oldest first."""
    query = select(BenchmarkVersion).where(col(BenchmarkVersion.content_hash) == content_hash)
    return [record(BenchmarkRecord, row) for row in session.scalars(query.order_by(col(BenchmarkVersion.id)))]


def list_records(session: Session, slug: str | None = None) -> list[BenchmarkRecord]:
    """All versions, by slug and then newest first."""
    query = select(BenchmarkVersion)
    if slug is not None:
        query = query.where(col(BenchmarkVersion.slug) == slug)
    rows = [record(BenchmarkRecord, row) for row in session.scalars(query)]
    rows.sort(key=lambda item: (item.created_at, item.id), reverse=True)
    rows.sort(key=lambda item: item.slug)
    return rows


def list_versions(session: Session, slug: str | None = None) -> pl.DataFrame:
    """All versions with their counts and number of published public runs, by slug and then newest first.

    Columns: id, name, slug, version, title, kind, licence, source, revision, headline, content_hash, queries, tools,
    subqueries, equivalents, combinations, domains (list of names), is_demo, created_at, runs, reported_runs.
    """
    counted = session.execute(
        select(
            col(Run.benchmark_version_id),
            func.count(),
            func.sum(case((col(Run.provenance) == "reported", 1), else_=0)),
        )
        .where(col(Run.state) == State.PUBLISHED.value, col(Run.visibility) == Visibility.PUBLIC.value)
        .group_by(col(Run.benchmark_version_id))
    )
    runs = {version_id: (int(total), int(reported)) for version_id, total, reported in counted}
    rows = [
        (
            item.id, item.name, item.slug, item.version, item.title, item.kind, item.licence, item.source,
            item.revision, item.headline, item.content_hash, item.queries, item.tools, item.subqueries,
            item.equivalents, item.combinations, [domain.name for domain in item.domains], item.is_demo,
            item.created_at, *runs.get(item.id, (0, 0)),
        )
        for item in list_records(session, slug)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=LISTING, orient="row")


#: Columns of ``list_versions``.
LISTING: dict[str, pl.DataType] = {
    "id": pl.Int64(),
    **{
        name: pl.String()
        for name in (
            "name", "slug", "version", "title", "kind", "licence", "source", "revision", "headline", "content_hash",
        )
    },
    **{name: pl.Int64() for name in ("queries", "tools", "subqueries", "equivalents", "combinations")},
    "domains": pl.List(pl.String()),
    "is_demo": pl.Boolean(),
    "created_at": pl.Datetime("us", "UTC"),
    "runs": pl.Int64(),
    "reported_runs": pl.Int64(),
}  # fmt: skip


def _check(version: BenchmarkVersion) -> None:
    if not _SLUG.match(version.slug):
        raise InvalidRecord(
            f"the slug {version.slug!r} cannot be used: lower-case letters, digits, '.', '_' and '-', "
            "starting with a letter or digit"
        )
    if not version.version or any(sign in version.version for sign in "@/ \t\n"):
        raise InvalidRecord(f"the version {version.version!r} cannot be used: not empty, no spaces, '@' or '/'")


def _require_artifacts(artifacts: ArtifactStore | None, named: dict[str, str]) -> None:
    """A row is never stored before what it points to."""
    for table, digest in named.items():
        if artifacts is None:
            raise InvalidRecord(f"the artifact store is needed to check the table {table!r} of this benchmark")
        artifacts.require(digest)


def _row(session: Session, slug: str, version: str) -> BenchmarkVersion | None:
    query = select(BenchmarkVersion).where(col(BenchmarkVersion.slug) == slug, col(BenchmarkVersion.version) == version)
    return session.scalars(query.with_for_update()).first()


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "none"
