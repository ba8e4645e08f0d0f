"""Names and notes of strangers are printed, never obeyed by the terminal; JSON stays JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.commands.output import print_json
from pipeline.commands.terminal import SafeStream

HOSTILE = "a\x1b]0;title\x07b\x9b31mc\rd\u202ee\u2066f\udcffg\x00"


def test_a_terminal_gets_no_commands() -> None:
    raw = io.BytesIO()
    stream = SafeStream(raw, encoding="utf-8", errors="backslashreplace", newline="\n")
    stream.write(f"first\tcell\n{HOSTILE}, naïve 日本 👩‍💻\n")
    stream.write("\r\x1b[K")
    stream.write(f"\rreading {HOSTILE}")
    stream.flush()
    spelt = "aU+001B]0;titleU+0007bU+009B31mcU+000DdU+202EeU+2066fU+DCFFgU+0000"
    assert raw.getvalue().decode() == f"first\tcell\n{spelt}, naïve 日本 👩‍💻\n\r\x1b[K\rreading {spelt}"


def test_json_keeps_every_character_without_printing_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: [HOSTILE, "日本"]})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {HOSTILE: [HOSTILE, "日本"]}
    assert "日本" in shown
    assert not any(ord(sign) < 32 and sign != "\n" for sign in shown)
    assert not any(sign in shown for sign in "\x9b\u202e\u2066\udcff")


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "no\x1b[31m", "-b", "b"],
        ["runs", "show", "r\x1b[31m"],
        ["x\x1b[31m"],
        ["runs", "list", "--format", "\x1b[31m"],
    ],
)
def test_errors_quote_arguments_harmlessly(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        capture_output=True, check=False, env=os.environ | {"EQUIRANK_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode in {1, 2, 3}
    assert b"\x1b" not in done.stderr + done.stdout


def test_a_full_disk_under_the_output_is_no_fault_of_the_program(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full is Linux's")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", "benchmark", "list"],
            stdout=full, stderr=subprocess.PIPE, check=False, text=True,
            env=os.environ | {"EQUIRANK_HOME": str(tmp_path)},
        )  # fmt: skip
    assert done.returncode == 3
    assert "No space left" in done.stderr and "fault of the program" not in done.stderr
