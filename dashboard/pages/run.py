"""One run: its permalink opens here; a private run's link carries its token."""

from __future__ import annotations

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.failures import show, shown_errors
from dashboard.components.query_links import compare_link, explaining_links
from dashboard.components.run_detail import headline_sentence, read_run, retriever_link, run_title, show_run
from dashboard.components.run_exports import show_exports
from dashboard.components.untrusted import plain
from pipeline.formats.method_labels import method_title
from store.errors import NotFound


def page() -> None:
    """Draw the page."""
    run_id, token = st.query_params.get("run"), st.query_params.get("token")
    if not run_id:
        st.title("No run chosen", anchor=False)
        st.markdown("Open a run from the leaderboard, or follow its permalink.")
        permalinks.leaderboard_link(label="To the leaderboard", icon=":material/arrow_back:")
        return
    try:
        shown = read_run(run_id, token=token)
    except NotFound as error:
        st.title("This run cannot be shown", anchor=False)
        show(str(error))
        st.markdown(
            "A private run opens only with its whole link, token included. A withdrawn run has no page until it is "
            "published again; who submitted it finds it under *My runs*."
        )
        permalinks.leaderboard_link(label="To the leaderboard", icon=":material/arrow_back:")
        st.page_link("pages/my_runs.py", label="My runs", icon=":material/list:")
        return
    if shown.run.visibility == "private":
        st.info("This run is private: it is in no list, and whoever has this link can read it.")
    elif shown.run.state != "published":
        st.info(f"This run is {shown.run.state} and not on the leaderboard.")
    with st.container(gap="xxsmall"):
        st.title(plain(run_title(shown)), anchor=False)
        st.caption(
            f"{plain(method_title(shown.run.method))} on {plain(shown.benchmark.title)} ({plain(shown.benchmark.name)})"
        )
    public = shown.run.visibility == "public" and shown.run.state == "published"
    with st.container(horizontal=True, gap="medium"):
        retriever_link(shown)
        explaining_links(shown.benchmark, shown.run)
        if public:
            compare_link(shown.benchmark, shown.run.id)
    if not public:
        st.caption(
            "These pages open with this run chosen for whoever has its link. Comparing it with another run, and its "
            "place on the leaderboard, come with publishing it."
            if shown.run.ranking_artifact is not None
            else "Comparing it with another run, and its place on the leaderboard, come with publishing it."
        )
    ks = sorted(set(shown.summaries["k"].to_list())) or [10]
    k = 10 if 10 in ks else ks[0]
    if len(ks) > 1:
        k = permalinks.segments(
            "Cutoff K", ks, "run_k", k, format_func=lambda cutoff: f"@{cutoff}", label_visibility="collapsed"
        )
    sentence = headline_sentence(shown, int(k))
    if sentence:
        st.markdown(sentence)
    show_run(shown, k=int(k), key="run")
    show_exports(shown)
    if public:
        permalinks.leaderboard_link(
            label=f"See it on the leaderboard of {plain(shown.benchmark.name)}",
            icon=":material/leaderboard:",
            query_params={"lb_benchmark": shown.benchmark.name, "run": shown.run.id},
        )


with shown_errors():
    page()
