"""A model as a job names it, for readers."""

from __future__ import annotations

from pathlib import PurePath

from pipeline.retrieval.models import ENDPOINT_PREFIX
from pipeline.retrieval.registry import default_registry


def model_title(name: str) -> str:
    """The registered name of a model; of others what tells them apart: hub id, folder or endpoint."""
    plain, _, commit = name.partition("@")
    entry = default_registry().find(plain)
    if entry is not None:
        return entry.name + (f"@{commit[:8]}" if commit and commit != entry.revision else "")
    if name.startswith(("/", "./", "../", "~")):
        return PurePath(name).name or name
    if name.startswith(ENDPOINT_PREFIX):
        return name.removeprefix(ENDPOINT_PREFIX)
    return plain + (f"@{commit[:8]}" if commit else "")
