"""The site as one value: its settings and where it keeps things."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.formats.limits import Limits
from store.artifacts import ArtifactStore
from store.database import Database
from store.settings import Settings, get_settings


@dataclass(frozen=True, eq=False)
class Site:
    """What every job needs."""

    settings: Settings
    database: Database
    artifacts: ArtifactStore

    @property
    def limits(self) -> Limits:
        """The operator's bounds on one run file."""
        settings = self.settings
        return Limits(
            upload_bytes=settings.limit_upload_mb << 20,
            expanded_bytes=settings.limit_expanded_mb << 20,
            expansion_ratio=settings.limit_expansion_ratio,
            line_bytes=settings.limit_line_kb << 10,
            depth=settings.limit_depth,
            id_bytes=settings.limit_id_bytes,
        )


def open_site(settings: Settings | None = None) -> Site:
    """Connect to nothing yet; the database and the artifacts are opened when they are used.

    Raises:
        StoreError: a setting cannot be used.
    """
    settings = settings or get_settings()
    return Site(settings, Database(settings), ArtifactStore.from_settings(settings))
