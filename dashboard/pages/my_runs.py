"""My runs: what was submitted here, with its state; edit, publish, withdraw, download."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard.components import permalinks, viewport
from dashboard.components.failures import shown_errors
from dashboard.components.numbers import NONE, day, points, whole
from dashboard.components.run_detail import RunPage, headline_sentence, raw_download, read_run, run_address, show_run
from dashboard.components.submission_form import fields
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.submission import LOCAL_PERSON, publish_run, withdraw_run
from store.access import run_figures, runs, submissions
from store.models import Trained, Visibility
from store.records import RunRecord

_STATES = {
    ("scored", "private"): "private",
    ("scored", "public"): "scored, not published",
    ("published", "public"): "published",
    ("published", "private"): "published, hidden",
    ("withdrawn", "public"): "withdrawn",
    ("withdrawn", "private"): "private",
}
#: On a phone the figures come right after the name.
_NARROW_ORDER = (
    "Retriever", "NDCG old", "NDCG new", "State", "Benchmark", "K", "Method", "Coverage", "File", "Submitted",
)  # fmt: skip


def read_mine() -> pl.DataFrame:
    """The runs that this person submitted, newest first, with what ranks them: ``k``, ``old`` and ``new``."""
    with the_site().database.reading() as session:
        mine = runs.list_runs(session, person=LOCAL_PERSON)
        figures = run_figures.headline_figures(session, mine["run_id"].to_list())
    return mine.join(figures, on="run_id", how="left", maintain_order="left")


def overview(mine: pl.DataFrame) -> str | None:
    """The table of own runs; returns the id of the selected one."""
    shown = pl.DataFrame(
        {
            "Retriever": mine["retriever"],
            "Benchmark": mine["benchmark"],
            "State": [
                _STATES.get((state, seen), f"{state}, {seen}")
                for state, seen in mine.select("state", "visibility").iter_rows()
            ],
            "NDCG old": [points(value) for value in mine["old"]],
            "NDCG new": [points(value) for value in mine["new"]],
            "K": [NONE if k is None else str(k) for k in mine["k"]],
            "Method": mine["method"],
            "Coverage": [
                NONE if not total else points(answered / total) + " %"
                for answered, total in mine.select("queries_answered", "queries_total").iter_rows()
            ],
            "File": mine["raw_name"].fill_null(NONE),
            "Submitted": [day(moment) for moment in mine["created_at"]],
        }
    )
    state = st.dataframe(
        shown.to_pandas().style.map(lambda _: "font-weight: 700", subset=["Retriever"]),
        hide_index=True,
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [0]}} if mine.height == 1 else None,
        key="mine_table",
        column_config={
            name: st.column_config.TextColumn(alignment="right") for name in ("NDCG old", "NDCG new", "K", "Coverage")
        },
        column_order=_NARROW_ORDER if viewport.is_narrow() else None,
        alt="My runs",
    )
    rows = state["selection"]["rows"]
    return str(mine["run_id"][rows[0]]) if rows and rows[0] < mine.height else None


def is_gone(run: RunRecord) -> bool:
    """Whether no link opens the run: withdrawn, and without a private link."""
    return run.state == "withdrawn" and run.visibility == "public"


def actions(page: RunPage) -> None:
    """Links and state changes of one run."""
    run = page.run
    private = run.visibility == "private"
    gone = is_gone(run)
    query = {"run": run.id} | ({"token": run.private_token} if private and run.private_token else {})
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if run.state != "published" or private:
            if st.button("Publish", type="primary", icon=":material/public:", key=f"mine_publish_{run.id}"):
                publish_run(the_site(), run.id)
                st.toast("Published.")
                st.rerun()
        else:
            if st.button("Withdraw", icon=":material/undo:", key=f"mine_withdraw_{run.id}"):
                withdraw_run(the_site(), run.id)
                st.toast("Withdrawn: it is off the leaderboard and still yours.")
                st.rerun()
            if st.button("Make private", icon=":material/lock:", key=f"mine_hide_{run.id}"):
                withdraw_run(the_site(), run.id)
                with the_site().database.session() as session:
                    runs.set_visibility(session, run.id, Visibility.PRIVATE)
                st.toast("Private: only its link opens it.")
                st.rerun()
        raw_download(run, key=f"mine_{run.id}")
        if not gone:
            st.page_link("pages/run.py", label="Open the run", query_params=query)
    if gone:
        st.caption("Off the leaderboard: its link opens for nobody until it is published again.")
        return
    st.caption("Private link, for whoever should see it:" if private else "Permalink:")
    st.code(permalinks.full_address(run_address(page)), language=None)


def edit(page: RunPage) -> None:
    """The form that changes what is said about a run."""
    run = page.run
    with the_site().database.reading() as session:
        submission = submissions.of_run(session, run.id)
    given = {
        "retriever": page.retriever.name,
        "method": run.method,
        "level": run.level,
        "contract": run.contract,
        "link": run.link,
        "licence": run.licence,
        "contact": submission.contact if submission else "",
        "trained_on_benchmark": run.trained_on_benchmark,
    }
    with st.form(f"mine_form_{run.id}", border=False, enter_to_submit=False):
        said = fields(f"mine_{run.id}", given)
        save = st.form_submit_button("Save", icon=":material/save:")
    if not save:
        return
    if said is None:
        st.warning("A run needs the name of its retriever.")
        return
    with the_site().database.session() as session:
        runs.edit(
            session,
            run.id,
            retriever_name=said.retriever,
            method=said.method,
            contract=said.contract,
            trained_on_benchmark=Trained(said.trained_on_benchmark),
            link=said.link,
            licence=said.licence,
            contact=said.contact,
        )
    st.toast("Saved.")
    st.rerun()


def page() -> None:
    """Draw the page."""
    st.title("My runs", anchor=False)
    mine = read_mine()
    if mine.is_empty():
        st.markdown("Nothing is submitted yet. A run file is scored in seconds, and stored only when you say so.")
        st.page_link("pages/submit.py", label="Submit a run", icon=":material/upload_file:")
        return
    st.caption(f"{whole(mine.height)} {'run' if mine.height == 1 else 'runs'}, newest first. Select one to change it.")
    chosen = overview(mine)
    if chosen is None:
        return
    shown = read_run(chosen, person=LOCAL_PERSON)
    st.subheader(f"{plain(shown.retriever.name)} on {plain(shown.benchmark.name)}", anchor=False)
    ks = sorted(set(shown.summaries["k"].to_list())) or [10]
    k = 10 if 10 in ks else ks[0]
    st.markdown(headline_sentence(shown, k))
    actions(shown)
    with st.expander("Change what is said about it"):
        edit(shown)
    if is_gone(shown.run):
        # It has no page of its own that would show them.
        show_run(shown, k=k, key=f"mine_detail_{chosen}")


with shown_errors():
    page()
