"""Heartbeats, and the cost of measured runs."""

from __future__ import annotations

from datetime import timedelta

from store.access import runs, workers
from store.access.efficiency import EFFICIENCY_COLUMNS, efficiencies
from store.models import Worker

HERE = {"host": "here", "queues": ("cpu", "llm"), "device": "cpu"}


def _silence(database, worker_id, seconds):
    with database.session() as session:
        row = session.get(Worker, worker_id)
        row.seen_at = row.seen_at - timedelta(seconds=seconds)


def test_a_worker_is_alive_until_it_falls_silent(database):
    with database.session() as session:
        workers.beat(session, "a", pid=1, **HERE)
        workers.beat(session, "b", pid=2, **HERE)
    _silence(database, "a", 31)
    with database.reading() as session:
        listed = workers.list_workers(session)
        assert [item.id for item in workers.alive(session, 30)] == ["b"]
    assert [item.id for item in listed] == ["b", "a"]
    assert 31 <= listed[1].silent_s < 60
    assert listed[0].queues == ("cpu", "llm")
    with database.session() as session:
        workers.beat(session, "a", pid=1, **HERE)
    with database.reading() as session:
        assert {item.id for item in workers.alive(session, 30)} == {"a", "b"}


def test_a_stopping_worker_leaves_its_successors_row(database):
    with database.session() as session:
        workers.beat(session, "a", pid=1, **HERE)
    _silence(database, "a", 100)
    with database.session() as session:
        workers.beat(session, "a", pid=2, **HERE)
        workers.remove(session, "a", 1)
    with database.reading() as session:
        (found,) = workers.list_workers(session)
    assert found.pid == 2
    assert found.seen_at - found.started_at < timedelta(seconds=1)
    with database.session() as session:
        workers.remove(session, "a", 2)
        workers.forget(session, ["nobody"])
    with database.reading() as session:
        assert workers.list_workers(session) == []


def test_the_cost_of_a_measured_run_is_kept(database, artifacts, new_run, figures):
    cost = {"query_ms": 1.5, "dimension": 384, "index_bytes": 10**11, "device": "cpu (2 threads)"}
    with database.session() as session:
        measured = runs.add_run(session, new_run(efficiency=cost), figures(0.5, 0.6), artifacts=artifacts)
        uploaded = runs.add_run(session, new_run(), figures(0.5, 0.6), artifacts=artifacts)
    assert measured.efficiency == cost
    assert uploaded.efficiency is None
    with database.reading() as session:
        frame = efficiencies(session, [measured.id, uploaded.id, "nothing"])
    assert frame.columns == list(EFFICIENCY_COLUMNS)
    (row,) = frame.to_dicts()
    # What was not measured is null, not 0.
    assert row == {**dict.fromkeys(EFFICIENCY_COLUMNS), "run_id": measured.id, **cost}
