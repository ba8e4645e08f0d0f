from __future__ import annotations

from datetime import timedelta

import polars as pl

from store.access import benchmarks, runs
from store.access.doctor import check_integrity, orphans, referenced
from store.models import BenchmarkVersion


def test_a_sound_store_is_ok(database, artifacts, new_run, figures, ranking):
    with database.session() as session:
        run = runs.add_run(
            session, new_run(raw_artifact=artifacts.put_bytes(b"raw")), figures(0.1, 0.2), artifacts=artifacts
        )
    seen: list[tuple[int, int]] = []
    with database.reading() as session:
        report = check_integrity(session, artifacts, progress=lambda done, total: seen.append((done, total)))
        assert referenced(session)[ranking] == (f"ranking of run {run.id}",)
    assert report.ok
    assert (report.checked, report.missing, report.damaged, report.orphans) == (2, (), (), ())
    assert seen == [(1, 2), (2, 2)]


def test_missing_and_damaged_artifacts_name_their_rows(database, artifacts, new_run, figures, ranking):
    tools = artifacts.put_frame(pl.DataFrame({"tool_id": ["a"]}))
    with database.session() as session:
        version = BenchmarkVersion(slug="b", version="1", title="B", kind="tool", artifacts={"tools": tools})
        benchmarks.add_version(session, version, artifacts=artifacts)
        run = runs.add_run(session, new_run(), figures(0.1, 0.2), artifacts=artifacts)
    artifacts.remove(ranking)
    path = artifacts.local_path(tools)
    content = bytearray(path.read_bytes())
    content[10] ^= 0xFF
    path.write_bytes(bytes(content))
    with database.reading() as session:
        report = check_integrity(session, artifacts)
        shallow = check_integrity(session, artifacts, deep=False)
    assert not report.ok
    assert [(item.hash, item.owners) for item in report.missing] == [(ranking, (f"ranking of run {run.id}",))]
    assert [(item.hash, item.owners) for item in report.damaged] == [(tools, ("tools of benchmark b@1",))]
    assert [item.hash for item in shallow.missing] == [ranking]
    assert shallow.damaged == ()


def test_orphans_are_listed_once_old_enough(database, artifacts, new_run, figures, ranking):
    left = artifacts.put_bytes(b"left by a killed process")
    with database.session() as session:
        runs.add_run(session, new_run(), figures(0.1, 0.2), artifacts=artifacts)
    with database.reading() as session:
        assert orphans(session, artifacts) == []
        assert [item.hash for item in orphans(session, artifacts, older_than=timedelta(0))] == [left]
        assert orphans(session, artifacts, older_than=timedelta(0), needed={left}) == []


def test_what_jobs_need_is_looked_at_too(database, artifacts):
    kept = artifacts.put_bytes(b"a batch of questions")
    needed = {kept: ("batch file of job 1",), "0" * 64: ("answers of job 1",)}
    with database.reading() as session:
        report = check_integrity(session, artifacts, needed=needed)
    assert [(item.hash, item.owners) for item in report.missing] == [("0" * 64, ("answers of job 1",))]
    assert report.checked == 2
