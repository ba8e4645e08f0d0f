"""Expansions in the store: the same request once, chunks after their frames, and what a finished one refuses."""

from __future__ import annotations

import polars as pl
import pytest

from store.access import annotations as stored
from store.access import benchmarks, doctor, llm
from store.access.llm import AnswerRecord, CallEnd, NewCall
from store.annotation_models import Annotation, AnnotationChunk
from store.artifacts import ArtifactStore
from store.database import Database
from store.errors import ArtifactMissing, Conflict, NotFound
from store.models import BenchmarkVersion
from store.records import BenchmarkRecord


def expansion(parent: BenchmarkRecord, name: str = "a" * 32, version: str = "2", **fields: object) -> Annotation:
    defaults = {"benchmark_version_id": parent.id, "settings": {"depth": 20}, "settings_hash": "s" * 64}
    return Annotation(id=name, version=version, **{**defaults, **fields})


def chunk(name: str, number: int, artifact: str, **failures: int) -> AnnotationChunk:
    return AnnotationChunk(
        annotation_id=name,
        number=number,
        start=5 * number,
        stop=5 * number + 5,
        artifacts={"states": artifact},
        failures=failures,
    )


def frame(artifacts: ArtifactStore, value: int) -> str:
    return artifacts.put_frame(pl.DataFrame({"value": [value]}))


def test_the_same_request_is_stored_once_and_keeps_its_budget(database: Database, benchmark: BenchmarkRecord) -> None:
    with database.session() as session:
        first = stored.add(session, expansion(benchmark, max_cost=2.5, person="keeper"))
    assert (first.state, first.done, first.pending, first.batch, first.max_cost) == ("open", False, 0, (), 2.5)
    with database.session() as session:
        again = stored.add(session, expansion(benchmark, max_cost=9.0))
        assert again == first
        with pytest.raises(NotFound, match="no benchmark version"):
            stored.add(session, expansion(benchmark, "c" * 32, benchmark_version_id=999))
    with database.session() as session:
        changed = stored.set_budget(session, first.id, None, 40)
    assert (changed.max_cost, changed.max_calls) == (None, 40) and changed.updated_at > first.updated_at
    with database.reading() as session:
        assert stored.get(session, first.id[:8]) == changed
        assert stored.list_records(session) == [changed]
        for wrong in ("a" * 7, "b" * 32, "%" * 8):
            with pytest.raises(NotFound, match="no expansion"):
                stored.get(session, wrong)


def test_what_a_model_was_asked_for_is_not_taken_away(database: Database, benchmark: BenchmarkRecord) -> None:
    name = "a" * 32
    for state, removed in (("refused", True), ("done", False), ("sent", False)):
        with database.session() as session:
            stored.add(session, expansion(benchmark))
            call = NewCall(f"call {state}", "k", "verify", "openai/judge", 1, 5)
            assert llm.reserve(session, name, [call]) == 1
            if state != "sent":
                llm.settle(session, name, [CallEnd(call.id, state, 1, 1, 0.0, 0, 0.1)])
        with database.session() as session:
            assert stored.remove_unbegun(session, name) is removed


def test_names_that_are_taken_are_refused(database: Database, benchmark: BenchmarkRecord) -> None:
    with database.session() as session:
        stored.add(session, expansion(benchmark))
        other = BenchmarkVersion(slug="sea", version="1", title="Sea", kind="tool", headline="macro", content_hash="d")
        sea = benchmarks.add_version(session, other)
        stored.add(session, expansion(sea, "d" * 32))  # the same version of another slug
    with database.session() as session:
        with pytest.raises(Conflict, match=r"weather@1\.0 is stored"):
            stored.add(session, expansion(benchmark, "b" * 32, "1.0"))
        with pytest.raises(Conflict, match="aaaaaaaaaaaa makes"):
            stored.add(session, expansion(benchmark, "b" * 32))
    with database.session() as session:
        stored.add(session, expansion(benchmark, "aaaaaaaa" + "b" * 24, "3"))
        with pytest.raises(NotFound, match="several"):
            stored.get(session, "aaaaaaaa")


