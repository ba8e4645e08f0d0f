"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs beside the checkout; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("EQUIRANK_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the real inputs (../shared) are not here")
    return folder
