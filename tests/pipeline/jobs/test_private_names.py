"""What a private or withdrawn run says must not come out through its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, publish_run, submit_run, withdraw_run
from store.access import retrievers, runs, submissions
from store.errors import InvalidRecord

MakeRun = Callable[..., Path]


def test_names_of_hidden_runs_are_offered_to_nobody_else(site: Site, demo_run_file: MakeRun) -> None:
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    secret = SubmissionMetadata("Secret Model", person="ada")
    hidden = submit_run(site, checked, path, secret, publish=False)

    def offered(person: str) -> bool:
        with site.database.reading() as session:
            return "Secret Model" in retrievers.suggested_names(session, person)

    assert offered("ada") and not offered("bob")
    publish_run(site, hidden)
    assert offered("bob")
    withdraw_run(site, hidden)
    assert offered("ada") and not offered("bob")
    with site.database.reading() as session:
        shipped = set(retrievers.list_retrievers(session)["name"].to_list()) - {"Secret Model"}
        assert set(retrievers.suggested_names(session, "bob")) == shipped


def test_a_private_run_describes_nobody_elses_retriever(site: Site, demo_run_file: MakeRun) -> None:
    path = demo_run_file(site)
    checked = check_run(site, path, "demo-tools")
    said = SubmissionMetadata("Model", link="https://secret.example", licence="internal", person="ada")
    submit_run(site, checked, path, said, publish=False)
    other = submit_run(site, checked, path, SubmissionMetadata("model", person="bob"), publish=True)
    with site.database.reading() as session:
        retriever = retrievers.get_by_id(session, runs.get(session, other).retriever_id)
    assert (retriever.link, retriever.licence) == ("", "")


def test_an_equal_ranking_is_named_to_the_submitter_but_not_kept_by_name(site: Site, demo_run_file: MakeRun) -> None:
    path = demo_run_file(site)
    first = submit_run(site, check_run(site, path, "demo-tools"), path, SubmissionMetadata("First"), publish=True)
    checked = check_run(site, path, "demo-tools")
    assert any("First" in note for note in checked.reading.report.notes)
    second = submit_run(site, checked, path, SubmissionMetadata("Second"), publish=True)
    withdraw_run(site, first)
    with site.database.reading() as session:
        notes = runs.get(session, second).notes
    assert any("exactly this ranking" in note for note in notes)
    assert not any("First" in note or first in note for note in notes)


@pytest.mark.parametrize(
    "said",
    [
        {"retriever": "a\udcff"},
        {"method": "m\x1b[31m"},
        {"method": "m" * 101},
        {"contract": "two\nlines"},
        {"link": "https://example.org/\u202egpj"},
        {"licence": "l\0"},
        {"contact": "c\udcff"},
    ],
)
def test_texts_that_no_list_can_show_are_refused_before_anything_is_stored(
    sqlite_site: Site, demo_run_file: MakeRun, said: dict[str, str]
) -> None:
    path = demo_run_file(sqlite_site)
    checked = check_run(sqlite_site, path, "demo-tools")
    with pytest.raises(InvalidRecord, match="characters"):
        submit_run(sqlite_site, checked, path, replace(SubmissionMetadata("Model"), **said), publish=True)
    with sqlite_site.database.reading() as session:
        assert runs.list_runs(session, person="local").is_empty()
        assert submissions.list_of(session, "local") == []
    run_id = submit_run(sqlite_site, checked, path, SubmissionMetadata("Model"), publish=True)
    if "retriever" not in said:
        with pytest.raises(InvalidRecord, match="characters"), sqlite_site.database.session() as session:
            runs.edit(session, run_id, **said)
