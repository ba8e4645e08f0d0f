"""Permalinks that are printed lead to where the site is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.jobs.public_address import note_address, public_address
from store.settings import Settings


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EQUIRANK_PUBLIC_URL", "EQUIRANK_PORT", "EQUIRANK_HOST"):
        monkeypatch.delenv(name, raising=False)


def test_another_command_prints_links_to_the_port_that_serve_was_given(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert public_address(settings) == "http://localhost:8501"
    note_address(settings, "0.0.0.0", 8613)
    assert public_address(Settings(home=tmp_path)) == "http://localhost:8613"
    note_address(settings, "192.0.2.7", 80)
    assert public_address(Settings(home=tmp_path)) == "http://192.0.2.7:80"
    note_address(settings, "2001:db8::1", 80)
    assert public_address(Settings(home=tmp_path)) == "http://[2001:db8::1]:80"


def test_the_operator_has_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note_address(Settings(home=tmp_path), "127.0.0.1", 8613)
    assert public_address(Settings(home=tmp_path, port=8700)) == "http://localhost:8700"
    monkeypatch.setenv("EQUIRANK_PUBLIC_URL", "https://board.example/")
    assert public_address(Settings(home=tmp_path, port=8700)) == "https://board.example"


@pytest.mark.parametrize("note", [b"\xff\xfe", b"", b"javascript:alert(1)", b"http://"])
def test_a_note_that_is_no_address_is_passed_over(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "served_at").write_bytes(note)
    assert public_address(Settings(home=tmp_path)) == "http://localhost:8501"


def test_a_home_that_is_not_there_keeps_the_default(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "absent")
    note_address(settings, "127.0.0.1", 8613)
    assert public_address(settings) == "http://localhost:8501"
