"""A prepared site for the pages: published figures, demo benchmarks, and runs where a test wants some."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from dashboard.current_site import use_site
from pipeline.benchmark import TABLES, Benchmark
from pipeline.formats.content_hash import content_hash
from pipeline.jobs.benchmark_library import import_into_store, load_benchmark
from pipeline.jobs.first_start import demo_run, prepared_site
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.access import benchmarks
from store.settings import Settings

APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"


@pytest.fixture(scope="session", autouse=True)
def components_looked_for_once() -> Generator[None]:
    """Streamlit looks for components in every installed package, once for every ``AppTest``: most of what one costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests)
        )
        yield


@pytest.fixture(scope="session")
def prepared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder after the first start; tests work on copies."""
    home = tmp_path_factory.mktemp("site") / "home"
    prepared_site(Settings(home=home)).database.close()
    return home


@pytest.fixture
def site(prepared_home: Path, tmp_path: Path) -> Generator[Site]:
    """A fresh copy of the prepared site, served by the pages of this process."""
    home = tmp_path / "home"
    shutil.copytree(prepared_home, home)
    opened = open_site(Settings(home=home, public_url="https://board.example"))
    use_site(opened)
    yield opened
    use_site(None)
    opened.database.close()


@pytest.fixture
def bare_site(tmp_path: Path) -> Generator[Site]:
    """A site with tables and nothing in them."""
    opened = open_site(Settings(home=tmp_path / "bare"))
    opened.database.migrate()
    use_site(opened)
    yield opened
    use_site(None)
    opened.database.close()


@pytest.fixture
def submitted(site: Site) -> Callable[..., str]:
    """Submit the sample run of the demo tools under a name; returns the run id."""

    def submit(name: str = "Sample", *, publish: bool = True, **said: str) -> str:
        source = demo_run("tools")
        checked = check_run(site, source, "demo-tools")
        return submit_run(site, checked, source, SubmissionMetadata(retriever=name, **said), publish=publish)

    return submit


def second_version(site: Site, **kept: pl.DataFrame) -> str:
    """Store another version of the demo tools, with fewer equivalents and combinations; returns its name.

    Args:
        site: with the demo benchmarks.
        kept: tables instead of the first version's.
    """
    with site.database.reading() as session:
        first = load_benchmark(site, benchmarks.get(session, "demo-tools@1").id)
    tables = {table: getattr(first, table) for table in TABLES}
    for table in ("equivalents", "combinations"):
        extra = (
            pl.col("origin") != "ground_truth"
            if table == "equivalents"
            else ~pl.col("is_ground_truth").fill_null(False)
        )
        tables[table] = tables[table].filter(~(extra & (pl.int_range(pl.len()) % 3 == 1)))
    tables |= kept
    info = replace(first.info, version="2", parents=("demo-tools@1",))
    import_into_store(site, Benchmark(info=info, **tables, content_hash=content_hash(tables)))
    return "demo-tools@2"


@pytest.fixture
def app() -> AppTest:
    """The whole app at its first page, not run yet."""
    return AppTest.from_file(str(APP), default_timeout=60)
