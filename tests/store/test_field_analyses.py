"""Analyses beside runs: one row a run and kind, replaced by the next, refused where wrong, known to the doctor."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from store.access import doctor, field_analyses, runs
from store.artifacts import ArtifactStore
from store.database import Database
from store.errors import ArtifactMissing, InvalidRecord, NotFound
from store.models import Run, State
from store.records import Summary


@pytest.fixture
def run_id(
    database: Database, artifacts: ArtifactStore, new_run: Callable[..., Run], figures: Callable[..., list[Summary]]
) -> str:
    with database.session() as session:
        run = new_run(state=State.PUBLISHED.value)
        return runs.add_run(session, run, figures(0.4, 0.5), artifacts=artifacts).id


def test_an_analysis_replaces_the_last_one_of_its_kind(
    database: Database, artifacts: ArtifactStore, run_id: str
) -> None:
    first, second = (artifacts.put_frame(pl.DataFrame({"value": [value]})) for value in (1.0, 2.0))
    with database.session() as session:
        empty = field_analyses.stamp(session)
        field_analyses.put(session, run_id, "fields", computed_from="a", artifact=first, artifacts=artifacts)
        field_analyses.put(session, run_id, "tests", computed_from="a", artifact=first, artifacts=artifacts)
        before = field_analyses.stamp(session)
        field_analyses.put(session, run_id, "fields", computed_from="b", artifact=second, artifacts=artifacts)
    with database.reading() as session:
        assert len({empty, before, field_analyses.stamp(session)}) == 3
        known = field_analyses.of_run(session, run_id)
        assert {kind: (row.computed_from, row.artifact) for kind, row in known.items()} == {
            "fields": ("b", second),
            "tests": ("a", first),
        }
        assert list(field_analyses.of_kind(session, "tests", [run_id, "no-such-run"])) == [run_id]
        assert f"analysis of fields of run {run_id}" in doctor.referenced(session)[second]


def test_what_is_wrong_is_refused(database: Database, artifacts: ArtifactStore, run_id: str) -> None:
    frame = artifacts.put_frame(pl.DataFrame({"value": [1.0]}))
    with database.session() as session:
        with pytest.raises(InvalidRecord):
            field_analyses.put(session, run_id, "weather", computed_from="a", artifact=frame, artifacts=artifacts)
        with pytest.raises(NotFound):
            field_analyses.put(session, "nobody", "fields", computed_from="a", artifact=frame, artifacts=artifacts)
        with pytest.raises(ArtifactMissing):
            field_analyses.put(session, run_id, "fields", computed_from="a", artifact="f" * 64, artifacts=artifacts)
        assert field_analyses.of_run(session, run_id) == {}
