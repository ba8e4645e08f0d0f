"""The verbs that write reports, cards and BibTeX, on a home with a private, a withdrawn and a published run."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import pipeline
from pipeline.cli import app
from pipeline.jobs.first_start import demo_run, prepared_site
from pipeline.jobs.statistics import compute, pending
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run, withdraw_run
from store.settings import Settings, get_settings


@dataclass(frozen=True)
class Home:
    """A prepared home and its runs."""

    folder: Path
    published: str
    private: str
    withdrawn: str

    def __call__(self, *arguments: str) -> Result:
        """Run ``equirank …`` here."""
        return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    site = prepared_site(Settings(home=folder))
    ids = []
    for name in ("Shown", "Hidden", "Gone"):
        checked = check_run(site, demo_run("tools"), "demo-tools")
        said = SubmissionMetadata(retriever=f"{name} <i>retriever</i> & co")
        ids.append(submit_run(site, checked, demo_run("tools"), said, publish=name != "Hidden"))
    withdraw_run(site, ids[2])
    assert compute(site, pending(site), lambda line: None) == []
    site.database.close()
    return Home(folder, *ids)


@pytest.fixture
def home(prepared: Home, monkeypatch: pytest.MonkeyPatch) -> Generator[Home]:
    monkeypatch.setenv("EQUIRANK_HOME", str(prepared.folder))
    monkeypatch.setenv("EQUIRANK_PUBLIC_URL", "https://board.example")
    get_settings.cache_clear()
    yield prepared
    get_settings.cache_clear()


def test_a_report_holds_the_published_run_alone_with_the_columns_that_say_something(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "board.html"
    assert home("report", "-b", "demo-tools", "--out", str(out)).output == f"wrote {out}\n"
    text = out.read_text()
    assert "Shown &lt;i&gt;retriever&lt;/i&gt; &amp; co" in text
    assert "Hidden" not in text and "Gone" not in text
    assert "<script" not in text and "https://board.example/?lb_benchmark=demo-tools@1" in text
    for title in ("Old", "New", "Lift", "New, 95 %", "Random lift", "Tie group", "Queries"):
        assert f">{title}</th>" in text, title
    # The same way of asking in every row, costs that nobody measured and empty remarks are left out.
    for title in ("Method", "Encoding", "Device", "Lift, 95 %", "Δ rank; "):
        assert f">{title}</th>" not in text, title


def test_a_view_of_old_figures_ranks_by_them_and_shows_no_others(home: Home) -> None:
    text = home("report", "-b", "tooleq", "--view", "old", "--metric", "Recall").output
    assert ">Old</th>" in text and ">New</th>" not in text
    assert "none: figures as printed" in text


def test_a_report_of_some_rows_keeps_the_ranks_of_the_board(home: Home) -> None:
    whole = home("report", "-b", "tooleq").output
    some = home("report", "-b", "tooleq", "--training", "fine-tuned", "--search", "tool-embed-4b").output
    assert "Tool-Embed-4B" in some and "BM25" in whole and "BM25" not in some
    row = re.search(r"<tr>(?:(?!</tr>).)*Tool-Embed-4B.*?</tr>", whole, re.DOTALL)
    assert row is not None and row[0].split("</td>")[0] in some, "its rank is that of the whole board"
    assert "?lb_benchmark=tooleq@published&amp;lb_search=tool-embed-4b&amp;lb_training=fine-tuned" in some
    latex = home("report", "-b", "tooleq", "--format", "latex", "--method", "full-doc", "--search", "bm25").output
    assert "BM25" in latex and "Embed" not in latex


def test_the_papers_table(home: Home) -> None:
    text = home("report", "-b", "tooleq", "--format", "latex").output
    assert text.startswith("% needs \\usepackage{booktabs}")
    assert "\\multicolumn{4}{c}{Code}" in text and text.rstrip().endswith("\\end{tabular}")
    one = home("report", "-b", "tooleq", "--format", "latex", "--domain", "code").output
    assert one.count("\\multicolumn") == 1


@pytest.mark.parametrize(
    ("asked", "code", "named"),
    [
        (("--metric", "MAP"), 2, "NDCG, Recall, Comp"),
        (("--provenance", "guessed"), 2, "there are reported"),
        (("--search", "no such name"), 1, "no row"),
        (("--average", "domain"), 2, "needs --domain"),
        (("--average", "macro", "--domain", "code"), 2, "belongs to no domain"),
        (("--domain", "no such"), 1, "no such"),
        (("--k", "7", "--format", "latex"), 1, "K = 7"),
        (("--out", "/nonexistent/board.html"), 3, "cannot be written"),
    ],
)
def test_what_cannot_be_reported_is_said(home: Home, asked: tuple[str, ...], code: int, named: str) -> None:
    found = home("report", "-b", "tooleq", *asked)
    assert getattr(found.exception, "exit_code", None) == code
    assert named in str(found.exception)


def test_the_card_and_citations_of_a_run(home: Home, tmp_path: Path) -> None:
    card = json.loads(home("runs", "card", home.published, "--format", "json").output)
    assert card["reproduce"]["command"].startswith("equirank score RUN_FILE --benchmark demo-tools@1")
    assert card["hashes"]["ranking"] in home("runs", "card", home.published).output
    out = tmp_path / "card.json"
    home("runs", "card", home.published, "--format", "json", "--out", str(out))
    assert json.loads(out.read_text()) == card
    # Whoever has the command line owns the site; a card that is passed on still holds no private link.
    assert "token" not in home("runs", "card", home.private).output
    cited = home("runs", "cite", home.published).output
    assert home.published in cited and cited.count("{") == cited.count("}")
    assert "demo-tools" in home("benchmark", "cite", "demo-tools").output


def test_compare_takes_the_order_that_its_error_asks_for(tmp_path: Path) -> None:
    rising = tmp_path / "rising.trec"
    rows = [line.split() for line in demo_run("tools").read_text().splitlines()]
    rising.write_text("".join(f"{q} {zero} {t} {r} {-float(s)} x\n" for q, zero, t, r, s, _ in rows))
    folder = Path(pipeline.__file__).parent / "demo" / "tools"
    words = ("compare", str(rising), str(demo_run("tools")), "--benchmark", str(folder), "--format", "json")
    refused = CliRunner().invoke(app, list(words))
    assert refused.exit_code == 1 and 'declare the order: "distance"' in str(refused.exception or refused.output)
    taken = CliRunner().invoke(app, [*words, "--order", "rank"])
    assert taken.exit_code == 0, taken.output
    assert {(gain["gain_old"], gain["gain_new"]) for gain in json.loads(taken.output)["gains"]} == {(0.0, 0.0)}
    table = CliRunner().invoke(app, [*words[:-2], "--order", "rank"]).output
    said = {line.partition(": ")[0]: line for line in table.splitlines()}
    assert "gone once every valid answer counts" in said["artifact share"] and "negative:" in said["artifact share"]
    assert "under every valid answer (new) is equal" in said["p shrink"]
