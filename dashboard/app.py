"""The pages of the site and the menu on top; each page is a script of its own under ``pages/``."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from dashboard.components import link_notices, viewport

PAGES = "pages"

st.set_page_config(
    page_title="EquiRank",
    layout="wide",
    menu_items={
        "About": "EquiRank scores tool and skill retrievers against every valid answer, not only the annotated one."
    },
)

menu = {
    "": [st.Page(f"{PAGES}/leaderboard.py", title="Leaderboard", default=True)],
    "Explore": [
        st.Page(f"{PAGES}/old_vs_new.py", title="Old vs new", url_path="old-vs-new"),
        st.Page(f"{PAGES}/illusion.py", title="Fine-tuning illusion", url_path="illusion"),
        st.Page(f"{PAGES}/compare.py", title="Compare", url_path="compare"),
        st.Page(f"{PAGES}/score_and_cost.py", title="Score and cost", url_path="score-and-cost"),
        st.Page(f"{PAGES}/equivalent_ranks.py", title="Equivalent ranks", url_path="equivalent-ranks"),
        st.Page(f"{PAGES}/queries.py", title="Queries", url_path="queries"),
        st.Page(f"{PAGES}/mftr_lab.py", title="MFTR lab", url_path="mftr-lab"),
    ],
    "Contribute": [
        st.Page(f"{PAGES}/submit.py", title="Submit a run", url_path="submit"),
        st.Page(f"{PAGES}/evaluate.py", title="Evaluate a model", url_path="evaluate"),
        st.Page(f"{PAGES}/my_runs.py", title="My runs", url_path="my-runs"),
        st.Page(f"{PAGES}/jobs.py", title="Jobs", url_path="jobs"),
    ],
    "Benchmarks": [
        st.Page(f"{PAGES}/benchmarks.py", title="Benchmark cards", url_path="benchmarks"),
        st.Page(f"{PAGES}/annotate.py", title="Annotate", url_path="annotate"),
    ],
    "About": [
        st.Page(f"{PAGES}/about.py", title="About the method", url_path="about"),
        st.Page(f"{PAGES}/run.py", title="A run", url_path="run", visibility="hidden"),
        st.Page(f"{PAGES}/retriever.py", title="A retriever", url_path="retriever", visibility="hidden"),
        st.Page(f"{PAGES}/review.py", title="A review", url_path="review", visibility="hidden"),
    ],
}

page = st.navigation(menu, position="top")
link_notices.open_page(page.url_path)
try:
    page.run()
except StopException:
    viewport.watch()
    raise
viewport.watch()
