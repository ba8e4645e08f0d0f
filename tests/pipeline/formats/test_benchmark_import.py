"""Other people's formats as benchmarks: ToolRet rows, SkillRet files, combinations files, and the hub."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.benchmark import Average, Kind
from pipeline.errors import BenchmarkError, EnvironmentProblem, UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder, write_benchmark_folder
from pipeline.formats.import_benchmark import import_benchmark
from pipeline.formats.skill_document import join_skill_document, split_skill_document
from pipeline.formats.skillret import find_skillret_files, read_skillret
from tests.pipeline.formats.benchmark_folders import combination, equivalent, write_folder, write_rows

SOURCES = [
    "apibank", "apigen", "bfcl", "craft-math-algebra", "gorilla-huggingface", "gorilla-pytorch", "gorilla-tensor",
    "metatool", "restgpt-spotify", "toolalpaca", "toolbench-example", "toollens", "ultratool",
]  # fmt: skip


def query(number: int, *labels: str, category: str = "web", **more: Any) -> dict[str, Any]:
    texts = json.dumps([{"id": label, "doc": {"name": "other"}, "relevance": 1} for label in labels])
    return {"id": f"x_query_{number}", "query": f"text {number}", "instruction": f"find {number}", "labels": texts,
            "category": category, **more}  # fmt: skip


def tool(identifier: str, **more: Any) -> dict[str, Any]:
    return {"id": identifier, "documentation": json.dumps({"name": f"name of {identifier}"}), **more}


def toolret(folder: Path, queries: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Path:
    write_rows(folder / "queries.jsonl", queries)
    write_rows(folder / "tools.jsonl", tools)
    return folder


def hub_layout(root: Path) -> Path:
    """Two tasks and two categories in parquet, as the hub has them, queries and tools in a folder each."""
    for path, rows in {
        "Queries/alpha/queries-00000-of-00001.parquet": [query(0, "a_tool_0")],
        "Queries/beta/queries-00000-of-00001.parquet": [{**query(1, "B_tool_0", category="code"), "id": "B_query_1"}],
        "Tools/web/tools-00000-of-00001.parquet": [tool("a_tool_0"), tool("a_tool_1"), tool("c_tool_0")],
        "Tools/code/tools-00000-of-00001.parquet": [tool("B_tool_0")],
    }.items():
        (root / path).parent.mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(root / path)
    return root


def test_toolret_rows(tmp_path: Path) -> None:
    folder = toolret(
        tmp_path / "t",
        [query(0, "a_tool_1", "a_tool_0", "a_tool_1"), {**query(1, "a_tool_0"), "query": ""}],
        [tool("a_tool_0", category="web"), {"id": "a_tool_1", "documentation": "not json"}],
    )
    benchmark = import_benchmark(folder, title="A title")
    assert benchmark.tools.rows() == [
        ("a_tool_0", '{"name": "name of a_tool_0"}', "name of a_tool_0", "web", "", ""),
        ("a_tool_1", "not json", "a_tool_1", "", "", ""),
    ]
    assert benchmark.queries.row(0) == ("x_query_0", "text 0", "find 0", "web", "")
    assert benchmark.ground_truth["tool_ids"].to_list() == [["a_tool_1", "a_tool_0"], ["a_tool_0"]]
    assert benchmark.notes == (
        "read as ToolRet-shaped rows",
        '1 query has no text: "x_query_1"',
        'queries.jsonl: a ground truth names a tool twice in 1 row (first: query "x_query_0"); it is kept once',
    )
    info = benchmark.info
    assert (info.slug, info.title, info.version, info.kind) == ("toolret", "A title", "1", Kind.TOOL)
    assert info.source == "queries.jsonl, tools.jsonl; tools searched: all"


def test_labels_may_be_a_list_and_a_query_file_is_enough(tmp_path: Path) -> None:
    rows = [{**query(0), "labels": [{"id": "a_tool_0", "relevance": 1}, {"id": "a_tool_1", "relevance": 0}]}]
    folder = toolret(tmp_path / "t", rows, [tool("a_tool_0"), tool("a_tool_1")])
    assert import_benchmark(folder / "queries.jsonl").ground_truth["tool_ids"].to_list() == [["a_tool_0"]]
    write_rows(tmp_path / "elsewhere" / "mine.jsonl", [tool("a_tool_0")])
    benchmark = import_benchmark(folder / "queries.jsonl", tools=tmp_path / "elsewhere" / "mine.jsonl")
    assert benchmark.tools.height == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": 7}, 'id must be text, found "7"; ids are text: put it in quotes'),
        ({"labels": "[{"}, "labels is not valid JSON"),
        ({"labels": None}, "labels is missing; a query needs its ground truth"),
        ({"labels": '[{"id": 3}]'}, 'a label needs an "id" that is text, found "{"id": 3}"'),
        ({"labels": '{"id": "a_tool_0"}'}, "labels must be a list, found"),
        (
            {"labels": '[{"id": "a_tool_0", "relevance": "1"}]'},
            'relevance of label "a_tool_0" is "\'1\'"; write a number',
        ),
        ({"gt_ids": ["a_tool_1"]}, 'gt_ids and labels name different tools: "a_tool_1" against "a_tool_0"'),
        ({"query": ["x"]}, "query must be text, found"),
    ],
)
def test_toolret_faults(tmp_path: Path, changes: Mapping[str, Any], problem: str) -> None:
    rows = [query(1, "a_tool_0"), {**query(0, "a_tool_0"), **changes}]
    folder = toolret(tmp_path / "t", rows, [tool("a_tool_0"), tool("a_tool_1")])
    with pytest.raises(BenchmarkError) as caught:
        import_benchmark(folder)
    assert caught.value.problems[0].startswith(f"queries.jsonl, line 2: {problem}")


def test_toolret_dangling_labels_are_refused_with_their_line(tmp_path: Path) -> None:
    folder = toolret(tmp_path / "t", [query(0, "a_tool_0"), query(1, "A_tool_0")], [tool("a_tool_0")])
    with pytest.raises(BenchmarkError) as caught:
        import_benchmark(folder)
    assert caught.value.problems == (
        'queries.jsonl, line 2: unknown tool "A_tool_0"; the known tool "a_tool_0" differs from it only in '
        "upper and lower case",
    )


def test_hub_layout_and_corpora(tmp_path: Path) -> None:
    root = hub_layout(tmp_path / "hub")
    everything = import_benchmark(root)
    assert everything.queries.select("query_id", "domain", "source").rows() == [
        ("x_query_0", "web", "alpha"),
        ("B_query_1", "code", "beta"),
    ]
    assert dict(everything.tools.select("tool_id", "domain").rows())["B_tool_0"] == "code"
    for corpus, tools in {
        None: ["B_tool_0", "a_tool_0", "a_tool_1", "c_tool_0"],
        "all": ["B_tool_0", "a_tool_0", "a_tool_1", "c_tool_0"],
        "category": ["a_tool_0", "a_tool_1", "c_tool_0"],
        "source": ["a_tool_0", "a_tool_1"],
    }.items():
        benchmark = import_benchmark(root, sources=["alpha"], corpus=corpus)
        assert benchmark.tools["tool_id"].to_list() == tools
        assert benchmark.info.slug == "alpha"
        assert benchmark.info.source.endswith(f"; tasks: alpha; tools searched: {corpus or 'all'}")


def test_an_unknown_task_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        BenchmarkError, match=r'no query has the source "alfa"; the nearest known is "alpha". Known are'
    ):
        import_benchmark(hub_layout(tmp_path / "hub"), sources=["alfa"])


@pytest.mark.shared
@pytest.mark.parametrize("source", SOURCES)
def test_each_task_equals_the_reference_conversion(shared: Path, tmp_path: Path, source: str) -> None:
    script = shared / "checks" / "make_benchmark.py"
    command = [sys.executable, str(script), str(shared / "data"), str(tmp_path), source, "--source", source]
    subprocess.run(command, check=True, capture_output=True)
    reference = read_benchmark_folder(tmp_path / source)
    benchmark = import_benchmark(shared / "data", sources=[source])
    assert benchmark.content_hash == reference.content_hash
    assert benchmark.info.slug == source
    if source == "apibank":
        assert benchmark.content_hash == read_benchmark_folder(shared / "benchmarks" / source).content_hash


@pytest.mark.shared
def test_all_tasks_together(shared: Path) -> None:
    benchmark = import_benchmark(shared / "data")
    assert (benchmark.tools.height, benchmark.queries.height) == (10_871, 7_974)
    assert sorted(set(benchmark.queries["source"])) == SOURCES
    assert 'origin of the 7,974 queries: "converted" 6,373, "toolret" 1,601' in benchmark.notes
    assert any("toollens_src_query_14012" in note for note in benchmark.notes)


def skill(number: int, major: str = "Data", front: str | None = None) -> dict[str, Any]:
    description = f'does "{number}"'
    front = f"---\nname: s{number}\ndescription: |\n  {description}\n---\n" if front is None else front
    return {"id": f"00{number}", "name": f"s{number}", "namespace": "n", "description": description, "stars": 3,
            "skill_md": f"{front}# Skill {number}\n", "author": "someone", "major": major}  # fmt: skip


def skillret(root: Path, suffix: str = ".jsonl") -> Path:
    skills = [skill(0), skill(1, "Code"), skill(2, front=""), skill(3, front="---\nname: x: y: z\n---\n")]
    queries = [
        {"id": "q0", "original_id": "o", "query": "one", "skill_ids": ["000"], "skill_names": ["s0"], "k": 1},
        {"id": "q1", "original_id": "o", "query": "two", "skill_ids": ["002", "001"], "skill_names": [], "k": 2},
    ]
    qrels = [("q0", "000"), ("q1", "001"), ("q1", "002")]
    tables = {
        "skills": skills,
        "skills/test": skills[:3],
        "skills/train": skills[3:],
        "queries/test": queries,
        "qrels/test": [{"query_id": q, "skill_id": s, "relevance": 1} for q, s in qrels],
    }
    for name, rows in tables.items():
        path = root / "data" / (name + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".parquet":
            pl.DataFrame(rows).write_parquet(path)
        else:
            write_rows(path, rows)
    return root


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_skillret_files(tmp_path: Path, suffix: str) -> None:
    root = skillret(tmp_path / "s", suffix)
    benchmark = import_benchmark(root, corpus="all", version="1.0-all")
    assert benchmark.info.kind is Kind.SKILL
    assert benchmark.info.effective_headline is Average.MICRO
    assert (benchmark.info.slug, benchmark.info.version) == ("skillret", "1.0-all")
    assert benchmark.info.source == "SkillRet (all skills searched: 4)"
    assert benchmark.tools["domain"].to_list() == ["Data", "Code", "Data", "Data"]
    assert benchmark.tools["provider"].to_list() == ["someone"] * 4
    assert benchmark.queries["domain"].to_list() == ["Data", "several"]
    assert benchmark.ground_truth["tool_ids"].to_list() == [["000"], ["002", "001"]]
    documents = benchmark.tools["documentation"].to_list()
    assert documents[0] == skill(0)["skill_md"]
    assert [split_skill_document(d) for d in documents] == [
        (f'does "{i}"', row["skill_md"]) for i, row in enumerate([skill(0), skill(1), skill(2, front=""),
                                                                skill(3, front="---\nname: x: y: z\n---\n")])
    ]  # fmt: skip
    assert "2 documents did not give the row's description; it was put before the document" in benchmark.notes


def test_the_skill_corpus_is_part_of_the_identity(tmp_path: Path) -> None:
    root = skillret(tmp_path / "s")
    with pytest.raises(BenchmarkError, match=r"Say which skills are searched: test .* or all"):
        import_benchmark(root, version="x")
    with pytest.raises(BenchmarkError, match='Unknown corpus "some" for SkillRet; choose test or all'):
        import_benchmark(root, corpus="some", version="x")
    test = import_benchmark(root, corpus="test", version="x")
    everything = import_benchmark(root, corpus="all", version="x")
    assert test.tools.height == 3
    assert test.content_hash != everything.content_hash
    (root / "data" / "skills.jsonl").unlink()
    assert import_benchmark(root, corpus="all", version="x").content_hash == everything.content_hash
    (root / "data" / "skills" / "train.jsonl").unlink()
    with pytest.raises(BenchmarkError, match="The corpus all needs the file skills"):
        import_benchmark(root, corpus="all", version="x")
    assert import_benchmark(root, version="x").content_hash == test.content_hash


def test_an_unknown_skillret_release_needs_a_version(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"2 test queries and 3 labels, which is neither SkillRet v1.0"):
        import_benchmark(skillret(tmp_path / "s"), corpus="test")


def test_a_release_is_recognised_by_its_counts(tmp_path: Path) -> None:
    """Version 1.1: 4,392 queries and 7,187 labels; with another corpus than its own they were mixed up."""
    root = tmp_path / "s"
    skills = [{"id": f"s{i}", "name": "n", "description": "", "skill_md": "x", "major": "M"} for i in range(6006)]
    write_rows(root / "skills" / "test.jsonl", skills)
    write_rows(root / "queries" / "test.jsonl", [{"id": f"q{i}", "query": "x"} for i in range(4392)])
    labels = [(i % 4392, i) for i in range(4392)] + [(i, i + 1) for i in range(7187 - 4392)]
    qrels = [{"query_id": f"q{q}", "skill_id": f"s{s}", "relevance": 1} for q, s in labels]
    write_rows(root / "qrels" / "test.jsonl", qrels)
    benchmark = import_benchmark(root)
    assert benchmark.info.version == "1.1-test"
    assert benchmark.info.source == "SkillRet v1.1 (test skills searched: 6,006)"
    write_rows(root / "skills" / "test.jsonl", skills[:-1])
    with pytest.raises(
        BenchmarkError, match=r"those of v1.1, whose test corpus has 6,006 skills, but 6,005 were found"
    ):
        import_benchmark(root)


def test_labels_of_another_skillret_version_are_refused(tmp_path: Path) -> None:
    root = skillret(tmp_path / "s")
    write_rows(root / "data" / "qrels" / "test.jsonl", [
        {"query_id": "q0", "skill_id": "001", "relevance": 1}, {"query_id": "q1", "skill_id": "001", "relevance": 1},
        {"query_id": "q1", "skill_id": "002", "relevance": 1}])  # fmt: skip
    with pytest.raises(BenchmarkError) as caught:
        read_skillret(find_skillret_files(root), corpus="test", version="x")
    assert caught.value.problems == (
        'test.jsonl, line 1: skill_ids ("000") and the labels ("001") of query "q0" differ; the files may be of two '
        "versions",
    )


@pytest.mark.parametrize(
    "skill_md",
    [
        "",
        "# no front matter",
        "---\ndescription: other\n---\ntext",
        "---\ndescription: [\n---\ntext",
        "---\ndescription: >\n  a b\n---\n\r\n\u0000 end",
        "---\r\ndescription: a b\r\n---\r\ntext",
        join_skill_document("x", "nested"),
        join_skill_document("a b", "nested"),
    ],
)
@pytest.mark.parametrize("description", ["", "a b", ' "x"\n---\ny ', "a: b # c"])
def test_description_and_document_can_always_be_told_apart(description: str, skill_md: str) -> None:
    assert split_skill_document(join_skill_document(description, skill_md)) == (description.strip(), skill_md)


@pytest.mark.shared
def test_real_skill_documents_stay_verbatim(shared: Path) -> None:
    import gzip

    with gzip.open(shared / "data" / "skills" / "skills.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    kept = sum(join_skill_document(row["description"], row["skill_md"]) == row["skill_md"] for row in rows)
    assert (kept, len(rows)) == (3092, 3096)
    for row in rows:
        document = join_skill_document(row["description"], row["skill_md"])
        assert split_skill_document(document) == (row["description"].strip(), row["skill_md"])


def test_a_combinations_file_makes_a_new_version(tmp_path: Path) -> None:
    parent = import_benchmark(write_folder(tmp_path / "b"))
    rows = [combination("q0", "t0", "t3", source_model="m"), {"query_id": "q1", "tool_ids": ["t4"]}]
    path = write_rows(tmp_path / "query_combo_verified.jsonl", rows)
    benchmark = import_benchmark(path, parent=parent)
    assert (benchmark.info.slug, benchmark.info.version) == ("tiny", "1+combinations")
    assert benchmark.info.parents == ("tiny@1",)
    assert benchmark.combinations.select("query_id", "tool_ids", "verdict").rows() == [
        ("q0", ["t0", "t1"], "valid"),
        ("q0", ["t0", "t3"], "valid"),
        ("q1", ["t2"], "valid"),
        ("q1", ["t4"], "valid"),
    ]
    assert benchmark.notes == (
        "read as a combinations file",
        "query_combo_verified.jsonl: columns that are not part of this format were left out: \"source_model\"",
        "query_combo_verified.jsonl: 1 combination without a verdict; taken as valid",
        "query_combo_verified.jsonl: the ground truth was not among the combinations of 2 queries; added",
    )  # fmt: skip
    assert benchmark.tools.equals(parent.tools)
    with pytest.raises(UsageError, match="is a combinations file; name the benchmark it belongs to"):
        import_benchmark(path)


@pytest.mark.parametrize(
    "row",
    [
        {"qid": "q0", "tools": ["t0", "t3"]},
        {"id": "q0", "skills": [{"skill_id": "t0"}, {"id": "t3"}], "is_valid": True},
        {"query_id": "q0", "combinations": [["t0", "t1"], ["t3", "t0"]]},
        {"query_id": "q0", "combos": [{"combination": ["t0", "t3"], "verdict": "valid"}]},
        {"query_id": "q0", "tool_ids": ["t0", "t3"], "valid": True},
    ],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_spellings_of_combinations_files(tmp_path: Path, row: dict[str, Any], suffix: str) -> None:
    parent = import_benchmark(write_folder(tmp_path / "b"))
    path = tmp_path / f"combos{suffix}"
    if suffix == ".parquet":
        pl.DataFrame([row]).write_parquet(path)
    else:
        write_rows(path, [row])
    benchmark = import_benchmark(path, parent=parent, version="2")
    added = benchmark.combinations.filter(~pl.col("is_ground_truth"))
    assert [(q, sorted(t), v) for q, t, v in added.select("query_id", "tool_ids", "verdict").rows()] == [
        ("q0", ["t0", "t3"], "valid")
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"qid": 3, "tools": ["t0"]}, 'no query id that is text under query_id, qid, id; found "3"'),
        ({"qid": "q0", "tools": [3]}, 'a tool of a combination must be an id that is text, found "3"'),
        ({"qid": "q0", "tools": "t0"}, "a combination must be a list of tools"),
        ({"qid": "q0", "combos": "t0"}, "expected a list of combinations"),
        (
            {"qid": "q0", "tools": ["t3"], "verdict": "good"},
            "the verdict is \"'good'\"; write valid, invalid or unsure",
        ),
        ({"qid": "q0", "tools": ["t3"], "score": "1"}, "the score must be a number"),
        ({"qid": "q0", "tools": ["t3"], "coverage": 1}, "coverage must be true or false"),
        ({"qid": "q0", "tools": ["t33"]}, 'unknown tool "t33"; the nearest known tool is "t3"'),
        ({"qid": "q0", "tools": []}, 'an empty combination of query "q0"; remove the row'),
    ],
)
def test_faults_of_combinations_files(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    parent = import_benchmark(write_folder(tmp_path / "b"))
    path = write_rows(tmp_path / "combos.jsonl", [{"qid": "q1", "tools": ["t2"]}, row])
    with pytest.raises(BenchmarkError) as caught:
        import_benchmark(path, parent=parent)
    assert caught.value.problems[0].startswith(f"combos.jsonl, line 2: {problem}")


def test_unknown_fields_of_a_loose_combinations_file_are_named(tmp_path: Path) -> None:
    parent = import_benchmark(write_folder(tmp_path / "b"))
    row = {"qid": "q1", "combos": [{"tools": ["t3"], "cost": 1, "rationale": "same"}], "domain": "web"}
    benchmark = import_benchmark(write_rows(tmp_path / "c.jsonl", [row]), parent=parent)
    assert 'c.jsonl: fields that are not known here were left out: "cost", "domain"' in benchmark.notes
    assert benchmark.combinations["reason"].to_list() == ["", "", "same"]


def test_equivalents_can_come_with_a_combinations_file(tmp_path: Path) -> None:
    parent = import_benchmark(write_folder(tmp_path / "b"))
    path = write_rows(tmp_path / "c.jsonl", [combination("q1", "t3")])
    rows = write_rows(tmp_path / "e.jsonl", [equivalent("q1", 0, "t3")])
    benchmark = import_benchmark(path, parent=parent, equivalents=rows)
    assert benchmark.equivalents["tool_id"].to_list() == ["t3"]


def test_a_folder_can_be_renamed_on_import(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "b")
    plain, renamed = import_benchmark(folder), import_benchmark(folder, slug="mine", version="2", licence="MIT")
    assert (renamed.info.slug, renamed.info.version, renamed.info.licence) == ("mine", "2", "MIT")
    assert renamed.content_hash == plain.content_hash
    with pytest.raises(BenchmarkError, match='slug is "My/own"'):
        import_benchmark(folder, slug="My/own")


def test_options_that_mean_nothing_here_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="source, corpus cannot be used here: the path was recognised as a benchmark"):
        import_benchmark(write_folder(tmp_path / "b"), sources=["x"], corpus="all")


def test_what_is_not_a_benchmark_is_described(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.jsonl", [{"a": 1, "b": 2}])
    with pytest.raises(BenchmarkError, match=r'the keys of its first row are "a", "b". Looked for: a benchmark folder'):
        import_benchmark(tmp_path / "x.jsonl")
    with pytest.raises(BenchmarkError, match=r'it holds "x.jsonl". Looked for'):
        import_benchmark(tmp_path)
    with pytest.raises(BenchmarkError, match="There is nothing at"):
        import_benchmark(tmp_path / "absent")
    with pytest.raises(BenchmarkError, match="not the name of a data set on the hub"):
        import_benchmark("no such/thing at/all")


@pytest.mark.skipif(importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed")
def test_the_hub_out_of_reach_is_a_problem_of_the_environment(tmp_path: Path) -> None:
    """In a process of its own: the hub's client reads its settings when it is imported."""
    code = (
        "import sys\nfrom pipeline.formats.import_benchmark import import_benchmark\n"
        "from pipeline.errors import EnvironmentProblem\n"
        "try: import_benchmark('mangopy/ToolRet-Queries', sources=['apibank'])\n"
        "except EnvironmentProblem as error: sys.stdout.write(str(error))\n"
    )
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": "", "PYTHONPATH": "."}
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("The data set mangopy/ToolRet-Queries cannot be downloaded"), done.stderr


