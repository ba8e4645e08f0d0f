"""The command line, in a home of its own."""

from __future__ import annotations

import pytest

from store.settings import Settings
from tests.pipeline.command_line import CommandLine
from tests.started_home import copy_home


@pytest.fixture(scope="module")
def equirank(tmp_path_factory: pytest.TempPathFactory, started: Settings) -> CommandLine:
    """Runs ``equirank …`` in a home that is as after the first start, shared by the tests of a module."""
    return CommandLine(copy_home(started, tmp_path_factory.mktemp("home")).home)
