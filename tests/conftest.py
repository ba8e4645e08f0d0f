"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Generator
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under ``EQUIRANK_REQUIRE_ALL=1`` (as in CI) a skipped test is a failed one."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("EQUIRANK_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped although everything is required: {report.longrepr}"
    return report
