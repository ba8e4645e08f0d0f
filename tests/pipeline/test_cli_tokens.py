"""``equirank token create|list|revoke``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.jobs.site import open_site
from store.access import tokens
from store.errors import NotFound
from store.settings import Settings, get_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQUIRANK_HOME", str(tmp_path))
    get_settings.cache_clear()
    yield tmp_path
    get_settings.cache_clear()


def token(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["token", *arguments])


def opens(home: Path, secret: str) -> bool:
    site = open_site(Settings(home=home))
    with site.database.reading() as session:
        found = tokens.find(session, secret) is not None
    site.database.close()
    return found


def test_a_token_is_shown_once_listed_without_it_and_revoked(home: Path) -> None:
    made = token("create", "nightly", "--scope", "submit", "--days", "7")
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    assert secret.startswith("equirank_")
    assert opens(home, secret)
    listed = token("list", "--format", "json")
    entry = json.loads(listed.stdout)[0]
    assert (entry["label"], entry["scopes"], entry["state"]) == ("nightly", ["submit"], "active")
    assert secret not in listed.output + token("list").output
    revoked = token("revoke", entry["id"])
    assert revoked.exit_code == 0
    assert not opens(home, secret)
    assert json.loads(token("list", "--format", "json").stdout)[0]["state"] == "revoked"
    assert isinstance(token("revoke", "nothing").exception, NotFound)
    assert token("create", "x", "--scope", "everything").exit_code == 2
