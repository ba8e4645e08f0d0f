"""What a registered retriever needs that is not there: said before anybody waits for a job that cannot end well."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import ModelError
from pipeline.retrieval.models import Permissions, resolve_model
from pipeline.retrieval.registry import RetrieverEntry, Source, default_registry

#: Weights from which on a CPU takes hours for a benchmark of usual size.
GPU_FROM = 1_000_000_000


class Need(StrEnum):
    """Something that a retriever needs beside EquiRank; the words follow "needs"."""

    COMMIT = "a recorded commit"
    REMOTE_CODE = "remote code"
    PICKLE = "pickle weights"
    HUB = "the hub"
    GPU = "a GPU"


@dataclass(frozen=True)
class Availability:
    """What stands between a retriever and its use here.

    Attributes:
        needs: what it needs; empty where it works at once.
        refused: why the operator's permissions rule it out, in a sentence; "" where they do not.
        downloaded: whether its weights are in the hub's cache of this machine.
    """

    entry: RetrieverEntry
    needs: tuple[Need, ...]
    refused: str
    downloaded: bool

    @property
    def allowed(self) -> bool:
        """Whether a job may be asked for."""
        return not self.refused

    @property
    def words(self) -> str:
        """``works here``, or ``needs the hub and a GPU``."""
        if not self.needs:
            return "works here"
        *first, last = self.needs
        return f"needs {', '.join(first)} and {last}" if first else f"needs {last}"


def availability(entry: RetrieverEntry, permissions: Permissions, *, gpu: bool) -> Availability:
    """Look at one retriever; nothing is loaded and no network is asked.

    Args:
        entry: of the registry.
        permissions: what the operator allows.
        gpu: whether a worker with a GPU is there.
    """
    refused = ""
    try:
        resolve_model(entry.key, permissions=permissions)
    except ModelError as error:
        refused = str(error)
    needs = []
    if not entry.pinned and not permissions.unpinned:
        needs.append(Need.COMMIT)
    if entry.remote_code and not permissions.remote_code:
        needs.append(Need.REMOTE_CODE)
    if entry.pickle and not permissions.pickle:
        needs.append(Need.PICKLE)
    downloaded = _is_downloaded(entry)
    if not downloaded and not _is_installed(entry):
        needs.append(Need.HUB)
    if not gpu and (entry.parameters or 0) >= GPU_FROM:
        needs.append(Need.GPU)
    return Availability(entry, tuple(needs), refused, downloaded)


def all_availabilities(
    permissions: Permissions, *, gpu: bool, entries: Iterable[RetrieverEntry] | None = None
) -> list[Availability]:
    """Every retriever: those that work first, then those that are allowed, each in the registry's order."""
    found = [
        availability(entry, permissions, gpu=gpu)
        for entry in (default_registry().entries if entries is None else entries)
    ]
    return sorted(found, key=lambda item: (bool(item.refused), bool(item.needs)))


def _is_installed(entry: RetrieverEntry) -> bool:
    """Whether it needs no download: BM25, and weights that come as a Python package."""
    if entry.source is Source.PACKAGE:
        return find_spec(entry.package) is not None
    return entry.source is not Source.HUB


def _is_downloaded(entry: RetrieverEntry) -> bool:
    """Whether the hub's cache has a snapshot of the commit with weights in it."""
    if not entry.hf_id or not entry.pinned:
        return False
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    snapshot = cache / f"models--{entry.hf_id.replace('/', '--')}" / "snapshots" / entry.revision
    return any(any(snapshot.rglob(pattern)) for pattern in ("*.safetensors", "*.bin")) if snapshot.is_dir() else False
