"""The command line in a home of its own, and the embeddings that several modules need."""

from __future__ import annotations

import os

import pytest

from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from store.settings import Settings
from tests.pipeline.command_line import CommandLine
from tests.started_home import copy_home


@pytest.fixture(scope="module")
def equirank(tmp_path_factory: pytest.TempPathFactory, started: Settings) -> CommandLine:
    """Runs ``equirank …`` in a home that is as after the first start, shared by the tests of a module."""
    return CommandLine(copy_home(started, tmp_path_factory.mktemp("home")).home)


@pytest.fixture(scope="session")
def embeddings(tmp_path_factory: pytest.TempPathFactory) -> FolderEmbeddingCache:
    """One cache for a whole run of the tests, of however many processes: published figures share their texts."""
    base = tmp_path_factory.getbasetemp()
    return FolderEmbeddingCache((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "embeddings")
