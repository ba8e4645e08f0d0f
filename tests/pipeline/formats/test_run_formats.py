"""Every format gives the same run, and says what it was read as."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.formats.limits import Limits
from pipeline.formats.parquet import positions_of
from pipeline.formats.ranking import ranking_frame, run_of_frame
from pipeline.formats.run_file import read_run
from pipeline.formats.run_writer import write_trec
from pipeline.run import Order, Run, Verdict
from tests.pipeline.formats.run_targets import (
    SCORED,
    as_lists,
    delimited,
    full_lists,
    make_target,
    messages,
    nested,
    parquet,
    read,
    small_target,
    trec,
)


def same(left: Run | None, right: Run | None) -> bool:
    assert left is not None
    assert right is not None
    return (
        np.array_equal(left.offsets, right.offsets)
        and np.array_equal(left.tools, right.tools)
        and np.array_equal(left.scores, right.scores)
        and left.ranking_hash == right.ranking_hash
    )


@pytest.mark.parametrize("name", SCORED)
def test_reads_as(name: str) -> None:
    reading = read(SCORED[name](full_lists()), small_target())
    assert reading.report.verdict is Verdict.ACCEPT, messages(reading)
    assert reading.report.format == name
    assert reading.report.flags == ()
    assert dict(reading.report.counts) | {"lines": 0} == {
        "lines": 0, "queries": 3, "rows": 36, "depth": 12, "total_queries": 3,
    }  # fmt: skip
    assert same(reading.run, read(trec(full_lists()), small_target()).run)


@pytest.mark.parametrize("squeeze", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("name", [name for name in SCORED if name != "parquet"])
def test_reads_compressed(name: str, squeeze: object) -> None:
    data = SCORED[name](full_lists())
    half = data.index(b"q2") if name != "trec" else data.index(b"q2 ")
    whole = squeeze(data)  # type: ignore[operator]
    members = squeeze(data[:half]) + squeeze(data[half:])  # type: ignore[operator]
    plain = read(data, small_target()).run
    assert same(read(whole, small_target()).run, plain)
    assert same(read(members, small_target()).run, plain)
    cut = read(whole[:-9], small_target())
    assert cut.report.verdict is Verdict.REFUSE
    assert "truncated" in messages(cut)


# Ids without white space or control characters, as TREC needs; quotes, '#', commas and any script are fine.
IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp", "Cn", "Co"), exclude_characters="\ufeff"),
    min_size=1,
    max_size=8,
)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def benchmarks_and_lists(draw: st.DrawFn) -> tuple[list[str], list[str], dict[str, list[tuple[str, float]]]]:
    queries = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    tools = draw(st.lists(IDS, min_size=2, max_size=8, unique=True))
    answered = draw(st.lists(st.sampled_from(queries), min_size=1, unique=True))
    lists = {}
    for query in answered:
        chosen = draw(st.lists(st.sampled_from(tools), min_size=1, unique=True))
        scores = sorted((draw(FLOATS) for _ in chosen), reverse=True)
        lists[query] = list(zip(chosen, scores, strict=True))
    return queries, tools, lists


def by_rule(lists: dict[str, list[tuple[str, float]]]) -> dict[str, list[str]]:
    """The ranking rule in plain Python."""
    return {
        query: [
            tool
            for _, tool in sorted(
                ((s, t) for t, s in results), key=lambda r: (np.float32(r[0]), r[1].encode()), reverse=True
            )
        ]
        for query, results in lists.items()
    }


@settings(max_examples=60, deadline=None)
@given(benchmarks_and_lists())
def test_all_formats_agree_with_a_plain_sort(
    drawn: tuple[list[str], list[str], dict[str, list[tuple[str, float]]]],
) -> None:
    queries, tools, lists = drawn
    target = make_target(queries, tools)
    want = by_rule(lists)
    first: Run | None = None
    for name, write in SCORED.items():
        if name in ("csv", "tsv") and any(len(i.split()) != 1 or i.startswith("#") for i in (*queries, *tools)):
            continue
        reading = read(write(lists), target, order=Order.SCORE)
        assert as_lists(reading, target) == want, name
        first = first or reading.run
        assert same(reading.run, first), name


@settings(max_examples=60, deadline=None)
@given(benchmarks_and_lists(), st.randoms())
def test_written_runs_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[list[str], list[str], dict[str, list[tuple[str, float]]]],
    random: object,
) -> None:
    queries, tools, lists = drawn
    target = make_target(queries, tools)
    run = read(trec(lists), target, order=Order.SCORE).run
    assert run is not None
    path = tmp_path_factory.mktemp("runs") / "run.trec"
    write_trec(run, target, path, "a tag")
    assert same(read_run(path, target, order=Order.SCORE).run, run)
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    random.shuffle(lines)  # type: ignore[attr-defined]
    assert same(read("\n".join(lines), target, order=Order.SCORE).run, run)
    frame = ranking_frame(run, target)
    assert frame.schema == {"query_id": pl.String, "tool_id": pl.String, "score": pl.Float32, "rank": pl.Int32}
    assert same(run_of_frame(frame.sample(fraction=1.0, shuffle=True, seed=1), target), run)


def test_hash_depends_on_the_ranking_alone() -> None:
    lists = full_lists()
    base = read(trec(lists), small_target()).run
    larger = read(trec(lists), small_target(queries=5, tools=40)).run
    rescored = read(trec({q: [(t, s * 2) for t, s in r] for q, r in lists.items()}), small_target()).run
    swapped = read(
        trec(lists | {"q1": [(lists["q1"][1][0], 2.0), (lists["q1"][0][0], 1.5), *lists["q1"][2:]]}), small_target()
    ).run
    assert base is not None
    assert larger is not None
    assert rescored is not None
    assert swapped is not None
    assert base.ranking_hash == larger.ranking_hash == rescored.ranking_hash != swapped.ranking_hash


def test_ids_stay_text() -> None:
    ids = ["007", "7", "NA", "null", "true", "1e5", "#x", '"a"', "nan", "Ünï", "漢字"]
    target = make_target(ids, ids)
    lists = {query: [(tool, 50.5 - i) for i, tool in enumerate(ids)] for query in ids}
    for name, write in SCORED.items():
        assert as_lists(read(write(lists), target), target) == by_rule(lists), name


def test_lists_rank_as_they_stand() -> None:
    lists = full_lists()
    want = {query: [tool for tool, _ in results] for query, results in lists.items()}
    for data, name in (
        (json.dumps(want), "lists"),
        (json.dumps({"task": want}), "toolret-json"),
        ("\n".join(json.dumps({"qid": q, "tools": r}) for q, r in want.items()), "jsonl"),
    ):
        reading = read(data, small_target())
        assert as_lists(reading, small_target()) == want
        assert reading.report.format == name
        assert reading.report.verdict is Verdict.ACCEPT
        assert reading.run is not None
        assert (np.diff(reading.run.scores[:12]) < 0).all()


@pytest.mark.parametrize(
    "record",
    [
        lambda q, r: {"id": q, "ranked_ids": [t for t, _ in r], "scores": [s for _, s in r]},
        lambda q, r: {"qid": q, "results": [{"skill_id": t, "score": s} for t, s in r]},
        lambda q, r: {
            "query_id": q,
            "retrieved": [{"skill_id": t, "score": s, "name": "x"} for t, s in r],
            "query": "text",
        },
        lambda q, r: {"query": {"text": "a"}, "query_id": q, "results": [[t, s] for t, s in r]},
        lambda q, r: {"query_id": q, "results": dict(r)},
    ],
)
def test_jsonl_spellings(record: object) -> None:
    data = "\n".join(json.dumps(record(q, r)) for q, r in full_lists().items())  # type: ignore[operator]
    assert same(read(data, small_target()).run, read(trec(full_lists()), small_target()).run)


def test_one_line_of_jsonl() -> None:
    reading = read(json.dumps({"query_id": "q1", "ranked_ids": ["t01", "t02"]}), small_target())
    assert reading.report.format == "jsonl"
    assert as_lists(reading, small_target()) == {"q1": ["t01", "t02"]}


@pytest.mark.parametrize("header", ["query_id,tool_id,rank", "rank,qid,docid", "tool_id,score,query_id,rank"])
def test_csv_headers(header: str) -> None:
    names = header.split(",")
    lines = [header]
    for query, results in full_lists().items():
        for rank, (tool, score) in enumerate(results, 1):
            cell = {
                "query_id": query,
                "qid": query,
                "tool_id": tool,
                "docid": tool,
                "rank": str(rank),
                "score": repr(score),
            }
            lines.append(",".join(cell[name] for name in names))
    reading = read("\r\n".join(lines) + "\r\n", small_target())
    assert reading.run is not None, messages(reading)
    assert reading.run.ranking_hash == read(trec(full_lists()), small_target()).run.ranking_hash  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["distance", "Dist"])
def test_a_distance_column_asks_for_the_order(name: str) -> None:
    lists = full_lists()
    header = f"query_id,tool_id,{name}\n"
    text = header + "".join(f"{q},{t},{-s}\n" for q, found in lists.items() for t, s in found)
    refused = read(text, small_target())
    assert refused.report.verdict is Verdict.REFUSE
    assert "declare the order" in messages(refused)
    nearest = read(text, small_target(), order=Order.DISTANCE)
    assert same(nearest.run, read(trec(lists), small_target()).run)
    farthest = read(text, small_target(), order=Order.SCORE)
    assert farthest.run is not None
    assert not same(farthest.run, nearest.run)


def test_six_columns_of_csv_and_tsv_with_header() -> None:
    text = trec(full_lists()).decode()
    assert same(read(text.replace(" ", ","), small_target()).run, read(text, small_target()).run)
    assert read(text.replace(" ", ","), small_target()).report.format == "csv"
    assert same(read(delimited(full_lists(), "\t", header=True), small_target()).run, read(text, small_target()).run)


def test_csv_quotes() -> None:
    target = make_target(["q,1", 'q"2"'], ["a b", "c\nd", "e"])
    lists = {"q,1": [("a b", 2.0), ("c\nd", 1.0)], 'q"2"': [("e", 3.0), ("a b", 0.5)]}
    reading = read(delimited(lists, ",", header=True), target)
    assert as_lists(reading, target) == {q: [t for t, _ in r] for q, r in lists.items()}


def test_parquet_types() -> None:
    plain = read(trec(full_lists()), small_target()).run
    for columns in (
        {"query_id": pl.col("query_id").cast(pl.Categorical)},
        {"tag": pl.lit("x"), "other": pl.lit(1)},
    ):
        assert same(read(parquet(full_lists(), **columns), small_target()).run, plain)
    ranked = parquet(full_lists(), rank=pl.int_range(pl.len()).over("query_id").cast(pl.Int64))
    frame = pl.read_parquet(io.BytesIO(ranked)).drop("score")
    out = io.BytesIO()
    frame.write_parquet(out)
    reading = read(out.getvalue(), small_target())
    assert as_lists(reading, small_target()) == by_rule(full_lists())
    assert "rank column" in " ".join(reading.report.notes)


def test_path_and_stream_agree(tmp_path: Path) -> None:
    for name, write in SCORED.items():
        path = tmp_path / "run[*].txt"
        path.write_bytes(write(full_lists()))
        assert same(read_run(path, small_target()).run, read(write(full_lists()), small_target()).run), name


def test_mteb_parts() -> None:
    lists = full_lists()
    other = {"q1": [("t05", 1.0), ("t06", 0.5)]}
    data = json.dumps(
        {
            "mteb_model_meta": {"model_name": "a/b", "revision": "r"},
            "en": {"test": nested(lists)},
            "de": {"test": nested(other)},
        }
    )
    refused = read(data, small_target())
    assert refused.report.verdict is Verdict.REFUSE
    assert '"de/test"' in messages(refused)
    assert '"en/test"' in messages(refused)
    assert as_lists(read(data, small_target(), part="de/test"), small_target()) == by_rule(other)
    assert as_lists(read(data, small_target(), part="en/test"), small_target()) == by_rule(lists)
    assert "no part" in messages(read(data, small_target(), part="fr/test"))
    assert read(data, small_target(), part="en/test").report.prefill == {"retriever": "a/b", "revision": "r"}


def test_faults_of_a_part_not_read_do_not_matter() -> None:
    data = json.dumps(
        {"mteb_model_meta": {}, "en": {"test": nested(full_lists())}, "de": {"test": {"nobody": {"t01": "x"}}}}
    )
    assert read(data, small_target(), part="en/test").report.verdict is Verdict.ACCEPT
    assert read(data, small_target(), part="de/test").report.verdict is Verdict.REFUSE


def test_toolret_tasks_are_merged() -> None:
    lists = full_lists()
    first, rest = {"q1": lists["q1"]}, {q: r for q, r in lists.items() if q != "q1"}
    data = json.dumps({"a": nested(first), "b": nested(rest)})
    assert as_lists(read(data, small_target()), small_target()) == by_rule(lists)
    twice = read(json.dumps({"a": nested(first), "b": nested(lists)}), small_target())
    assert "two tasks" in messages(twice)


def test_ir_metadata_prefills() -> None:
    header = (
        "# ir_metadata.start\n# tag: bm25\n# actor:\n#   team: two words here and more\n"
        "# method:\n#   name: BM25\n# ir_metadata.end\n"
    )
    reading = read(header.encode() + trec(full_lists()), small_target())
    assert reading.report.verdict is Verdict.NORMALISE
    assert dict(reading.report.prefill) == {"tag": "bm25", "team": "two words here and more", "retriever": "BM25"}
    assert same(reading.run, read(trec(full_lists()), small_target()).run)


def test_progress_reaches_the_end() -> None:
    for name, write in SCORED.items():
        seen: list[float] = []
        read(write(full_lists()), small_target(), progress=seen.append)
        assert name == "parquet" or seen[-1] == 1.0
        assert seen == sorted(seen)


def test_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines cut by block borders, ids remembered across them, and events numbered over the whole file."""
    from pipeline.formats import text_blocks

    monkeypatch.setattr(text_blocks, "BLOCK", 300)
    limits = Limits(line_bytes=100)
    lists = full_lists()
    for name, write in SCORED.items():
        if name not in ("jsonl",):
            assert same(read(write(lists), small_target(), limits=limits).run, read(trec(lists), small_target()).run), (
                name
            )
    lines = trec(lists).decode().splitlines()
    lines[30] = lines[30].replace(" Q0 ", " ")
    lines[33] = lines[33].replace(" t", " x", 1)
    reading = read("\n".join(lines), small_target(), limits=limits)
    assert [problem.line for problem in reading.report.problems] == [31, 34]


