"""The site that the jobs of this process belong to."""

from __future__ import annotations

from pipeline.jobs.site import Site

_site: Site | None = None


def use_site(site: Site) -> None:
    """Say which site it is; before DBOS is launched."""
    global _site
    _site = site


def the_site() -> Site:
    """The site."""
    assert _site is not None, "use_site comes before the launch"
    return _site
