"""Studies from the command line: tasks out, results in, reports; what is refused stores nothing."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pipeline.benchmark import Benchmark
from pipeline.cli import app
from pipeline.downstream.tool_sets import expanded_sets, retrieved_sets
from pipeline.errors import EquiRankError, UsageError
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs import first_start
from pipeline.jobs.benchmark_library import import_into_store
from pipeline.jobs.first_start import demo_folder, demo_run
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.access import runs
from store.errors import StoreError
from store.settings import Settings

RESULTS = "task,category,setting,passed\n" + "".join(
    f"ev-00{i},everyday,{setting},{int(i < passed)}\n"
    for setting, passed in (("expanded", 5), ("oracle", 2))
    for i in range(1, 5)
)


@pytest.fixture(scope="module")
def demo() -> Benchmark:
    return read_benchmark_folder(demo_folder("tools"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, demo: Benchmark) -> Generator[Site]:
    """A site with the demo tools alone."""
    opened = open_site(Settings(home=tmp_path_factory.mktemp("home")))
    opened.database.migrate()
    import_into_store(opened, demo)
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def run_id(site: Site) -> str:
    checked = check_run(site, demo_run("tools"), "demo-tools")
    return submit_run(site, checked, demo_run("tools"), SubmissionMetadata(retriever="Sample"), publish=True)


@pytest.fixture(autouse=True)
def settled(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line finds this site; nothing else has to be loaded."""
    monkeypatch.setattr(first_start, "prepared_site", lambda *_, **__: site)


def equirank(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["downstream", *map(str, arguments)])


def failure(*arguments: object) -> EquiRankError | StoreError:
    error = equirank(*arguments).exception
    assert isinstance(error, EquiRankError | StoreError), error
    return error


def export(out: Path, *arguments: object) -> dict[str, list[str]]:
    """Query id → tools of the file that a command wrote."""
    made = equirank("export", "-b", "demo-tools", "--out", out, "--format", "json", *arguments)
    assert made.exit_code == 0, made.output
    tasks = json.loads(out.read_text(encoding="utf-8"))
    assert json.loads(made.output)["tasks"] == len(tasks)
    return {task["query_id"]: [api["tool_id"] for api in task["api_list"]] for task in tasks}


def test_every_setting_is_exported(site: Site, demo: Benchmark, run_id: str, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    truths = dict(demo.ground_truth.select("query_id", "tool_ids").iter_rows())
    assert export(out, "--setting", "oracle") == truths
    with site.database.reading() as session:
        ranking = site.artifacts.get_frame(runs.get(session, run_id).ranking_artifact or "")
    first_three = {query: list(tools) for query, tools in retrieved_sets(demo, ranking, 3).tools.items()}
    assert export(out, "--setting", "retriever", "--run", run_id, "--k", 3) == first_three
    assert export(out, "--setting", "retriever", "--run", demo_run("tools"), "--k", 3) == first_three
    by_score = {query: list(tools) for query, tools in expanded_sets(demo).tools.items()}
    assert export(out, "--setting", "expanded") == by_score
    by_run = export(out, "--setting", "expanded", "--choose", "run", "--run", run_id)
    assert by_run != by_score and by_run.keys() == by_score.keys()
    some = tmp_path / "ids.txt"
    some.write_text("ev-002\n\nev-001\n", encoding="utf-8")
    assert export(out, "--setting", "oracle", "--tasks", some).keys() == {"ev-001", "ev-002"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["oracle", "--run", "r"], "needs no run"),
        (["retriever"], "needs --run"),
        (["expanded", "--run", "r"], "--choose run and --run go together"),
        (["expanded", "--choose", "run"], "--choose run and --run go together"),
        (["oracle", "--tasks", "/nowhere"], "cannot be read as UTF-8 text"),
        (["retriever", "--run", "nobody"], "neither a file nor a stored run"),
    ],
)
def test_options_that_do_not_fit_write_no_file(arguments: list[str], message: str, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    error = failure("export", "-b", "demo-tools", "--out", out, "--setting", *arguments)
    assert message in str(error) and not out.exists()


def test_a_run_of_other_tools_is_refused(site: Site, run_id: str, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    error = failure(
        "export", "-b", demo_folder("skills"), "--out", out, "--setting", "retriever", "--run", run_id
    )  # fmt: skip
    assert isinstance(error, UsageError) and f"run {run_id} is not of demo-skills@1" in str(error)


def test_a_study_comes_in_once_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(RESULTS, encoding="utf-8")
    made = equirank("import", path, "--label", "Agent A", "-b", "demo-tools", "--note", "judge B")
    assert made.exit_code == 0, made.output
    assert "4 tasks under oracle, expanded" in made.output
    assert "called 'Agent A' already" in str(failure("import", path, "--label", "Agent  A"))
    (listed,) = json.loads(equirank("list", "--format", "json").output)
    assert (listed["label"], listed["benchmark"], listed["tasks"]) == ("Agent A", "demo-tools@1", 4)
    told = json.loads(equirank("report", "Agent A", "--format", "json").output)
    assert told["study"] == listed
    # The first of four passes under both, the others under expanded alone.
    assert [(row["gained"], row["lost"], row["p"]) for row in told["differences"]] == [(3, 0, 0.25)] * 2
    table = equirank("report", listed["id"]).output
    assert "expanded − oracle" in table and "+75.0" in table and "3.5 to 6.5 pp" in table
    markdown = equirank("report", "Agent A", "--format", "markdown").output
    assert markdown.startswith("# Agent A\n") and "| expanded − oracle | all tasks | 4 | +75.0 |" in markdown


def test_a_refused_file_stores_nothing(site: Site, tmp_path: Path) -> None:
    before = equirank("list", "--format", "json").output
    path = tmp_path / "results.csv"
    path.write_text(RESULTS.replace("ev-004", "ev-4"), encoding="utf-8")
    error = failure("import", path, "--label", "Agent B", "-b", "demo-tools")
    assert 'line 5: task "ev-4" is no query of demo-tools@1' in str(error)
    assert "at most 1,000 characters" in str(failure("import", path, "--label", "Agent B", "--note", "n" * 1001))
    assert "name each once" in str(failure("import", path, "--label", "Agent B", "--settings", "oracle"))
    assert equirank("list", "--format", "json").output == before
