"""Benchmark folders: what is read, what is refused and with which words, and that export equals import."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.benchmark import Average, Benchmark
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder, verify_benchmark, write_benchmark_folder
from tests.pipeline.formats.benchmark_folders import (
    GROUND_TRUTH,
    QUERIES,
    TOML,
    TOOLS,
    Rows,
    combination,
    equivalent,
    subquery,
    write_folder,
    write_rows,
)


def refusal(path: Path) -> BenchmarkError:
    with pytest.raises(BenchmarkError) as caught:
        read_benchmark_folder(path)
    return caught.value


def refused(tmp_path: Path, toml: str = TOML, **tables: Rows) -> tuple[str, ...]:
    return refusal(write_folder(tmp_path / "b", toml, **tables)).problems


def taken(tmp_path: Path, toml: str = TOML, **tables: Rows) -> Benchmark:
    return read_benchmark_folder(write_folder(tmp_path / "b", toml, **tables))


def test_a_plain_folder_is_read_without_notes(tmp_path: Path) -> None:
    benchmark = taken(tmp_path)
    assert benchmark.info.slug == "tiny"
    assert benchmark.info.effective_headline is Average.MACRO
    assert (benchmark.tools.height, benchmark.queries.height) == (5, 2)
    assert benchmark.ground_truth["tool_ids"].to_list() == [["t0", "t1"], ["t2"]]
    assert not benchmark.has_combinations
    assert benchmark.notes == ()


def test_a_full_folder_keeps_every_label(tmp_path: Path) -> None:
    benchmark = taken(
        tmp_path,
        TOML + 'revision = "abc"\nparents = ["tiny@0"]\nheadline = "micro"\n',
        subqueries=[subquery("q0", 1, "t0"), subquery("q0", 0, "t1")],
        equivalents=[
            equivalent("q0", 0, "t1", origin="ground_truth"),  # position 0 is the sub-query of t1
            {**equivalent("q0", 1, "t3", "invalid"), "retrieval_rank": 4, "same_operation": False},
        ],
        combinations=[
            combination("q0", "t0", "t1", is_ground_truth=True),
            combination("q0", "t3", "t1", verdict="unsure", rrf_score=0.03),
        ],
    )
    assert benchmark.info.parents == ("tiny@0",)
    assert benchmark.info.effective_headline is Average.MICRO
    assert benchmark.equivalents["same_operation"].to_list() == [None, False]
    assert benchmark.combinations["verdict"].to_list() == ["valid", "unsure", "valid"]
    assert benchmark.combinations["is_ground_truth"].to_list() == [True, False, True]
    assert benchmark.notes == ("combinations.jsonl: the ground truth was not among the combinations of 1 query; added",)


def test_ids_stay_text(tmp_path: Path) -> None:
    odd = ["007", "NA", "null", "1e5", 'q"uote', "#x", "é", "e\u0301", "TRUE"]
    benchmark = taken(
        tmp_path,
        tools=[{"tool_id": tool, "documentation": ""} for tool in odd],
        queries=[{"query_id": "007", "text": "x"}],
        ground_truth=[{"query_id": "007", "tool_ids": odd}],
    )
    assert benchmark.tools["tool_id"].to_list() == odd
    assert benchmark.ground_truth["tool_ids"].to_list() == [odd]


def test_documentation_is_verbatim(tmp_path: Path) -> None:
    document = ' {"a" : 1.50,\t"b":"\\u0041"}\r\n\u2028 x\u0000y \x7f 取'
    benchmark = taken(tmp_path, tools=[*TOOLS, {"tool_id": "t9", "documentation": document}])
    assert benchmark.tools["documentation"][-1] == document
    write_benchmark_folder(benchmark, tmp_path / "again")
    assert read_benchmark_folder(tmp_path / "again").tools["documentation"][-1] == document


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        # types and JSON, each with its line
        (
            {"tools": [*TOOLS, {"tool_id": 7, "documentation": ""}]},
            'tools.jsonl, line 6: tool_id must be text in quotes, found a number: "7"; ids are text: put it in quotes',
        ),
        (
            {"tools": [*TOOLS, "", "not json"]},
            'tools.jsonl, line 7: not valid JSON at column 1 (Expecting value): "not json"; write one object a line',
        ),
        (
            {"tools": [*TOOLS, '{"tool_id":"a","tool_id":"b","documentation":""}']},
            'tools.jsonl, line 6: the key "tool_id" occurs twice in one object; keep one',
        ),
        (
            {"tools": [*TOOLS, '{"tool_id":"a","documentation":"\\ud800"}']},
            "tools.jsonl, line 6: a \\u escape names half "
            'of a surrogate pair, which is no character: "{"tool_id":"a","documentation":"\\ud800"}"',
        ),
        (
            {"tools": [*TOOLS, '["a"]']},
            'tools.jsonl, line 6: expected a JSON object, found "["a"]"; write one object a line',
        ),
        ({"tools": [*TOOLS, {"tool_id": "a"}]}, "tools.jsonl, line 6: documentation is missing; every row needs one"),
        (
            {"tools": [*TOOLS, {"tool_id": "a", "documentation": {"x": 1}}]},
            'tools.jsonl, line 6: documentation must be text in quotes, found an object: "{"x": 1}"',
        ),
        (
            {"ground_truth": [*GROUND_TRUTH, {"query_id": "q1", "tool_ids": ["t0", 3]}]},
            'ground_truth.jsonl, line 3: tool_ids holds a number ("3"); every member must be text',
        ),
        (
            {"equivalents": [{**equivalent("q0", 0, "t3"), "position": 0.0}]},
            'equivalents.jsonl, line 1: position must be a whole number or null, found a number: "0.0"',
        ),
        (
            {"combinations": ['{"query_id":"q0","tool_ids":["t0"],"verdict":"valid","rrf_score":NaN}']},
            "combinations.jsonl, line 1: NaN is not a JSON value; write null or a finite number",
        ),
        # ids
        (
            {"tools": [*TOOLS, TOOLS[1]]},
            'tools.jsonl, line 6: tool_id "t1" was already given (tools.jsonl, line 2); keep one row',
        ),
        (
            {"tools": [*TOOLS, {"tool_id": "", "documentation": ""}]},
            "tools.jsonl, line 6: tool_id is empty; every row needs its own id",
        ),
        (
            {"tools": [*TOOLS, {"tool_id": "a b", "documentation": ""}]},
            'tools.jsonl, line 6: tool_id "a b" holds U+0020 (space); run files cannot carry it, rename it',
        ),
        (
            {"tools": [*TOOLS, {"tool_id": "a\u00a0b", "documentation": ""}]},
            'tools.jsonl, line 6: tool_id "aU+00A0b" '
            "holds U+00A0 (no-break space); run files cannot carry it, rename it",
        ),
        (
            {"tools": [*TOOLS, {"tool_id": "a\u0000b", "documentation": ""}]},
            'tools.jsonl, line 6: tool_id "aU+0000b" holds U+0000 (NUL); run files cannot carry it, rename it',
        ),
        (
            {"queries": [*QUERIES, {"query_id": "q2", "text": "x"}]},
            'queries.jsonl, line 3: query "q2" has no ground truth; add its row or remove the query',
        ),
        (
            {"queries": [QUERIES[0], {**QUERIES[1], "domain": "a\nb"}]},  # type: ignore[dict-item]
            'queries.jsonl, line 2: domain "aU+000Ab" holds U+000A (line feed); remove it',
        ),
        (
            {"ground_truth": [*GROUND_TRUTH, {"query_id": "Q1", "tool_ids": ["t2"]}]},
            "ground_truth.jsonl, line 3: unknown "
            'query "Q1"; the known query "q1" differs from it only in upper and lower case',
        ),
        (
            {"ground_truth": [GROUND_TRUTH[0], {"query_id": "q1", "tool_ids": ["t2", "t77"]}]},
            'ground_truth.jsonl, line 2: unknown tool "t77"; the nearest known tool is "t0"',
        ),
        (
            {"ground_truth": [GROUND_TRUTH[0], {"query_id": "q1", "tool_ids": []}]},
            'ground_truth.jsonl, line 2: the ground truth of query "q1" is empty; name at least one tool',
        ),
        (
            {"ground_truth": [*GROUND_TRUTH, GROUND_TRUTH[0]]},
            'ground_truth.jsonl, line 3: query_id "q0" was already given (ground_truth.jsonl, line 1); keep one row',
        ),
        # sub-queries
        (
            {"subqueries": [subquery("q0", 0, "t0")]},
            'subqueries.jsonl, line 1: query "q0" has fewer sub-queries than its '
            "2 ground-truth tools; write exactly one a tool, or none",
        ),
        (
            {"subqueries": [subquery("q1", 0, "t0")]},
            'subqueries.jsonl, line 1: the sub-query\'s tool "t0" is not in the ground truth of query "q1"',
        ),
        (
            {"subqueries": [subquery("q1", 1, "t2")]},
            'subqueries.jsonl, line 1: position 1 of query "q1" is out of range; '
            "it has 1 ground-truth tools, so positions are 0 to 0",
        ),
        (
            {"subqueries": [subquery("q0", 0, "t0"), subquery("q0", 1, "t0")]},
            "subqueries.jsonl, line 2: ground-truth tool "
            '"t0" of query "q0" has a second sub-query; write exactly one a ground-truth tool',
        ),
        # equivalents
        (
            {"equivalents": [equivalent("q0", 2, "t3")]},
            'equivalents.jsonl, line 1: position 2 of query "q0" is out of '
            "range; positions count its ground-truth tools from 0 to 1",
        ),
        (
            {"equivalents": [equivalent("q0", -1, "t3")]},
            'equivalents.jsonl, line 1: position -1 of query "q0" is out of '
            "range; positions count its ground-truth tools from 0 to 1",
        ),
        (
            {"equivalents": [equivalent("q0", 0, "t3", "Valid")]},
            'equivalents.jsonl, line 1: verdict is "Valid"; write one of valid, invalid, unsure',
        ),
        (
            {"equivalents": [equivalent("q0", 0, "t3", origin="guess")]},
            'equivalents.jsonl, line 1: origin is "guess"; write one of ground_truth, judged, rule, human, executed',
        ),
        (
            {"equivalents": [equivalent("q0", 0, "t3"), equivalent("q0", 0, "t3", "invalid")]},
            "equivalents.jsonl, line 2: "
            'tool "t3" at position 0 of query "q0" is invalid here and valid in an earlier row; decide on one',
        ),
        (
            {"equivalents": [equivalent("q0", 0, "t1", origin="ground_truth")]},
            "equivalents.jsonl, line 1: origin is "
            'ground_truth, but the ground-truth tool at position 0 of query "q0" is "t0", not "t1"',
        ),
        (
            {"equivalents": [equivalent("q0", 0, "t0", "unsure")]},
            'equivalents.jsonl, line 1: the ground-truth tool "t0" of '
            'query "q0" is called "unsure"; the ground truth is exempt from judging: write valid or leave the row out',
        ),
        # combinations
        (
            {"combinations": [combination("q0")]},
            'combinations.jsonl, line 1: an empty combination of query "q0"; remove the row',
        ),
        (
            {"combinations": [combination("q0", "t0", "T3")]},
            'combinations.jsonl, line 1: unknown tool "T3"; the known '
            'tool "t3" differs from it only in upper and lower case',
        ),
        (
            {"combinations": [combination("q0", "t0", "t3"), combination("q0", "t3", "t0", verdict="invalid")]},
            'combinations.jsonl, line 2: the combination {"t3", "t0"} of query "q0" is invalid here and valid in an '
            "earlier row (combinations are sets); decide on one",
        ),
        (
            {"combinations": [combination("q0", "t3", is_ground_truth=True)]},
            "combinations.jsonl, line 1: is_ground_truth "
            'is true, but {"t3"} is not the ground truth of query "q0"; write false, or correct ground_truth',
        ),
        (
            {"combinations": [combination("q1", "t2", verdict="invalid")]},
            "combinations.jsonl, line 1: the ground truth of "
            'query "q1" is called "invalid"; it always counts as valid: write valid or leave the row out',
        ),
        (
            {"combinations": [{"query_id": "q1", "tool_ids": ["t3"]}]},
            "combinations.jsonl, line 1: verdict is missing; every row needs one",
        ),
    ],
)
def test_each_fault_is_refused_with_its_line(tmp_path: Path, tables: dict[str, Rows], problem: str) -> None:
    assert refused(tmp_path, **tables) == (problem,)


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        (TOML.replace('slug = "tiny"\n', ""), 'benchmark.toml: the key slug is missing; add slug = "…"'),
        (TOML.replace('licence = "CC0"\n', ""), 'benchmark.toml: the key licence is missing; add licence = "…"'),
        (TOML.replace('"1"', "1"), 'benchmark.toml: version must be text, found 1; write version = "1"'),
        (TOML.replace('"tool"', '"tools"'), 'benchmark.toml: kind is "tools"; write "tool" or "skill"'),
        (TOML + "z = " + "[" * 5000 + "\n", "benchmark.toml: not readable TOML: its values are nested too deep"),
        (
            TOML + f'revision = "{"r" * 2001}"\n',
            f'revision is "{"r" * 80}…"; use up to 2,000 characters of valid UTF-8',
        ),
        (TOML + 'headline = "mean"\n', 'benchmark.toml: headline is "mean"; write "macro" or "micro"'),
        (
            TOML.replace('"tiny"', '"Tiny/x"'),
            "benchmark.toml: slug is \"Tiny/x\"; use up to 100 of a-z, 0-9, '.', '_', "
            "'-', starting with a letter or digit",
        ),
        (
            TOML + 'parents = "x@1"\n',
            "benchmark.toml: parents must be a list of texts such as [\"slug@version\"], found 'x@1'",
        ),
    ],
)
def test_faults_of_the_toml(tmp_path: Path, toml: str, problem: str) -> None:
    assert refused(tmp_path, toml) == (problem,)


def test_broken_toml_and_empty_names(tmp_path: Path) -> None:
    assert refused(tmp_path, "slug = \n")[0].startswith("benchmark.toml: not valid TOML (")
    assert (
        refusal(write_folder(tmp_path / "c", TOML.replace('"tiny"', '""')))
        .problems[0]
        .startswith('benchmark.toml: slug is ""')
    )


def test_all_problems_come_at_once_in_file_order(tmp_path: Path) -> None:
    error = refusal(
        write_folder(
            tmp_path / "b",
            tools=[*TOOLS, {"tool_id": "", "documentation": ""}, TOOLS[0]],
            queries=[*QUERIES, {"query_id": "q2", "text": ""}],
            combinations=[combination("q9", "t0"), combination("q0"), combination("q0", "t99", "t98")],
        )
    )
    places = [problem.split(": ")[0] for problem in error.problems]
    assert places == [
        "tools.jsonl, line 6",
        "tools.jsonl, line 7",
        "queries.jsonl, line 3",
        "combinations.jsonl, line 1",
        "combinations.jsonl, line 2",
        "combinations.jsonl, line 3",
        "combinations.jsonl, line 3",
    ]
    assert str(error).startswith('The benchmark "tiny" cannot be taken as it is:\n  tools.jsonl, line 6: ')


def test_faults_of_several_files_come_together(tmp_path: Path) -> None:
    problems = refused(tmp_path, tools=[*TOOLS, "x"], queries=[*QUERIES, '{"query_id": 1, "text": true}'])
    assert len(problems) == 3
    assert "line 3: text must be text in quotes, found a truth value" in problems[2]


def test_a_flood_of_problems_is_counted_not_listed(tmp_path: Path) -> None:
    error = refusal(write_folder(tmp_path / "b", combinations=[combination("q0", f"x{i}") for i in range(1500)]))
    assert len(error.problems) == 1001
    assert error.problems[-1].endswith("(and 499 more rows like it)")
    assert str(error).endswith("… and 981 more")


def test_files_that_lack_or_repeat_a_table(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b")
    (folder / "tools.jsonl").rename(folder / "tools.jsonl.off")
    write_rows(folder / "queries.jsonl.gz", QUERIES)
    assert refusal(folder).problems == (
        "tools: no tools.jsonl, tools.jsonl.gz or tools.parquet in the folder",
        "queries.jsonl and queries.jsonl.gz both exist; keep one, so that it is clear which counts",
    )
    assert "is not a benchmark folder: it has no benchmark.toml" in str(refusal(tmp_path))
    assert "There is no benchmark folder at" in str(refusal(tmp_path / "absent"))


def test_empty_tables_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, queries=[], ground_truth=[]) == (
        "queries is empty; a benchmark needs tools, queries and a ground truth",
        "ground_truth is empty; a benchmark needs tools, queries and a ground truth",
    )


def test_what_is_normalised_is_noted(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "b",
        TOML + 'colour = "red"\n',
        tools=[{**TOOLS[0], "stars": 3}, *TOOLS[1:]],  # type: ignore[dict-item]
        queries=[QUERIES[0], {"query_id": "q1", "text": " "}],
        ground_truth=[{"query_id": "q0", "tool_ids": ["t0", "t1", "t0"]}, GROUND_TRUTH[1]],
        equivalents=[equivalent("q0", 0, "t3"), equivalent("q0", 0, "t3"), equivalent("q0", 1, "t3")],
        combinations=[
            combination("q0", "t3", "t1"),
            combination("q0", "t1", "t3", "t1"),
            combination("q1", "t4"),
            combination("q1", "t2", is_ground_truth=False),
        ],
    )
    (folder / "notes.txt").write_text("x")
    benchmark, notes = verify_benchmark(folder)
    assert notes == (
        'benchmark.toml: unknown keys were left out: "colour"',
        'files that are not part of a benchmark folder were left out: "notes.txt"',
        'tools.jsonl: columns that are not part of this format were left out: "stars"',
        '1 query has no text: "q1"',
        'ground_truth.jsonl: a ground truth names a tool twice in 1 row (first: query "q0"); it is kept once',
        "equivalents.jsonl: 1 row repeated the verdict on a tool; merged",
        'combinations.jsonl: a combination names a tool twice in 1 row (first: query "q0"); it is kept once',
        "combinations.jsonl: 1 combination repeats another of the same query (as a set); merged",
        "combinations.jsonl: is_ground_truth was false for 1 ground truth; set to true",
        "combinations.jsonl: the ground truth was not among the combinations of 1 query; added",
    )
    assert benchmark.ground_truth["tool_ids"].to_list() == [["t0", "t1"], ["t2"]]
    assert benchmark.combinations.select("query_id", "tool_ids", "is_ground_truth").rows() == [
        ("q0", ["t0", "t1"], True),
        ("q0", ["t3", "t1"], False),
        ("q1", ["t2"], True),
        ("q1", ["t4"], False),
    ]


def test_windows_text_files_and_gzip_read_alike(tmp_path: Path) -> None:
    plain = taken(tmp_path)
    odd = write_folder(tmp_path / "odd")
    raw = (odd / "tools.jsonl").read_bytes()
    (odd / "tools.jsonl").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n\r\n").rstrip())
    (odd / "queries.jsonl.gz").write_bytes(gzip.compress((odd / "queries.jsonl").read_bytes()))
    (odd / "queries.jsonl").unlink()
    assert read_benchmark_folder(odd).content_hash == plain.content_hash


def test_damaged_encodings(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b")
    (folder / "tools.jsonl").write_bytes((folder / "tools.jsonl").read_bytes() + b'{"tool_id":"\xff"}\n')
    whole = gzip.compress((folder / "queries.jsonl").read_bytes())
    (folder / "queries.jsonl").unlink()
    (folder / "queries.jsonl.gz").write_bytes(whole[:-9])
    first, *rest = refusal(folder).problems
    assert first == "tools.jsonl, line 6: byte 13 is not UTF-8; save the file as UTF-8"
    assert any(problem.startswith("queries.jsonl.gz: the gzip data is damaged after line") for problem in rest)


def test_lines_that_only_together_are_json_are_refused(tmp_path: Path) -> None:
    first = '{"tool_id":"a","documentation":""},{"tool_id":"b","documentation":""}'
    tools = [first, '{"tool_id":"c","documentation":""', '"name":"x"}']
    assert [problem.split(":")[0] for problem in refused(tmp_path, tools=tools)] == [
        "tools.jsonl, line 1",
        "tools.jsonl, line 2",
        "tools.jsonl, line 3",
    ]


def parquet_folder(tmp_path: Path, **frames: pl.DataFrame) -> Path:
    folder = write_folder(tmp_path / "p")
    for name, frame in frames.items():
        (folder / f"{name}.jsonl").unlink(missing_ok=True)
        frame.write_parquet(folder / f"{name}.parquet")
    return folder


def test_parquet_types_are_not_converted(tmp_path: Path) -> None:
    tools = pl.DataFrame({"tool_id": [1, 2], "documentation": ["", ""]})
    truth = pl.DataFrame({"query_id": ["q0", "q1"], "tool_ids": [["t0", None], ["t2"]]})
    combinations = pl.DataFrame(
        {"query_id": ["q0"], "tool_ids": [["t3"]], "verdict": ["valid"], "rrf_score": [float("nan")]}
    )
    problems = refusal(parquet_folder(tmp_path, tools=tools, ground_truth=truth, combinations=combinations)).problems
    assert problems[0] == (
        "tools.parquet: column tool_id has the type Int64, not String; convert it first "
        "(ids are text: a number loses leading zeros)"
    )
    assert "ground_truth.parquet, row 1: tool_ids has a null member; write every member as text" in problems
    assert "combinations.parquet, row 1: rrf_score is not a finite number" in problems


def test_unreadable_parquet(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p")
    (folder / "tools.jsonl").rename(folder / "tools.parquet")
    assert refusal(folder).problems[0].startswith("tools.parquet: not a readable parquet file (")


def test_export_refuses_a_place_in_use_and_leaves_nothing_behind(tmp_path: Path) -> None:
    benchmark = taken(tmp_path)
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").write_text("x")
    with pytest.raises(UsageError, match="exists and is not empty"):
        write_benchmark_folder(benchmark, target)
    assert [path.name for path in target.iterdir()] == ["mine"]
    (target / "mine").unlink()
    write_benchmark_folder(benchmark, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "out"]
    with pytest.raises(UsageError, match="choose jsonl or parquet"):
        write_benchmark_folder(benchmark, tmp_path / "x", "csv")  # type: ignore[arg-type]


def test_the_toml_survives_odd_text(tmp_path: Path) -> None:
    benchmark = taken(tmp_path)
    info = replace(
        benchmark.info,
        title='A "quoted" \\ title\n\x7f\x01 取',
        source="",
        revision="r",
        parents=("a@1", "b@2"),
        headline=Average.MICRO,
    )
    write_benchmark_folder(replace(benchmark, info=info), tmp_path / "out")
    assert read_benchmark_folder(tmp_path / "out").info == info


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "tools", "queries", "combinations"),
    [("apibank", 101, 101, 0), ("gorilla-huggingface", 907, 500, 966), ("gorilla-pytorch", 94, 186, 186)],
)
def test_the_shared_benchmarks(
    shared: Path, tmp_path: Path, name: str, tools: int, queries: int, combinations: int
) -> None:
    benchmark = read_benchmark_folder(shared / "benchmarks" / name)
    heights = (benchmark.tools.height, benchmark.queries.height, benchmark.combinations.height)
    assert heights == (tools, queries, combinations)
    assert benchmark.notes == ()
    first = json.loads((shared / "benchmarks" / name / "tools.jsonl").open(encoding="utf-8").readline())
    assert benchmark.tools["documentation"][0] == first["documentation"]
    for table_format in ("jsonl", "parquet"):
        write_benchmark_folder(benchmark, tmp_path / table_format, table_format)  # type: ignore[arg-type]
        assert read_benchmark_folder(tmp_path / table_format).content_hash == benchmark.content_hash


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b" " * 999 + b"\n", id="blank"),
        pytest.param(b'{"query_id": "q0", "text": "' + b"a" * 999 + b'"}\n', id="queries"),
    ],
)
def test_a_small_gzip_file_that_becomes_a_large_one_is_refused_while_it_is_read(tmp_path: Path, content: bytes) -> None:
    folder = write_folder(tmp_path / "b")
    (folder / "queries.jsonl").unlink()
    bomb = folder / "queries.jsonl.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        for _ in range(70):
            out.write(content * (1024**2 // len(content)))
    assert bomb.stat().st_size < 500_000
    problems = refusal(folder).problems
    assert any("queries.jsonl.gz" in problem and "of gzip became over 64 MiB" in problem for problem in problems)


def test_a_compressed_table_of_any_ratio_is_read_while_it_is_small(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b")
    text = (folder / "queries.jsonl").read_bytes() + b"\n" * 5 * 1024**2
    (folder / "queries.jsonl").unlink()
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress(text))
    assert read_benchmark_folder(folder).queries.height == 2
