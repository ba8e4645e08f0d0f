from __future__ import annotations

from pathlib import Path

import pytest

from store.settings import Settings, SettingsError, get_settings, redacted, settings_table

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fresh_settings():
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


def test_defaults_lie_under_home(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUIRANK_HOME", str(tmp_path))
    settings = get_settings()
    assert settings.database_url == f"sqlite:///{tmp_path}/equirank.sqlite3"
    assert settings.artifact_url == str(tmp_path / "artifacts")
    assert settings.cache_folder == tmp_path / "cache"
    assert settings is get_settings()


def test_a_relative_or_tilde_home_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings(home=Path("here")).home == tmp_path / "here"
    assert Settings(home=Path("~/there")).home == tmp_path / "there"


def test_every_setting_has_help_and_is_in_the_table():
    table = settings_table()
    for name, field in Settings.model_fields.items():
        assert (field.description or "").endswith("."), name
        assert f"`EQUIRANK_{name.upper()}`" in table
        assert field.description in table
    assert len(table.splitlines()) == 2 + len(Settings.model_fields)


def test_readme_has_the_settings_table():
    readme = REPOSITORY / "README.md"
    assert settings_table() in readme.read_text(), "paste the output of store.settings.settings_table() into README.md"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("EQUIRANK_AUTH", "oidc", "not in this version"),
        ("EQUIRANK_PORT", "70000", "less than or equal to 65535"),
        ("EQUIRANK_PUBLIC_URL", "leaderboard.example", "must start with http"),
        ("EQUIRANK_LIMIT_UPLOAD_MB", "0", "greater than or equal to 1"),
    ],
)
def test_a_bad_value_is_refused_by_name(monkeypatch, name, value, says):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says) as caught:
        get_settings()
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://person:sesame@db.example:5432/equirank",
        "s3://key:sesame@bucket/path",
        "postgres://person:sesame@[broken/equirank",
    ],
)
def test_passwords_are_redacted(url):
    assert "sesame" not in redacted(url)
    assert redacted("/var/lib/equirank") == "/var/lib/equirank"
