"""What can go wrong on the ground floor; every message says what to set or do.

These errors are shown to a user as they are, so they never hold a password (see ``store.settings.redacted``).
"""

from __future__ import annotations


class StoreError(Exception):
    """Root of every error of the store; ``exit_code`` is the command line's (3: environment)."""

    exit_code = 3


class DatabaseUnavailable(StoreError):
    """The database cannot be reached or its driver is not installed."""


class MigrationNeeded(StoreError):
    """The tables are older or newer than this program."""


class NotFound(StoreError):
    """No such row, or none that the caller may see."""

    exit_code = 1


class Conflict(StoreError):
    """The row exists already with other content, or its state does not allow the change."""

    exit_code = 1


class InvalidRecord(StoreError):
    """A row that must not be stored: a figure that is not finite, an unknown state, a repeated key."""

    exit_code = 1


class ArtifactMissing(StoreError):
    """A file that a row points to is not there."""


class ArtifactDamaged(StoreError):
    """A file's bytes do not have the hash that is its name."""
