"""Every control of every page: its choice is in the address, a link restores it, and it can be undone.

The controls are found, not listed: by opening the pages, and by reading their source for controls that no view shows.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button, DownloadButton, FileUploader, NumberInput, Widget

from dashboard.current_site import use_site
from pipeline.formats.board_rows import FILTERS
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site, open_site
from pipeline.jobs.submission import SubmissionMetadata, check_run, submit_run
from store.settings import Settings
from tests.dashboard.conftest import APP, second_version
from tests.dashboard.dashboard_app import open_page
from tests.dashboard.measured_runs import measured
from tests.dashboard.stored_expansion import EXPANSION_ID, finished_expansion, stored_study
from tests.dashboard.stored_weights import StoredWeights, imported_weights

pytestmark = pytest.mark.slow

DEMO, PAPER = "demo-tools@1", "tooleq@published"
#: (page, address): together they show every control; ``RUN`` stands for a run of the demo benchmark, ``TOOLS`` and
#: ``ASKED`` for texts in fields that weights were imported with.
VIEWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("leaderboard", {"lb_benchmark": PAPER}),
    ("leaderboard", {"lb_benchmark": DEMO, "lb_provenance": "uploaded"}),
    ("old_vs_new", {"ovn_benchmark": PAPER}),
    ("illusion", {"ill_benchmark": PAPER, "ill_runs": "any two runs"}),
    ("compare", {"cmp_benchmark": DEMO}),
    ("score_and_cost", {"cost_benchmark": PAPER}),
    ("equivalent_ranks", {"er_benchmark": DEMO}),
    ("equivalent_ranks", {"er_benchmark": DEMO, "er_point": "equivalent_by"}),
    ("queries", {"q_benchmark": DEMO}),
    ("queries", {"q_benchmark": DEMO, "q_query": "ev-006"}),
    ("submit", {"submit_benchmark": DEMO}),
    ("evaluate", {"ev_benchmark": DEMO}),
    ("leaderboard", {"lb_layout": "methods"}),
    ("mftr_lab", {"lab_benchmark": DEMO}),
    ("mftr_lab", {"lab_benchmark": DEMO, "lab_view": "all queries"}),
    ("evaluate", {"ev_benchmark": DEMO, "ev_method": "adapter"}),
    ("evaluate", {"ev_benchmark": DEMO, "ev_method": "mftr", "ev_documents": "llm"}),
    (
        "evaluate",
        {
            "ev_benchmark": DEMO,
            "ev_model": "bm25s",
            "ev_method": "mftr",
            "ev_documents": "TOOLS",
            "ev_queries": "ASKED",
        },
    ),
    ("evaluate", {"ev_benchmark": DEMO, "ev_from": "Hub"}),
    ("evaluate", {"ev_benchmark": DEMO, "ev_from": "Folder"}),
    ("evaluate", {"ev_benchmark": DEMO, "ev_from": "Endpoint"}),
    ("my_runs", {}),
    ("jobs", {}),
    ("benchmarks", {"bm_benchmark": PAPER}),
    ("benchmarks", {"bm_benchmark": "demo-tools@2"}),
    ("about", {}),
    ("run", {"run": "RUN"}),
    ("retriever", {"retriever": "tool-embed-4b"}),
    ("retriever", {"retriever": "one"}),
    ("annotate", {"an_benchmark": "demo-skills@1", "an_depth": "2"}),
    ("annotate", {"an_view": "Disputes"}),
    ("annotate", {"an_view": "Grow", "an_of": DEMO, "gro_look": "true"}),
    ("annotate", {"an_view": "Downstream", "an_of": DEMO}),
    ("annotate", {"expansion": EXPANSION_ID}),
)
#: Shown only beside an uploaded file, which no address can carry.
BESIDE_A_FILE = {"submit_k"}
#: Buttons that undo every filter of their page at once, and what they leave alone: which figure, of which runs.
UNDO = {
    "lb_clear_all": ("layout", "benchmark", "view", "metric", "k", "over", "columns", "pin"),
    "q_clear": ("benchmark", "run", "metric", "k", "need", "tool"),
}
#: A choice that these do not offer any more is forgotten, so the way back gives its first value.
CHANGES_WHAT_IS_OFFERED = {
    "lb_benchmark", "lb_layout", "lab_benchmark", "lab_view", "ev_benchmark", "ev_model", "ev_from", "ev_method",
    "ev_documents", "an_view",
}  # fmt: skip


@dataclass(frozen=True)
class Filled:
    """A site with what the views need."""

    site: Site
    run: str
    texts: StoredWeights

    def address(self, query: dict[str, str]) -> dict[str, str]:
        """An address with the ids that its placeholders stand for."""
        ids = {"RUN": self.run, "TOOLS": self.texts.tools, "ASKED": self.texts.queries}
        return {name: ids.get(value, value) for name, value in query.items()}


@pytest.fixture(scope="module")
def filled(prepared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A prepared site with three runs of the demo tools; the tests only read."""
    home = tmp_path_factory.mktemp("filled") / "home"
    shutil.copytree(prepared_home, home)
    site = open_site(Settings(home=home, endpoint_hosts="models.example", allow_endpoints=True))
    source = demo_run("tools")
    lines = source.read_text().splitlines(True)
    ids = []
    for name, left_out in (("One", 0), ("Two", 10), ("Three", 7)):
        file = home.parent / f"{name}.trec"
        file.write_text("".join(line for n, line in enumerate(lines) if not left_out or n % left_out != 1))
        checked = check_run(site, file, "demo-tools")
        ids.append(submit_run(site, checked, file, SubmissionMetadata(retriever=name), publish=True))
    second = second_version(site)
    for version in ("demo-tools@1", second):
        checked = check_run(site, source, version)
        submit_run(site, checked, source, SubmissionMetadata(retriever="Both"), publish=True)
    measured(site)
    for preset in ("paper", "v2"):
        measured(site, "mftr", method_preset=preset)
    finished_expansion(site, "demo-tools@1", second)
    stored_study(site, home.parent)
    texts = imported_weights(site)
    use_site(site)
    yield Filled(site, ids[0], texts)
    use_site(None)
    site.database.close()