def test_data_sets_from_the_hub_record_their_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The download itself is the hub's; here it finds what a download leaves in the cache."""
    hub = pytest.importorskip("huggingface_hub")
    layout = hub_layout(tmp_path / "hub")
    asked = []

    def snapshot_download(repository: str, *, repo_type: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((repository, repo_type, revision))
        snapshot = tmp_path / repository.replace("/", "--") / (revision or "c0ffee")
        if not snapshot.exists():
            snapshot.parent.mkdir()
            (layout / repository.rpartition("-")[2]).rename(snapshot)
        return str(snapshot)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    benchmark = import_benchmark("mangopy/ToolRet-Tools", sources=["alpha"], corpus="category")
    pins = ("b8c76ad3349ff17497b6bdb28bb5b8f61a0f6445", "e06c38c75612b6536bd959e08cdd345894aba6a7")
    assert asked == [("mangopy/ToolRet-Queries", "dataset", pins[0]), ("mangopy/ToolRet-Tools", "dataset", pins[1])]
    assert benchmark.info.revision == " + ".join(pins)
    assert benchmark.info.source == (
        "mangopy/ToolRet-Queries + mangopy/ToolRet-Tools; tasks: alpha; tools searched: category"
    )
    assert benchmark.tools.height == 3
    assert benchmark.notes[0].startswith("downloaded from the hub: mangopy/ToolRet-Queries + mangopy/ToolRet-Tools at")
    with pytest.raises(UsageError, match="comes in two data sets with a revision each"):
        import_benchmark("mangopy/ToolRet-Queries", revision="main")


def test_without_the_hub_client_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(EnvironmentProblem, match=r"install equirank\[hub\]"):
        import_benchmark("mangopy/ToolRet-Queries")


def test_import_of_an_export_is_the_same_benchmark(tmp_path: Path) -> None:
    benchmark = import_benchmark(skillret(tmp_path / "s"), corpus="test", version="x")
    write_benchmark_folder(benchmark, tmp_path / "out", "parquet")
    again = import_benchmark(tmp_path / "out")
    assert again.info == benchmark.info
    assert again.content_hash == benchmark.content_hash
