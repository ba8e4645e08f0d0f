"""Disputes: stored as said, bounded, decided by a keeper, and listed with those that wait first."""

from __future__ import annotations

import pytest

from store.access import disputes
from store.database import Database
from store.errors import Conflict, InvalidRecord, NotFound
from store.records import BenchmarkRecord
from store.validation_models import Dispute, DisputeState


def disputed(benchmark: BenchmarkRecord, **fields: object) -> Dispute:
    said: dict[str, object] = {
        "benchmark_version_id": benchmark.id, "query_id": "q1", "subject": "combination", "tool_ids": ["a", "b"],
        "claimed_valid": False, "reason": "It  lacks\nthe second step.",
    }  # fmt: skip
    return Dispute(**said | fields)


def test_a_dispute_from_its_opening_to_its_decision(database: Database, benchmark: BenchmarkRecord) -> None:
    with database.session() as session:
        made = disputes.open_dispute(session, disputed(benchmark, person="Ann"), limit=5)
        assert made.reason == "It lacks the second step."
        with pytest.raises(Conflict, match="disputed already"):
            disputes.open_dispute(session, disputed(benchmark, tool_ids=["b", "a"]), limit=5)
        other = disputes.open_dispute(
            session, disputed(benchmark, subject="equivalent", position=0, tool_ids=["a"]), limit=5
        )
        decided = disputes.resolve(session, made.id, upheld=True, words="True.", by="keeper")
        assert (decided.state, decided.resolution, decided.resolved_by) == ("upheld", "True.", "keeper")
        # A decided one does not stand in the way of a new one.
        again = disputes.open_dispute(session, disputed(benchmark), limit=5)
        with pytest.raises(InvalidRecord, match="decision"):
            disputes.resolve(session, again.id, upheld=False, words=" ", by="keeper")
        with pytest.raises(NotFound):
            disputes.resolve(session, "none", upheld=False, words="No.", by="keeper")
    with database.reading() as session:
        assert [one.id for one in disputes.list_disputes(session, benchmark.id)] == [again.id, other.id, made.id]
        assert [one.id for one in disputes.list_disputes(session, states=[DisputeState.UPHELD])] == [made.id]
        assert disputes.list_disputes(session, benchmark.id, query_id="q2") == []


def test_what_is_too_much_is_refused(database: Database, benchmark: BenchmarkRecord) -> None:
    for wrong in ({"reason": " "}, {"reason": "x" * 1001}, {"person": "x" * 101}, {"person": "A\u202eB"}):
        with pytest.raises(InvalidRecord), database.session() as session:
            disputes.open_dispute(session, disputed(benchmark, **wrong), limit=5)
    with database.session() as session:
        disputes.open_dispute(session, disputed(benchmark), limit=1)
    with pytest.raises(Conflict, match="the limit is 1"), database.session() as session:
        disputes.open_dispute(session, disputed(benchmark, query_id="q2"), limit=1)
    with database.reading() as session:
        assert len(disputes.list_disputes(session)) == 1


def test_one_query_does_not_use_up_the_day(database: Database, benchmark: BenchmarkRecord) -> None:
    with database.session() as session:
        for place in range(disputes.MOST_OPEN_OF_QUERY):
            last = disputes.open_dispute(session, disputed(benchmark, tool_ids=[f"t{place}"]), limit=100)
        with pytest.raises(Conflict, match="on this query"):
            disputes.open_dispute(session, disputed(benchmark), limit=100)
        disputes.open_dispute(session, disputed(benchmark, query_id="q2"), limit=100)
        disputes.resolve(session, last.id, upheld=False, words="No.", by="keeper")
        disputes.open_dispute(session, disputed(benchmark), limit=100)
