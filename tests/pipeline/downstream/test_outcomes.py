"""Files of results: read from every shape, refused line by line, what is missing said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.downstream.outcomes import read_outcomes
from pipeline.errors import OutcomeFileError

HEADER = "task,category,setting,passed\n"


def write(folder: Path, content: str | bytes, name: str = "results.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, **how: object) -> list[str]:
    with pytest.raises(OutcomeFileError) as caught:
        read_outcomes(path, **how)  # type: ignore[arg-type]
    first, *problems = str(caught.value).split("\n")
    assert first == f"{path.name} is refused, nothing was stored:"
    return [problem.strip() for problem in problems]


CSV = HEADER + "007,G1_instruction,ToolEX-expanded,1\n007,G1_instruction,ToolBench-IR,0\n9,G3 Inst,Oracle,passed\n"
TSV = CSV.replace(",", "\t").replace("task", "query_id")
JSONL = (
    '{"task": "007", "category": "G1_instruction", "setting": "ToolEX-expanded", "passed": true, "model": "x"}\n\n'
    '{"task": "007", "category": "G1_instruction", "setting": "ToolBench-IR", "passed": 0}\n'
    '{"query_id": "9", "category": "G3 Inst", "setting": "Oracle", "passed": "passed"}\n'
)


@pytest.mark.parametrize(
    "content", [CSV, TSV, JSONL, "\ufeff" + CSV.replace("\n", "\r\n"), "\ufeff" + JSONL, "\n" + CSV]
)
def test_every_shape_reads_the_same(tmp_path: Path, content: str) -> None:
    found = read_outcomes(write(tmp_path, content, "results.txt"))
    assert found.frame.rows() == [
        ("007", "G1-Inst", "ToolEX-expanded", True),
        ("007", "G1-Inst", "ToolBench-IR", False),
        ("9", "G3-Inst", "Oracle", True),
    ]
    assert (found.settings, found.tasks) == (("Oracle", "ToolBench-IR", "ToolEX-expanded"), 2)
    assert found.notes == (
        'category "G1_instruction" read as G1-Inst (2 lines)',
        'category "G3 Inst" read as G3-Inst (1 line)',
        '1 task has no result under Oracle: "007"',
        '1 task has no result under ToolBench-IR: "9"',
        '1 task has no result under ToolEX-expanded: "9"',
    )


def test_categories_come_in_the_papers_order_and_ids_are_told_apart_by_them(tmp_path: Path) -> None:
    rows = "1,Own tasks,A,1\n1,G2-Cat,A,1\n1,G1-Tool,A,0\n1,G1-Inst,A,1\n"
    found = read_outcomes(write(tmp_path, HEADER + rows))
    assert found.frame["category"].to_list() == ["G1-Inst", "G1-Tool", "G2-Cat", "Own tasks"]
    assert (found.tasks, found.notes) == (4, ('1 id is in several categories, and a task in each: "1"',))


def test_bad_lines_are_named(tmp_path: Path) -> None:
    content = HEADER + (
        "1,G1-Inst,Oracle,1\n"
        "1,G1-Inst,Oracle,0\n"
        '"2","a\nb",Oracle,1\n'
        "3,G1-Inst,,1\n"
        "4,G1-Inst,Oracle,maybe\n"
        "5,G1-Inst,Oracle\n"
        f"{'6' * 1025},G1-Inst,Oracle,1\n"
        "7\u200b,G1-Inst,Oracle,1\n"
    )
    assert refused(write(tmp_path, content)) == [
        'line 3: task "1" of "G1-Inst" has a result under "Oracle" on line 2 already (duplicate): keep one',
        'line 4: category holds control or invisible characters: "aU+000Ab"',
        "line 6: setting is empty",
        'line 7: passed is "maybe": write true or false',
        "line 8: 3 cells under 4 columns",
        f'line 9: task is longer than 1,024 characters: "{"6" * 80}…"',
        'line 10: task holds control or invisible characters: "7U+200B"',
    ]


def test_bad_json_lines_are_named_in_file_order(tmp_path: Path) -> None:
    content = (
        '{"task": 7, "category": "c", "setting": "s", "passed": true}\n'
        "{broken\n"
        '{"task": "7", "query_id": "8", "category": "c", "setting": "s", "passed": true}\n'
        '{"task": "7", "setting": "s"}\n'
        '{"task": "7", "category": "c", "setting": "s", "passed": null}\n'
    )
    found = refused(write(tmp_path, content, "results.jsonl"))
    assert [line.partition(":")[0] for line in found] == [f"line {i}" for i in range(1, 6)]
    assert found[0] == 'line 1: task must be text, found "7"; ids are text: put it in quotes'
    assert found[2:4] == [
        'line 3: both "task" and "query_id" are given: keep one',
        "line 4: category, passed missing: every result needs it",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file has no results: write task, category, setting and passed, one a line"),
        (HEADER, "the file has no results: write task, category, setting and passed, one a line"),
        ("task,setting,passed\n1,Oracle,1\n", 'line 1: no column category among "task", "setting", "passed": name'),
        ("task,category,setting,passed,passed\n", 'line 1: two columns are named "passed": keep one'),
        (HEADER + '1,"G1,Oracle,1\n', "line 2: not a row of a table"),
        (HEADER.encode() + b"1,\xff,Oracle,1\n", "line 2: byte 0xFF is not valid UTF-8: save the file as UTF-8"),
        (HEADER + "".join(f"1,c,s{i},1\n" for i in range(13)), "13 different values of setting: at most 12 can be"),
    ],
)
def test_what_is_no_file_of_results_is_refused(tmp_path: Path, content: str | bytes, problem: str) -> None:
    (found,) = refused(write(tmp_path, content))
    assert found.startswith(problem)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutcomeFileError, match=r"nowhere.csv' cannot be read \(No such file"):
        read_outcomes(tmp_path / "nowhere.csv")


def test_order_and_ids_can_be_stated(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "q1,c,mine,1\nq1,c,theirs,0\n")
    assert read_outcomes(path, settings=["theirs", "mine"], known=["q1"]).settings == ("theirs", "mine")
    assert refused(path, settings=["mine"]) == [
        'the settings of the file are "mine", "theirs", the order names "mine": name each once'
    ]
    assert refused(path, known=["q2"], of="small@1")[0] == (
        'line 2: task "q1" is no query of small@1: check the id, or import without a benchmark'
    )
