"""The one site of this process: its settings, database and artifacts, opened once and shared by all sessions."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.jobs.site import Site

_lock = Lock()
_opened: Site | None = None


def the_site() -> Site:
    """The site, opened at the first call.

    Raises:
        StoreError: a setting or the database cannot be used.
    """
    global _opened
    with _lock:
        if _opened is None:
            from pipeline.jobs.site import open_site

            _opened = open_site()
        return _opened


def use_site(site: Site | None) -> None:
    """Serve this site instead (tests); None opens the one of the settings at the next call."""
    global _opened
    with _lock:
        _opened = site
