"""``equirank validation …``, ``dispute …`` and ``growth`` on the demo benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.jobs.site import open_site
from store.access import reviews, validation
from store.settings import Settings, get_settings
from tests.started_home import copy_home

DEMO = "demo-tools@1"


@pytest.fixture
def home(tmp_path: Path, started: Settings, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    copy_home(started, tmp_path / "home")
    monkeypatch.setenv("EQUIRANK_HOME", str(tmp_path / "home"))
    get_settings.cache_clear()
    yield tmp_path / "home"
    get_settings.cache_clear()


def equirank(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def done(*words: str) -> str:
    result = equirank(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def opened(home: Path, link: str) -> str | None:
    """Whose link this is."""
    site = open_site(Settings(home=home))
    found = re.search(r"/review\?token=([\w-]+)$", link.strip())
    assert found is not None
    with site.database.reading() as session:
        person = validation.open_link(session, found[1]).person
    site.database.close()
    return None if person is None else person.name


def test_a_review_from_its_sample_to_its_report(home: Path, tmp_path: Path) -> None:
    made = json.loads(done("validation", "sample", "-b", DEMO, "--size", "3", "--seed", "4", "--format", "json"))
    sample = made["sample"]
    assert opened(home, made["link"]) is None
    links = {name: done("validation", "invite", sample, name) for name in ("Ann", "Bob")}
    assert [opened(home, link) for link in links.values()] == ["Ann", "Bob"]
    assert opened(home, done("validation", "link", sample, "ann")) == "Ann"
    assert opened(home, done("validation", "link", sample)) is None
    site = open_site(Settings(home=home))
    with site.database.session() as session:
        for person in validation.people(session, sample):
            for item in validation.items(session, sample):
                reviews.give(session, person.id, item.item, valid=True, reason="=Yes.")
    site.database.close()
    file = tmp_path / "items.csv"
    early = equirank("validation", "report", sample, "--items", str(file))
    assert isinstance(early.exception, Exception) and "when the sample is closed" in str(early.exception)
    assert "3 of 3 items are decided" in done("validation", "close", sample)
    report = json.loads(done("validation", "report", sample, "--format", "json", "--items", str(file)))
    assert (report["all"]["precision"], report["all"]["valid"], report["all"]["kappa"]) == (1.0, 3, None)
    assert "'=Yes." in file.read_text() and "Ann" not in file.read_text()
    assert "precision" in done("validation", "report", sample)
    assert sample in done("validation", "list")


def test_open_disagreements_are_named_before_the_figures(home: Path) -> None:
    made = json.loads(done("validation", "sample", "-b", DEMO, "--size", "2", "--seed", "4", "--format", "json"))
    sample = made["sample"]
    for name in ("Ann", "Bob"):
        done("validation", "invite", sample, name)
    site = open_site(Settings(home=home))
    with site.database.session() as session:
        ann, bob = validation.people(session, sample)
        agreed, disputed = validation.items(session, sample)
        for person, item, valid in ((ann, agreed, True), (bob, agreed, True), (ann, disputed, True)):
            reviews.give(session, person.id, item.item, valid=valid, reason="Yes.")
        reviews.give(session, bob.id, disputed.item, valid=False, reason="No.", bucket=reviews.BUCKETS[0])
    site.database.close()
    said = done("validation", "report", sample)
    assert said.startswith("1 of 2 reviewed items is valid; 1 waits for a third reviewer, so precision lies between 50")
    assert "Nobody is invited to decide" in said.splitlines()[0] and "50.0 to 100.0" in said
    assert "1 disagreement is open, which the report says" in done("validation", "close", sample)
    found = json.loads(done("validation", "report", sample, "--format", "json"))["all"]
    assert (found["to_adjudicate"], found["precision_least"], found["precision_most"]) == (1, 0.5, 1.0)


def test_a_dispute_from_its_opening_to_its_export(home: Path, tmp_path: Path) -> None:
    assert "no public run is on this version" in done("growth", "-b", DEMO)
    wrong = equirank("dispute", "open", "ev-006", "-b", DEMO, "--tool", "nothing", "--reason", "No.")
    assert "only verdicts can be disputed" in str(wrong.exception)
    words = ("ev-001", "-b", DEMO, "--tool", "c41f9a20", "--position", "0", "--reason", "Too dear.")
    made = done("dispute", "open", *words)
    identifier = made.split()[1].rstrip(":")
    assert "ev-001" in done("dispute", "list")
    assert "upheld" in done("dispute", "resolve", identifier, "--uphold", "--words", "It is.")
    file = tmp_path / "next.jsonl"
    done("dispute", "export", "-b", DEMO, "--out", str(file))
    assert json.loads(file.read_text())["verdict"] == "invalid"
