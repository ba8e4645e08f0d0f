"""``equirank …`` as a user runs it, in this process: starting one anew takes longer than most verbs."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import huggingface_hub.constants

from pipeline import cli
from store.settings import get_settings


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class CommandLine:
    """Runs commands in a home of its own, without a hub.

    Attributes:
        home: ``EQUIRANK_HOME``, unless a command is given another.
    """

    home: Path

    def __call__(self, *arguments: str, **environment: str) -> Done:
        """Run ``equirank ARGUMENTS`` with these variables; no other ``EQUIRANK_…`` one is passed on."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EQUIRANK_")}
        given = {"EQUIRANK_HOME": str(self.home), "HF_HUB_OFFLINE": "1", **environment}
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
        get_settings.cache_clear()
        with (
            mock.patch.dict(os.environ, kept | given, clear=True),
            mock.patch.object(sys, "argv", ["equirank", *arguments]),
            mock.patch.object(sys, "stdout", streams[0]),
            mock.patch.object(sys, "stderr", streams[1]),
            # The hub's library reads its variable at import.
            mock.patch.object(huggingface_hub.constants, "HF_HUB_OFFLINE", True),
        ):
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            # The command put safe streams in their place, which hold the same bytes.
            said = [_text(stream) for stream in (sys.stdout, sys.stderr)]
        get_settings.cache_clear()
        assert "Traceback" not in said[1], said[1]
        return Done(code, *said)


def _text(stream: object) -> str:
    assert isinstance(stream, io.TextIOWrapper)
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
