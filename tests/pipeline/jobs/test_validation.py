"""What people say about labels: reports equal sums by hand, names stay out, and nothing changes a stored version."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from sqlalchemy import text

from pipeline.benchmark import TABLES, Benchmark
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.content_hash import content_hash
from pipeline.jobs.benchmark_library import import_into_store, load_benchmark
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.labels import disputes, growth
from pipeline.jobs.labels.reports import (
    corrected_frame,
    headline,
    items_frame,
    nobody_decides,
    read_report,
    report_frame,
    report_json,
)
from pipeline.jobs.labels.samples import draw_sample
from pipeline.jobs.site import Site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from pipeline.toolex.review_card import review_card, serving_tools
from pipeline.toolex.validation import Bucket, wilson_interval
from store.access import benchmarks, reviews, validation
from store.errors import Conflict, InvalidRecord
from store.records import BenchmarkRecord
from store.validation_models import ReviewerRole

COVERAGE, PLATFORM = Bucket.COVERAGE.value, Bucket.PLATFORM.value


def demo(site: Site) -> BenchmarkRecord:
    with site.database.reading() as session:
        return benchmarks.get(session, "demo-tools@1")


def submitted(site: Site, name: str, *, publish: bool) -> str:
    source = demo_run("tools")
    checked = check_run(site, source, "demo-tools")
    return submit_run(site, checked, source, SubmissionMetadata(retriever=name), publish=publish)


def reviewed_sample(site: Site) -> str:
    """Four items: both valid; valid against invalid, decided as valid; both invalid for other reasons; one review."""
    sample = draw_sample(site, demo(site), 4, 5).sample.id
    with site.database.session() as session:
        people = {
            name: validation.invite(session, sample, name, role).person.id
            for name, role in (
                ("Ann Secret", ReviewerRole.REVIEWER), ("Bob Secret", ReviewerRole.REVIEWER),
                ("Cyd Secret", ReviewerRole.ADJUDICATOR),
            )
        }  # fmt: skip
        keys = [item.item for item in validation.items(session, sample)]
        said: list[tuple[str, int, str | None]] = [
            ("Ann Secret", 0, None), ("Bob Secret", 0, None), ("Ann Secret", 1, None), ("Bob Secret", 1, COVERAGE),
            ("Cyd Secret", 1, None), ("Ann Secret", 2, COVERAGE), ("Bob Secret", 2, PLATFORM), ("Ann Secret", 3, None),
        ]  # fmt: skip
        for name, place, bucket in said:
            reviews.give(
                session, people[name], keys[place], valid=bucket is None, reason="=Because it is.", bucket=bucket
            )
    return sample


def test_an_unknown_kind_of_fault_is_refused_and_a_stored_one_read_as_other(sqlite_site: Site) -> None:
    assert list(reviews.BUCKETS) == [bucket.value for bucket in Bucket]
    sample = reviewed_sample(sqlite_site)
    with sqlite_site.database.session() as session:
        ann = validation.invite(session, sample, "Dee", ReviewerRole.REVIEWER).person.id
        item = validation.items(session, sample)[3].item
        with pytest.raises(InvalidRecord, match="'bad taste': choose decomposition ambiguity"):
            reviews.give(session, ann, item, valid=False, reason="No.", bucket="bad taste")
        session.execute(text("UPDATE validation_review SET bucket = 'of a later program' WHERE bucket IS NOT NULL"))
    taxonomy = read_report(sqlite_site, sample).overall.taxonomy
    assert {bucket: count for bucket, count in taxonomy.items() if count} == {Bucket.OTHER: 1.0}


def test_the_report_equals_sums_by_hand(sqlite_site: Site) -> None:
    site = sqlite_site
    public = submitted(site, "Public", publish=True)
    submitted(site, "Hidden", publish=False)
    sample = reviewed_sample(site)
    report = read_report(site, sample)
    found = report.overall
    assert (found.items, found.reviewed, found.decided, found.valid) == (4, 3, 3, 2)
    assert found.precision == wilson_interval(2, 3)
    assert found.agreement == pytest.approx(2 / 3)
    # The first says valid twice in three, the second once: pe = 2/9 + 2/9; κ = (2/3 - 4/9) / (5/9).
    assert found.kappa == pytest.approx(0.4)
    assert {bucket.value: n for bucket, n in found.taxonomy.items() if n} == {COVERAGE: 0.5, PLATFORM: 0.5}
    assert sum(part.items for part in report.domains.values()) == 4
    corrected = corrected_frame(site, report.benchmark, found)
    assert set(corrected["run_id"]) == {public} and set(corrected["metric"]) == {"NDCG", "Recall", "Comp"}
    for row in corrected.iter_rows(named=True):
        assert row["corrected"] == pytest.approx(row["old"] + 2 / 3 * (row["new"] - row["old"]))
        assert row["old"] <= row["corrected_low"] <= row["corrected"] <= row["corrected_high"] <= row["new"]
    told = report_json(report, corrected)
    assert told["all"]["kappa"] == found.kappa and told["sample"]["reviewers"] == 3
    assert (told["all"]["to_adjudicate"], told["sample"]["adjudicators"]) == (0, 1)
    assert told["all"]["precision_least"] == told["all"]["precision_most"] == told["all"]["precision"]
    assert set(corrected["to_adjudicate"]) == {0}
    with pytest.raises(Conflict, match="when the sample is closed"):
        items_frame(site, sample)
    with site.database.session() as session:
        validation.close(session, sample)
    items = items_frame(site, sample)
    assert items["valid"].to_list() == [True, True, False, None]
    assert items["third_valid"].to_list() == [None, True, None, None]
    everything = json.dumps(told) + report_frame(report).write_json() + items.write_json()
    assert "Secret" not in everything


def test_a_report_with_open_disagreements_says_between_what_it_lies(sqlite_site: Site) -> None:
    site = sqlite_site
    submitted(site, "Public", publish=True)
    sample = draw_sample(site, demo(site), 3, 5).sample.id
    with site.database.session() as session:
        ann, bob = (
            validation.invite(session, sample, name, ReviewerRole.REVIEWER).person.id for name in ("Ann", "Bob")
        )
        keys = [item.item for item in validation.items(session, sample)]
        for person, place, bucket in ((ann, 0, None), (bob, 0, None), (ann, 1, None), (bob, 1, COVERAGE)):
            reviews.give(session, person, keys[place], valid=bucket is None, reason="So.", bucket=bucket)
    report = read_report(site, sample)
    assert headline(report) == (
        "1 of 2 reviewed items is valid; 1 waits for a third reviewer, so precision lies between 50.0 and 100.0 % of "
        "the reviewed ones"
    )
    assert "Nobody is invited to decide disagreements yet" in nobody_decides(report)
    told = report_json(report, corrected_frame(site, report.benchmark, report.overall))
    assert (told["all"]["precision"], told["all"]["decided"]) == (1.0, 1)
    assert (told["all"]["to_adjudicate"], told["sample"]["adjudicators"]) == (1, 0)
    assert (told["all"]["precision_least"], told["all"]["precision_most"]) == (0.5, 1.0)
    assert told["all"]["bounds_low"] == wilson_interval(1, 2).low and told["all"]["bounds_high"] == 1.0
    for row in told["corrected"]:
        assert row["to_adjudicate"] == 1
        low = row["old"] + (told["all"]["bounds_low"] or 0.0) * (row["new"] - row["old"])
        assert row["corrected_low"] == pytest.approx(low)
    assert told["corrected"]
    with site.database.session() as session:
        validation.close(session, sample)
    closed = read_report(site, sample)
    assert "1 was not decided by a third reviewer" in headline(closed)
    assert nobody_decides(closed) == "Nobody was invited to decide disagreements."


def test_a_sample_is_the_same_for_the_same_seed(sqlite_site: Site) -> None:
    site, record = sqlite_site, demo(sqlite_site)
    drawn = []
    for _ in range(2):
        sample = draw_sample(site, record, 30, 11).sample
        with site.database.reading() as session:
            drawn.append([item.item for item in validation.items(session, sample.id)])
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 30
    with pytest.raises(UsageError, match="1 to 5,000"):
        draw_sample(site, record, 0, 1)
    with pytest.raises(UsageError, match="seed"):
        draw_sample(site, record, 5, 1 << 31)


def test_every_accepted_combination_says_which_tool_does_what(sqlite_site: Site) -> None:
    content = load_benchmark(sqlite_site, demo(sqlite_site).id)
    accepted = content.combinations.filter((pl.col("verdict") == "valid") & ~pl.col("is_ground_truth"))
    for query, tools in accepted.sample(60, seed=1).select("query_id", "tool_ids").iter_rows():
        card = review_card(content, query, tools, "Because.")
        served = [step.candidate for step in card.steps]
        assert None not in served and {*served, *card.others} == set(tools)
        assert set(card.documents) == {*tools, *(step.truth for step in card.steps)}
        assert all(card.documents.values())
    # A tool that fits two steps makes room for one that fits only the first.
    assert serving_tools({0: ["a", "b"], 1: ["a"]}, ["a", "b"]) == {0: "b", 1: "a"}
    assert serving_tools({0: ["a"], 1: ["a"], 2: ["c"]}, ["a"]) == {0: "a", 1: "a"}


def test_disputes_name_verdicts_and_change_none(sqlite_site: Site) -> None:
    site, record = sqlite_site, demo(sqlite_site)
    content = load_benchmark(site, record.id)
    query = content.combinations.filter(~pl.col("is_ground_truth"))["query_id"][0]
    truth = content.ground_truth.filter(pl.col("query_id") == query)["tool_ids"][0].to_list()
    offered = disputes.disputable(content, query)
    assert all(set(verdict.tool_ids) != set(truth) for verdict in offered)
    assert {verdict.position is None for verdict in offered} == {True, False}
    with pytest.raises(BenchmarkError, match="not the labels"):
        disputes.find_verdict(content, query, truth, None)
    with pytest.raises(BenchmarkError, match="no query"):
        disputes.find_verdict(content, "nothing", truth, None)
    tool, sets = (next(v for v in offered if (v.position is None) is whole) for whole in (False, True))
    assert disputes.find_verdict(content, query, tool.tool_ids, tool.position) == tool
    first = disputes.dispute_verdict(site, record, tool, "It\nneeds a token.", "Ann")
    second = disputes.dispute_verdict(site, record, sets, "It lacks a step.")
    disputes.resolve_dispute(site, first.id, upheld=True, words="It does.")
    disputes.resolve_dispute(site, second.id, upheld=False, words="It does not.")
    (line,) = disputes.upheld_lines(site, record).splitlines()
    told = json.loads(line)
    assert (told["query_id"], told["position"], told["tool_ids"]) == (query, tool.position, list(tool.tool_ids))
    assert told["verdict"] == ("invalid" if tool.valid else "valid") and told["reason"] == "It needs a token."
    assert load_benchmark(site, record.id).content_hash == content.content_hash


def second_version(site: Site, equivalents: pl.DataFrame) -> None:
    content = load_benchmark(site, demo(site).id)
    tables = {table: getattr(content, table) for table in TABLES} | {"equivalents": equivalents}
    info = replace(content.info, version="2", parents=("demo-tools@1",))
    import_into_store(site, Benchmark(info=info, **tables, content_hash=content_hash(tables)))


def test_what_to_verify_next_prefers_queries_that_repeats_disagree_on(sqlite_site: Site) -> None:
    site = sqlite_site
    record = demo(site)
    submitted(site, "Hidden", publish=False)
    assert growth.read_growth(site, record).is_empty()
    submitted(site, "Public", publish=True)
    before = growth.read_growth(site, record)
    judged = load_benchmark(site, record.id).equivalents
    # The last of the queue: all its rows would come first if its query were uncertain.
    query = before["query_id"][-1]
    row = judged.with_row_index().filter((pl.col("query_id") == query) & (pl.col("origin") != "ground_truth"))
    place, said = row["index"][0], row["verdict"][0]
    other = "valid" if said == "invalid" else "invalid"
    second_version(
        site,
        judged.with_columns(verdict=pl.when(pl.int_range(pl.len()) == place).then(pl.lit(other)).otherwise("verdict")),
    )
    after = growth.read_growth(site, record)
    content = load_benchmark(site, record.id)
    with site.database.reading() as session:
        versions = benchmarks.list_records(session, "demo-tools")
    verdicts = growth.verdicts_of_versions(site, content, versions)
    # Copied verdicts count once: only the changed one is there twice.
    assert verdicts.height == judged.filter(pl.col("origin") != "ground_truth").height + 1
    assert after.filter(pl.col("query_id") == query)["uncertainty"].unique().to_list() == [1.0]
    assert after["query_id"][0] == query and before["query_id"][0] != query
    assert set(after.select("query_id", "tool_id").iter_rows()) == set(before.select("query_id", "tool_id").iter_rows())
    asked = growth.questions(content, after, 1)
    needs = content.subqueries.filter(pl.col("query_id") == query)
    assert asked["reference_tool_id"].to_list() == needs.sort("position")["tool_id"].to_list()
    assert [json.loads(line)["tool_id"] for line in growth.question_lines(asked).splitlines()] == [
        after["tool_id"][0]
    ] * needs.height