def opened(page: str, query: dict[str, Any]) -> AppTest:
    """A page as somebody sees it who opens a link: nothing is remembered."""
    app = AppTest.from_file(str(APP), default_timeout=60)
    if page == "leaderboard":
        app.query_params.update(query)
        app.run()
    else:
        open_page(app, page, **query)
    assert not app.exception, app.exception
    return app


def controls(app: AppTest) -> list[Widget]:
    """Widgets with a value that a reader sets, but for files and for forms, which are sent and no state of a page."""
    kinds = (Button, DownloadButton, FileUploader)
    widgets = [node for node in app._tree if isinstance(node, Widget) and not isinstance(node, kinds) and node.key]
    return [widget for widget in widgets if not getattr(widget.proto, "form_id", "")]


def parameter(app: AppTest, control: Widget) -> str | None:
    """The name under which the address holds a control's value; None where it does not."""
    bound = str(getattr(control.proto, "query_param_key", ""))
    if bound:
        return bound
    key = str(control.key)
    # Controls with descriptions write the address themselves; the key may end in what the options belong to.
    said = next((name for name in app.query_params if key == name or re.fullmatch(f"{name}_\\d+", key)), None)
    # Nothing is said where nothing is chosen.
    return said if said or control.value else re.sub(r"_\d+$", "", key)


def other_value(control: Widget) -> Any:
    """Another value of a control."""
    value = control.value
    options = list(getattr(control, "options", []))
    if options:
        raw = [int(option[1:]) if re.fullmatch(r"@\d+", option) else option for option in options]
        if isinstance(value, list):
            if len(value) == len(raw) == 1:
                return None  # without this choice it would not be shown
            return [raw[-1]] if len(value) != 1 else raw[:2]
        labels = [str(control.format_func(value)), str(value)]  # type: ignore[attr-defined]
        return next((word for word, label in zip(raw, options, strict=True) if label not in labels), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float) or isinstance(control, NumberInput):
        return int(value or 0) + 1
    return "e"


def written(control: Widget) -> Any:
    """A bound control's value as the browser writes it into the address: labels, and true or false."""
    value = control.value
    if isinstance(value, bool):
        return str(value).lower()
    label = getattr(control, "format_func", str)
    return [str(label(one)) for one in value] if isinstance(value, list) else str(label(value))


def content(app: AppTest) -> list[str]:
    """Everything the page says, and the values of its controls."""
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.text, *app.info, *app.warning, *app.error]
    tables = [table.value.to_json() for table in [*app.dataframe, *app.table]]
    return [*(str(part.value) for part in parts), *tables, *(f"{c.key}: {c.value}" for c in controls(app))]


def by_key(app: AppTest, key: str) -> Widget:
    return next(control for control in controls(app) if control.key == key)


def named(page: str, query: dict[str, str]) -> str:
    return f"{page}?{'&'.join(query.values())}"


