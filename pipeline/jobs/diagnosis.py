"""What works here and what is missing: the answers of ``equirank doctor``."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from pipeline.jobs.site import Site, open_site
from store.access import benchmarks, doctor
from store.errors import StoreError

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        state: ``ok``, ``missing`` (works without it) or ``broken`` (does not work).
    """

    subject: str
    state: State
    detail: str

    def as_json(self) -> dict[str, str]:
        """The shape of ``doctor --format json``."""
        return asdict(self)


def diagnose(*, deep: bool = False) -> list[Finding]:
    """Look at everything the site needs; never raises for what is wrong, and changes nothing."""
    try:
        site = open_site()
    except StoreError as error:
        return [Finding("settings", "broken", str(error))]
    findings = [_program(), *_guarded("database", lambda: _database(site))]
    if findings[-1].state == "ok":
        findings += _guarded("benchmarks", lambda: _benchmarks(site))
        findings += _guarded("artifacts", lambda: _artifacts(site, deep))
    return [*findings, *_optional()]


def _guarded(subject: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except StoreError as error:
        yield Finding(subject, "broken", str(error))


def _program() -> Finding:
    return Finding("program", "ok", f"EquiRank {version('equirank')}, Python {platform.python_version()}")


def _database(site: Site) -> Iterator[Finding]:
    status = site.database.status()
    if status.ok:
        yield Finding("database", "ok", f"{status.kind} at {status.url}, level {status.level}")
    elif status.reachable and status.level is None:
        yield Finding(
            "database", "missing", f"{status.url} is not set up yet: `equirank serve` or `equirank migrate` does"
        )
    else:
        yield Finding("database", "broken", status.problem)


def _benchmarks(site: Site) -> Iterator[Finding]:
    with site.database.reading() as session:
        records = benchmarks.list_records(session)
    scorable = [record.name for record in records if record.has_content]
    yield Finding("benchmarks", "ok", f"{len(records)} stored; runs can be scored on {', '.join(scorable) or 'none'}")


def _artifacts(site: Site, deep: bool) -> Iterator[Finding]:
    with site.database.reading() as session:
        report = doctor.check_integrity(session, site.artifacts, deep=deep)
    how = "read and compared with their hashes" if deep else "are there (use --deep to read them)"
    if report.ok:
        yield Finding("artifacts", "ok", f"all {report.checked} {how}; {site.artifacts.url}")
    for damage in (*report.missing, *report.damaged):
        yield Finding("artifacts", "broken", f"{damage.problem}; needed by {', '.join(damage.owners)}")
    if report.orphans:
        size = sum(item.size for item in report.orphans)
        listed = ", ".join(item.hash[:12] for item in report.orphans[:5])
        yield Finding("orphans", "ok", f"{len(report.orphans)} files ({size:,} bytes) that no row names: {listed} …")


def _optional() -> Iterator[Finding]:
    for subject, package, purpose in (
        ("postgresql", "psycopg", "needed for EQUIRANK_DATABASE_URL=postgresql://…: pip install 'equirank[postgres]'"),
        ("s3", "s3fs", "needed for EQUIRANK_ARTIFACT_URL=s3://…: pip install 'equirank[s3]'"),
        ("hub", "huggingface_hub", "needed to import benchmarks by hub id: pip install 'equirank[hub]'"),
    ):
        try:
            yield Finding(subject, "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(subject, "missing", purpose)
