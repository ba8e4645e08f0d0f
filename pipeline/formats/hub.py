"""Data sets by name from the Hugging Face hub, downloaded at a pinned revision into the hub's own cache."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import BenchmarkError, EnvironmentProblem
from pipeline.formats.messages import quote

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")

#: What a benchmark can consist of; nothing else is downloaded.
_PATTERNS = ["*.jsonl", "*.jsonl.gz", "*.parquet", "benchmark.toml"]

#: Revisions that figures were published on; other data sets are taken as they are now, and their commit recorded.
PINNED = {
    "mangopy/ToolRet-Queries": "b8c76ad3349ff17497b6bdb28bb5b8f61a0f6445",
    "mangopy/ToolRet-Tools": "e06c38c75612b6536bd959e08cdd345894aba6a7",
}
#: Data sets that come in two halves: either name stands for (queries, tools).
HALVES = {
    half: pair
    for pair in (
        ("mangopy/ToolRet-Queries", "mangopy/ToolRet-Tools"),
        ("Lux1997/Tool-REX-Queries", "Lux1997/Tool-REX-Tools"),
        ("Lux1997/Tool-DE-Queries", "Lux1997/Tool-DE-Tools"),
    )
    for half in pair
}


@dataclass(frozen=True)
class HubFolder:
    """A downloaded data set.

    Attributes:
        revision: the commit that was taken.
    """

    path: Path
    repository: str
    revision: str


def fetch_dataset(repository: str, revision: str | None = None) -> HubFolder:
    """Download the data files of a data set, or find them in the hub's cache.

    Args:
        repository: ``owner/name``.
        revision: commit, tag or branch; default the pinned one, else the newest.

    Raises:
        BenchmarkError: the hub has no such data set or revision.
        EnvironmentProblem: ``huggingface_hub`` is not installed, or the hub cannot be reached.
    """
    if not HUB_ID.fullmatch(repository):
        raise BenchmarkError(f"{quote(repository)} is not the name of a data set on the hub (owner/name).")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    except ImportError as error:
        raise EnvironmentProblem(
            f"Loading {repository} by name needs the package huggingface_hub: install equirank[hub], or download the "
            "data set yourself and give its folder."
        ) from error
    wanted = revision or PINNED.get(repository)
    try:
        folder = Path(snapshot_download(repository, repo_type="dataset", revision=wanted, allow_patterns=_PATTERNS))
    except GatedRepoError as error:
        raise EnvironmentProblem(
            f"The data set {repository} asks for consent on the hub: accept its terms there and set HF_TOKEN."
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        at = f" at revision {wanted}" if wanted else ""
        raise BenchmarkError(f"The hub has no data set {repository}{at} (or it is private).") from error
    except Exception as error:  # every kind of network failure, whose classes change with the client library
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise EnvironmentProblem(
            f"The data set {repository} cannot be downloaded: the hub cannot be reached from here ({reason}). "
            "Download it elsewhere and give its folder instead."
        ) from error
    return HubFolder(folder, repository, folder.name)