@pytest.mark.parametrize(("page", "query"), VIEWS, ids=[named(*view) for view in VIEWS])
def test_addresses_restore_every_control_and_every_choice_can_be_undone(
    filled: Filled, page: str, query: dict[str, str]
) -> None:
    query = filled.address(query)
    app = opened(page, query)
    first = content(app)
    for key in [str(control.key) for control in controls(app)]:
        if content(app) != first:
            # After a choice that cannot be undone as it was: from the link again.
            app = opened(page, query)
        control = by_key(app, key)
        name = parameter(app, control)
        assert name, f"the address of {page} says nothing about {key}"
        bound = bool(getattr(control.proto, "query_param_key", ""))
        old, new = control.value, other_value(control)
        if new is None:
            continue  # a single option
        control.set_value(new).run()
        assert not app.exception, app.exception
        changed = content(app)
        now = by_key(app, key)
        assert now.value != old, f"{key} did not change"
        # A browser takes a bound control out of the address that shows its default again.
        kept = {str(c.proto.query_param_key) for c in controls(app) if getattr(c.proto, "query_param_key", "")}
        address = query | {word: value for word, value in app.query_params.items() if word not in kept}
        if bound:
            address[name] = written(now)
        link = opened(page, address)
        assert by_key(link, key).value == now.value, f"the link forgets {key}"
        shown = content(link)
        if key in CHANGES_WHAT_IS_OFFERED:
            # The first link's other words are in this one too; a browser takes those out that are not offered now.
            shown = [text for text in shown if text not in notices(link)]
        assert shown == changed, f"the link with another {key} shows something else"
        by_key(app, key).set_value(old).run()
        assert by_key(app, key).value == old, f"{key} cannot be undone"
        if key not in CHANGES_WHAT_IS_OFFERED:
            assert content(app) == first, f"the page is another one after {key} is undone"
        for undo, kept in UNDO.items():
            if undo not in [button.key for button in app.button] or name.split("_", 1)[1] in kept:
                continue
            by_key(app, key).set_value(new).run()
            app.button(key=undo).click().run()
            left = {str(c.key): c.value for c in controls(app)}
            assert left[key] == old or key in query, f"{undo} leaves {key}"


#: What no page offers.
NO_OPTION = "no-such-option"


def offers(control: Widget) -> bool:
    """Whether a control has options, so that a link can ask for one that is none of them."""
    return hasattr(control, "options") or isinstance(control.value, bool)


def notices(app: AppTest) -> list[str]:
    return [str(warning.value) for warning in app.warning if "this link" in str(warning.value)]


@pytest.fixture(scope="module")
def seen(filled: Filled) -> Callable[[str, dict[str, str]], AppTest]:
    """A view as its link shows it, opened once for all tests that only look at it."""
    apps: dict[str, AppTest] = {}

    def look(page: str, query: dict[str, str]) -> AppTest:
        name = named(page, query)
        if name not in apps:
            apps[name] = opened(page, filled.address(query))
        return apps[name]

    return look


@pytest.mark.parametrize(("page", "query"), VIEWS, ids=[named(*view) for view in VIEWS])
def test_what_a_link_asks_for_and_a_page_does_not_offer_is_never_replaced_without_a_word(
    filled: Filled, seen: Callable[[str, dict[str, str]], AppTest], page: str, query: dict[str, str]
) -> None:
    app = seen(page, query)
    query = filled.address(query)
    assert not notices(app)
    # The layout, and which part is shown, decide which other controls there are.
    first = {"lb_layout", "lab_view", "an_view", "ill_runs", "ev_from", "ev_way", "ev_learns", "jobs_whose"}
    bound, described = [], []
    for control in controls(app):
        name = parameter(app, control)
        if name and offers(control) and name not in first:
            (bound if getattr(control.proto, "query_param_key", "") else described).append(name)
    if bound:
        link = opened(page, query | dict.fromkeys(bound, NO_OPTION))
        said = [text for text in notices(link) if "instead" in text and "no\\-such\\-option" in text]
        assert len(said) == len(bound), (bound, said)
    for name in described:
        link = opened(page, query | {name: NO_OPTION})
        assert len(notices(link)) == 1, (name, notices(link))
        assert NO_OPTION in link.query_params[name] or "instead" in notices(link)[0], f"{name} was replaced"


HIDDEN_RUNS = (
    ("compare", "cmp_benchmark", {"cmp_base": "HIDDEN", "cmp_tuned": "RUN"}),
    ("compare", "cmp_benchmark", {"cmp_base": "RUN", "cmp_tuned": "HIDDEN"}),
    ("illusion", "ill_benchmark", {"ill_runs": "any two runs", "ill_base": "HIDDEN", "ill_tuned": "RUN"}),
    ("equivalent_ranks", "er_benchmark", {"er_run": "HIDDEN"}),
    ("mftr_lab", "lab_benchmark", {"lab_run": "HIDDEN"}),
)