def test_positions_of_nulls_and_unknown() -> None:
    table = small_target().tools
    assert positions_of(pl.Series(["t02", None, "x", "t01", "t02"], dtype=pl.String), table).tolist() == [
        1,
        -1,
        -1,
        0,
        1,
    ]


@pytest.mark.parametrize("query", ["{x}", '["q"]', "<q1>", "BZhang", "%PDFs", "Rar!", "PK1", "#1", '{"q":'])
def test_ids_that_look_like_other_formats(query: str) -> None:
    target = make_target([query], ["t1", "t2"])
    assert as_lists(read(f"{query} Q0 t2 1 0.5 tag\n{query} Q0 t1 2 0.25 tag\n", target), target) == {
        query: ["t2", "t1"]
    }


def test_long_lines_of_jsonl_are_recognised() -> None:
    tools = [f"tool_{i:06}" for i in range(9000)]
    target = make_target(["q1", "q2"], tools)
    for record in (lambda q: {"query_id": q, "ranked_ids": tools}, lambda q: {"ranked_ids": tools, "query_id": q}):
        reading = read("\n".join(json.dumps(record(q)) for q in ("q1", "q2")), target, limits=Limits(depth=10_000))
        assert reading.report.format == "jsonl"
        assert as_lists(reading, target) == {"q1": tools, "q2": tools}
