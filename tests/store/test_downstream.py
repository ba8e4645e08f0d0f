"""Downstream studies: a label once, nothing replaced, found by benchmark, their frames known to the doctor."""

from __future__ import annotations

import polars as pl
import pytest

from store.access import benchmarks, doctor, downstream
from store.artifacts import ArtifactStore
from store.database import Database
from store.errors import ArtifactMissing, Conflict, InvalidRecord, NotFound
from store.models import BenchmarkVersion
from store.records import BenchmarkRecord


def test_studies_are_kept_under_their_labels(
    database: Database, artifacts: ArtifactStore, benchmark: BenchmarkRecord
) -> None:
    frame = artifacts.put_frame(pl.DataFrame({"task": ["1"], "passed": [True]}))
    settings = ("Oracle", "expanded")
    with database.session() as session:
        other = benchmarks.add_version(session, BenchmarkVersion(slug="other", version="1", title="Other", kind="tool"))

    def add(label: str, version: int | None) -> downstream.DownstreamStudyRecord:
        with database.session() as session:
            return downstream.add(
                session, label=label, artifact=frame, settings=settings, tasks=1, artifacts=artifacts,
                benchmark_version_id=version, note="agent  A",
            )  # fmt: skip

    first = add("Agent  A, May", benchmark.id)
    add("of none", None)
    add("of another", other.id)
    assert (first.label, first.settings, first.note) == ("Agent A, May", settings, "agent A")
    with pytest.raises(Conflict, match="Agent A, May"):
        add(" Agent A, May ", None)
    with database.reading() as session:
        assert downstream.get(session, "Agent A,  May") == downstream.get(session, first.id) == first
        assert [study.label for study in downstream.list_studies(session)] == ["of another", "of none", "Agent A, May"]
        assert {study.label for study in downstream.list_studies(session, slug="weather")} == {"of none", first.label}
        assert "downstream study Agent A, May" in doctor.referenced(session)[frame]
        with pytest.raises(NotFound, match="'of none'"):
            downstream.get(session, "nobody")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"label": " "}, InvalidRecord),
        ({"label": "l" * 121}, InvalidRecord),
        ({"label": "a\u202eb"}, InvalidRecord),
        ({"note": "n" * 1001}, InvalidRecord),
        ({"settings": ()}, InvalidRecord),
        ({"artifact": "f" * 64}, ArtifactMissing),
    ],
)
def test_what_is_wrong_is_refused(
    database: Database, artifacts: ArtifactStore, wrong: dict[str, object], error: type[Exception]
) -> None:
    frame = artifacts.put_frame(pl.DataFrame({"task": ["1"]}))
    said = {"label": "x", "artifact": frame, "settings": ("Oracle",), "tasks": 1, "note": ""} | wrong
    with database.session() as session, pytest.raises(error):
        downstream.add(session, artifacts=artifacts, **said)  # type: ignore[arg-type]
    with database.reading() as session:
        assert downstream.list_studies(session) == []
