"""What ships with the program, put into the store: tables, demo benchmarks and published figures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.site import Site, open_site
from store.access import benchmarks
from store.cache import FileCache
from store.settings import Settings

#: Folders of ``pipeline.demo`` that hold a benchmark.
DEMO_BENCHMARKS = ("tools", "skills")


def prepared_site(settings: Settings | None = None, *, say: Callable[[str], None] | None = None) -> Site:
    """Open the site and make sure that everything that ships is in it.

    Raises:
        StoreError: the database or the artifacts cannot be used.
    """
    site = open_site(settings)
    prepare(site, say=say)
    return site


def prepare(site: Site, *, say: Callable[[str], None] | None = None) -> None:
    """Bring the tables up to date and load demo benchmarks and published figures.

    Idempotent, and safe when several processes start at once: what is there already is left as it is.

    Args:
        site: to prepare.
        say: told in words what is being done, when there is anything to do.
    """
    tell = say or (lambda line: None)
    status = site.database.status()
    if not status.ok:
        tell(f"setting up the database {site.database.url}")
        site.database.migrate()
    site.artifacts.remove_abandoned()
    stamps = FileCache.from_settings(site.settings, "prepared")
    stamp = _stamp(site)
    if status.ok and stamps.get(stamp) is not None and _is_loaded(site):
        return
    for name in DEMO_BENCHMARKS:
        _load_demo(site, name, tell)
    from pipeline.jobs.published_rows import load_published

    changes = load_published(site)
    if changes.inserted or changes.updated or changes.removed:
        tell(f"loaded {changes.inserted + changes.updated} rows of published figures")
    stamps.put_bytes(stamp, b"")


def demo_folder(name: str) -> Path:
    """The folder of a bundled demo benchmark: ``tools`` or ``skills``."""
    return Path(str(resources.files("pipeline.demo"))) / name


def demo_run(name: str) -> Path:
    """A sample run file for a bundled demo benchmark, to try a submission with."""
    return Path(str(resources.files("pipeline.demo"))) / f"sample_{name}_run.trec"


def _stamp(site: Site) -> str:
    """A name for "what ships with this program is in this store", so that later starts need not compare it all."""
    digest = hashlib.sha256(f"{site.database.url} {site.artifacts.url} {version('equirank')}".encode())
    for package in ("pipeline.demo", "pipeline.published"):
        root = Path(str(resources.files(package)))
        for path in sorted(root.rglob("*.*")):
            if path.suffix != ".pyc":
                state = path.stat()
                digest.update(f"{path.relative_to(root)} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()


def _is_loaded(site: Site) -> bool:
    """Whether the store still has what a stamp says was loaded: a database may have been replaced since."""
    shipped = {"tooleq"} | {f"demo-{name}" for name in DEMO_BENCHMARKS}
    with site.database.reading() as session:
        return shipped <= {record.slug for record in benchmarks.list_records(session)}


def _load_demo(site: Site, name: str, tell: Callable[[str], None]) -> None:
    from pipeline.formats.benchmark_folder import read_benchmark_folder

    benchmark = read_benchmark_folder(demo_folder(name))
    with site.database.reading() as session:
        if any(record.is_demo for record in benchmarks.with_content(session, benchmark.content_hash)):
            return
    tell(f"loading the demo benchmark {benchmark.info.title}")
    import_into_store(site, benchmark, is_demo=True)
