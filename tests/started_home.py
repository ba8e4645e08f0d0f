"""A home as it is after the first start, copied: making one anew takes longer than most tests."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline.jobs import first_start
from pipeline.jobs.site import open_site
from store.cache import FileCache
from store.settings import Settings


def copy_home(started: Settings, home: Path, **settings: object) -> Settings:
    """Copy what the fixture ``started`` made.

    Args:
        started: the home to copy; on PostgreSQL its files only.
        home: the folder of the copy, which need not be there.
        settings: of the copy; ``database_url`` is a copy of the database.

    Returns:
        The settings of a home that ``prepared_site`` finds prepared.
    """
    shutil.copytree(started.home, home, dirs_exist_ok=True)
    copied = Settings(home=home, **settings)  # type: ignore[arg-type]
    site = open_site(copied)
    # The stamp names the place of the database, which is another one now.
    FileCache.from_settings(copied, "prepared").put_bytes(first_start._stamp(site), b"")
    site.database.close()
    return copied
