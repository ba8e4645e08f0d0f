"""What ships with the program, put into the store: tables, demo benchmarks and published figures."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.published_rows import load_published
from pipeline.jobs.site import Site, open_site
from store.access import benchmarks
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
    if not site.database.status().ok:
        tell(f"setting up the database {site.database.url}")
        site.database.migrate()
    for name in DEMO_BENCHMARKS:
        _load_demo(site, name, tell)
    changes = load_published(site)
    if changes.inserted or changes.updated or changes.removed:
        tell(f"loaded {changes.inserted + changes.updated} rows of published figures")


def demo_folder(name: str) -> Path:
    """The folder of a bundled demo benchmark: ``tools`` or ``skills``."""
    return Path(str(resources.files("pipeline.demo"))) / name


def demo_run(name: str) -> Path:
    """A sample run file for a bundled demo benchmark, to try a submission with."""
    return Path(str(resources.files("pipeline.demo"))) / f"sample_{name}_run.trec"


def _load_demo(site: Site, name: str, tell: Callable[[str], None]) -> None:
    from pipeline.formats.benchmark_folder import read_benchmark_folder

    benchmark = read_benchmark_folder(demo_folder(name))
    with site.database.reading() as session:
        if any(record.is_demo for record in benchmarks.with_content(session, benchmark.content_hash)):
            return
    tell(f"loading the demo benchmark {benchmark.info.title}")
    import_into_store(site, benchmark, is_demo=True)