def test_chunks_come_after_their_frames_and_take_the_place_of_earlier_ones(
    database: Database, benchmark: BenchmarkRecord, artifacts: ArtifactStore
) -> None:
    name, first, second = "a" * 32, frame(artifacts, 1), frame(artifacts, 2)
    with database.session() as session:
        begun = stored.add(session, expansion(benchmark))
        before = stored.stamp(session)
    with database.session() as session, pytest.raises(ArtifactMissing):
        stored.put_chunk(session, chunk(name, 0, "f" * 64), artifacts=artifacts)
    for number, artifact in ((1, first), (0, first), (1, second)):
        with database.session() as session:
            stored.put_chunk(session, chunk(name, number, artifact, verify=number), artifacts=artifacts)
    with database.reading() as session:
        found = stored.chunks(session, name)
        assert [(one.number, one.queries, one.artifacts["states"]) for one in found] == [(0, 5, first), (1, 5, second)]
        assert [dict(one.failures) for one in found] == [{"verify": 0}, {"verify": 1}]
        assert stored.stamp(session) != before and stored.get(session, name).updated_at > begun.updated_at
        owners = doctor.referenced(session)
        assert owners[second] == (f"states of chunk 1 of expansion {name}",)


def test_a_round_of_a_batch_waits_until_it_is_asked_live(
    database: Database, benchmark: BenchmarkRecord, artifacts: ArtifactStore
) -> None:
    name = "a" * 32
    batch, answers = [artifacts.put_bytes(text) for text in (b"batch", b"answers")]
    with database.session() as session:
        stored.add(session, expansion(benchmark))
        stored.set_way(session, name, batched=True, retry_failed=False)
        stored.set_batch(session, name, 7, [batch], artifacts=artifacts)
        stored.add_answers(session, name, answers, artifacts=artifacts)
        twice = stored.add_answers(session, name, answers, artifacts=artifacts)
        assert (twice.pending, twice.batch, twice.answers) == (7, (batch,), (answers,))
        owners = doctor.referenced(session)
        assert owners[batch] == (f"batch file of expansion {name}",)
        assert owners[answers] == (f"answers file of expansion {name}",)
        same = stored.set_way(session, name, batched=True, retry_failed=False)
        assert (same.pending, same.answers) == (7, (answers,))
        live = stored.set_way(session, name, batched=False, retry_failed=True)
        assert (live.pending, live.batch, live.answers, live.retry_failed) == (0, (), (), True)
    with database.session() as session, pytest.raises(ArtifactMissing):
        stored.set_batch(session, name, 1, ["f" * 64], artifacts=artifacts)


def test_a_finished_expansion_never_changes(
    database: Database, benchmark: BenchmarkRecord, artifacts: ArtifactStore
) -> None:
    name, kept = "a" * 32, frame(artifacts, 3)
    with database.session() as session:
        stored.add(session, expansion(benchmark))
        made = benchmarks.add_version(
            session,
            BenchmarkVersion(
                slug="weather", version="2", title="W", kind="tool", headline="macro", content_hash="e" * 64
            ),
        )
        with pytest.raises(NotFound, match="999"):
            stored.finish(session, name, 999, {"states": kept}, artifacts=artifacts)
        done = stored.finish(session, name, made.id, {"states": kept}, artifacts=artifacts)
        assert done.done and done.made_version_id == made.id
        assert stored.finish(session, name, made.id, {}, artifacts=artifacts) == done
        assert stored.that_made(session, made.id) == done and stored.that_made(session, benchmark.id) is None
        assert doctor.referenced(session)[kept] == (f"states of expansion {name}",)
        for refused in (
            lambda: stored.finish(session, name, benchmark.id, {}, artifacts=artifacts),
            lambda: stored.put_chunk(session, chunk(name, 0, kept), artifacts=artifacts),
            lambda: stored.set_way(session, name, batched=True, retry_failed=False),
            lambda: stored.set_batch(session, name, 1, [], artifacts=artifacts),
            lambda: stored.add_answers(session, name, kept, artifacts=artifacts),
        ):
            with pytest.raises(Conflict):
                refused()


def test_failures_are_forgotten_by_question(database: Database) -> None:
    def record(key: str, state: str) -> AnswerRecord:
        value = "{}" if state == "answer" else None
        return AnswerRecord(key, state, value, "", "m", "p", "verify", 1, 0, 0, None, 0.0)

    with database.session() as session:
        llm.put_answers(session, [record("a", "failure"), record("b", "failure"), record("c", "answer")])
        assert llm.forget_failures(session, keys=["a", "c", "unknown"]) == 1
        assert {row.key for row in llm.answers(session, ["a", "b", "c"])} == {"b", "c"}
        assert llm.forget_failures(session, keys=[]) == 0