@pytest.mark.parametrize(("page", "benchmark", "query"), HIDDEN_RUNS, ids=[named(p, q) for p, _, q in HIDDEN_RUNS])
def test_nothing_is_computed_in_place_of_a_run_that_cannot_be_shown(
    filled: Filled, page: str, benchmark: str, query: dict[str, str]
) -> None:
    site, run = filled.site, filled.run
    source = demo_run("tools")
    checked = check_run(site, source, DEMO)
    private = submit_run(site, checked, source, SubmissionMetadata(retriever="Unseen"), publish=False)
    said = []
    for hidden in (private, "r_doesnotexist"):
        words = {"HIDDEN": hidden, "RUN": run}
        app = opened(page, {benchmark: DEMO} | {name: words.get(value, value) for name, value in query.items()})
        assert len(notices(app)) == 1
        assert not list(app.dataframe) and not app.get("plotly_chart"), "a result of a substitute is shown"
        assert not any("**" in str(part.value) for part in app.markdown)
        said.append(content(app))
        picker = next(c for c in controls(app) if c.value in (None, []) and parameter(app, c) in query)
        (picker.set_value([run]) if picker.value == [] else picker.select_index(0)).run()
        assert not app.exception
        assert not notices(app)
    assert str(said[0]).replace(private, "") == str(said[1]).replace("r_doesnotexist", ""), "the answers differ"


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("queries", {"q_benchmark": "nope"}),
        ("mftr_lab", {"lab_benchmark": PAPER}),
        ("leaderboard", {"lb_benchmark": "x"}),
    ],
)
def test_no_other_benchmark_replaces_the_one_that_a_link_names(
    filled: Filled, page: str, query: dict[str, str]
) -> None:
    app = opened(page, query)
    assert len(notices(app)) == 1
    assert not list(app.dataframe)
    assert len(controls(app)) <= 2, "only the benchmark, and the leaderboard's layout, can be chosen"


@pytest.mark.parametrize(("page", "query"), VIEWS, ids=[named(*view) for view in VIEWS])
def test_every_link_says_which_page_it_leads_to(
    seen: Callable[[str, dict[str, str]], AppTest], page: str, query: dict[str, str]
) -> None:
    app = seen(page, query)
    # A browser reads "" and "?run=…" as the page that it is on.
    assert all(link.proto.page for link in app.get("page_link")), "a link has no address"
    texts = [str(part.value) for part in [*app.markdown, *app.caption, *app.info, *app.warning, *app.error]]
    assert not [text for text in texts if re.search(r"\]\(\?|href=.\?", text)]
    cells = [cell for table in app.dataframe for column in table.value for cell in table.value[column]]
    assert not [cell for cell in cells if str(cell).startswith("?")]


WAYS = {"select", "segments", "several", "text", "switch", "described_select", "pinned_select"}
CHOOSERS = {"choose_version", "choose_runs", "described_several"}


def keys_of(path: Path) -> set[str]:
    """The names of bound controls that a source file spells out."""
    module = import_module(f"dashboard.{path.parent.name}.{path.stem}") if path.parent.name == "components" else None
    source = ast.parse(path.read_text())
    prefixes = {
        node.targets[0].id: node.value.value
        for node in ast.walk(source)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    } | ({"PREFIX": module.PREFIX} if module is not None and hasattr(module, "PREFIX") else {})  # fmt: skip

    def spelled(node: ast.AST) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Name):
            return prefixes.get(node.id)
        if isinstance(node, ast.BinOp):
            left, right = spelled(node.left), spelled(node.right)
            return left + right if left is not None and right is not None else None
        return None

    if path.stem.endswith(("query_list", "query_view")) or path.stem == "queries":
        prefixes.setdefault("PREFIX", "q_")
    found = set()
    for node in ast.walk(source):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if owner == "permalinks" and called in WAYS:
            key = given.get("key") or (node.args[1] if called in ("text", "switch") else node.args[2])
        elif called in CHOOSERS and ("key" in given or len(node.args) > 1):
            key = given.get("key") or node.args[1]
        elif "bind" in given:
            key = given["key"]
        else:
            continue
        word = spelled(key)
        if word:
            found.add(word)
    return found


def test_no_bound_control_is_left_out(seen: Callable[[str, dict[str, str]], AppTest]) -> None:
    shown: set[str] = set()
    for page, query in VIEWS:
        app = seen(page, query)
        shown |= {name for control in controls(app) if (name := parameter(app, control))}
    folder = APP.parent
    spelled = {
        key for part in ("pages", "components") for path in (folder / part).glob("*.py") for key in keys_of(path)
    }
    assert len(spelled) > 40
    assert spelled - shown == BESIDE_A_FILE
    assert {f"lb_{column}" for column in FILTERS} <= shown
