"""The page of one retriever: its figures, relatives and runs, and what it never shows."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import retriever_reading
from dashboard.components.retriever_tables import contract_table, facts, figures_table, lift_sentence, runs_table
from pipeline.jobs.site import Site
from pipeline.jobs.submission import withdraw_run
from pipeline.retrieval.registry import default_registry
from store.access import retrievers
from store.errors import NotFound
from store.models import Retriever
from tests.dashboard.dashboard_app import open_page


def said(app: AppTest) -> str:
    parts = [*app.title, *app.subheader, *app.markdown, *app.caption, *app.text, *app.info, *app.error]
    return "\n".join(str(part.value) for part in parts)


def opened(app: AppTest, key: str, **query: str) -> AppTest:
    open_page(app, "retriever", retriever=key, **query)
    assert not app.exception, app.exception
    return app


def links(app: AppTest) -> dict[str, dict[str, list[str]]]:
    """Label of every page link → its query parameters."""
    found = [node.proto for node in app._tree if node.type == "page_link"]
    return {link.label: parse_qs(urlsplit("?" + link.query_string).query) for link in found}


def test_a_published_retriever_with_its_figures_and_its_base(site: Site, app: AppTest) -> None:
    opened(app, "tool-embed-4b")
    assert app.title[0].value == r"Tool\-Embed\-4B"
    table = app.dataframe[0].value
    row = table[table["Asked with"] == "Full-Doc"].iloc[0]
    assert row[["Rank", "Old", "New", "Lift", "Trained on it"]].tolist() == ["1 of 10", "52.0", "57.1", "+5.1", "yes"]
    text = said(app)
    assert "lifts its NDCG@10 by **5.1 points** on the one benchmark" in text
    assert "**47 % of this gain disappears** once equivalent tools count" in text
    known = links(app)
    assert known[r"Base: Qwen3\-Embedding\-4B"] == {"retriever": ["qwen3-emb-4b"]}
    split = known["Real gain and artifact, by domain"]
    assert split["ill_benchmark"] == ["tooleq@published"]
    assert split["ill_base"] != split["ill_tuned"]


def test_a_run_that_leaves_every_board_meanwhile_is_no_error(
    site: Site, app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retriever_reading, "standings", lambda *_: [])
    monkeypatch.setattr(retriever_reading, "cutoffs", lambda _: ([], []))
    opened(app, "tool-embed-4b")
    text = said(app)
    assert "No run of this retriever stands on a board now." in text and "What is known of it" in text


def test_every_sign_means_one_thing_and_is_explained(site: Site, app: AppTest) -> None:
    significant = "† as the paper marks it: significant over its strongest baseline."
    needs = "‡ asked one need at a time, ranked apart."
    for key, marked in (("minilm-l6", True), ("tool-embed-4b", False)):
        opened(app, key)
        cells = app.dataframe[0].value.astype(str)
        assert cells["Old"].str.contains("†").any() == marked
        assert not cells.drop(columns=["Old", "New"]).apply(lambda column: column.str.contains("†")).any(axis=None)
        assert (significant in said(app)) == marked
        assert (needs in said(app)) == cells["Asked with"].str.contains("‡").any()
        assert said(app).count("†") == (1 if marked else 0)


def test_the_link_to_the_gain_opens_that_pair(site: Site, app: AppTest) -> None:
    opened(app, "tool-embed-4b", rt_metric="Recall", rt_k="@5")
    query = {name: values[0] for name, values in links(app)["Real gain and artifact, by domain"].items()}
    open_page(app, "illusion", **query)
    assert not app.exception
    assert app.selectbox(key="ill_tuned").value == query["ill_tuned"]
    assert app.segmented_control(key="ill_metric").value == "Recall"
    assert app.selectbox(key="ill_k").value == int(query["ill_k"][1:])


def test_a_base_names_what_was_tuned_from_it(site: Site, app: AppTest) -> None:
    tuned = retriever_reading.retriever("tool-embed-4b")
    assert tuned.base is not None
    opened(app, tuned.base.key)
    assert any("Fine-tuned from it" in label and "4B" in label for label in links(app))


@pytest.mark.parametrize("key", ["bm25s", "minilm-l6", "contriever"])
def test_every_figure_of_the_papers_is_there(site: Site, app: AppTest, key: str) -> None:
    found = retriever_reading.retriever(key)
    standing = retriever_reading.standings(found, "NDCG", 10)
    table = figures_table(standing, retriever_reading.titles(standing))
    assert table.height == found.runs.height
    with_new = [not value.startswith("—") for value in table["New"]]
    assert with_new == sorted(with_new, reverse=True), "boards with both figures come first"
    listed = runs_table(found, set(), retriever_reading.titles(standing))
    assert set(listed["On the board"]) == {"replaced by a newer run"}
    opened(app, key)


def test_hidden_runs_leave_no_trace(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    submitted("Hidden", publish=False)
    withdraw_run(site, submitted("Gone"))
    for key in ("hidden", "gone", "no-such-one", ""):
        assert not retriever_reading.is_public(key)
    for key in ("hidden", "gone", "no-such-one"):
        with pytest.raises(NotFound):
            retriever_reading.retriever(key)
        opened(app, key)
        assert app.title[0].value == "This retriever cannot be shown"
        assert f"no retriever with the key {key}".replace("-", r"\-") in said(app)
    shown = submitted("Shown")
    hidden = submitted("Shown", publish=False)
    opened(app, "shown")
    assert shown in app.dataframe[-1].value["Run"].tolist()
    assert hidden not in str([frame.value.to_json() for frame in app.dataframe])


def test_older_runs_are_listed_with_what_replaced_them(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    older, newer = submitted("Twice"), submitted("Twice")
    opened(app, "twice")
    rows = next(frame.value for frame in app.dataframe if "On the board" in frame.value.columns)
    assert dict(zip(rows["Run"], rows["On the board"], strict=True)) == {
        newer: "now", older: "replaced by a newer run",
    }  # fmt: skip
    assert app.dataframe[0].value["Rank"].tolist() == ["1 of 1"]
    assert "It is not in the registry" in said(app)


def test_a_child_of_a_hidden_run_is_not_named(site: Site, submitted: Callable[..., str]) -> None:
    submitted("Secret child", publish=False)
    with site.database.session() as session:
        retrievers.upsert(session, Retriever(key="secret-child", name="Secret child", base_key="minilm-l6"))
    assert "secret-child" not in {item.key for item in retriever_reading.retriever("minilm-l6").tuned}


def test_a_registered_retriever_without_runs_invites(bare_site: Site, app: AppTest) -> None:
    opened(app, "minilm-l6")
    assert "No run of this retriever is published yet" in app.info[0].value
    assert links(app)["Evaluate it on a benchmark"] == {"ev_model": ["minilm-l6"]}
    table = next(frame.value for frame in app.dataframe if "Setting" in frame.value.columns)
    assert "Instruct: {instruction} ⏎ Query: {query}" in table["As the papers did"].tolist()


def test_no_retriever_is_chosen(site: Site, app: AppTest) -> None:
    open_page(app, "retriever")
    assert not app.exception
    assert app.title[0].value == "No retriever chosen"


def test_names_with_markup_stay_text(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    submitted("![x](http://evil.example/p.png)")
    key = next(
        row["retriever_key"]
        for row in retriever_reading.retriever("x-http-evil.example-p.png").runs.iter_rows(named=True)
    )
    opened(app, key)
    assert "![x](" not in said(app).replace("\\", "\0")


def test_every_entry_of_the_registry_can_be_described(bare_site: Site) -> None:
    for entry in default_registry().entries:
        found = retriever_reading.retriever(entry.key)
        known, on_a_phone = dict(facts(found)), dict(facts(found, narrow=True))
        assert known["Key"] == found.record.key
        # A commit is cut for a phone, and nothing else.
        assert known | {"Revision": ""} == on_a_phone | {"Revision": ""}
        assert known["Revision"].startswith(on_a_phone["Revision"])
        assert len(on_a_phone["Revision"]) == 12 or on_a_phone["Revision"] == known["Revision"]
        assert found.entry is not None
        if found.entry.dense:
            assert "{document}" in " ".join(contract_table(found.entry)["As the model card says"]), entry.key
    assert lift_sentence([], "NDCG", 10) == ""


def test_a_row_and_a_run_lead_to_the_retriever(site: Site, app: AppTest, submitted: Callable[..., str]) -> None:
    run_id = submitted("Chosen")
    app.query_params.update({"lb_benchmark": "demo-tools@1", "run": run_id})
    app.run()
    assert links(app)["Everything about Chosen"] == {"retriever": ["chosen"]}
    open_page(app, "run", run=run_id)
    assert links(app)["Everything about Chosen"] == {"retriever": ["chosen"]}
    private = submitted("Unseen", publish=False)
    with site.database.reading() as session:
        from store.access import runs

        token = runs.get(session, private).private_token
    open_page(app, "run", run=private, token=token or "")
    assert "Unseen" in app.title[0].value
    assert "Everything about Unseen" not in links(app)
