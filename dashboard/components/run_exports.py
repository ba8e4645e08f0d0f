"""What a run's page gives to take away: how to cite it, and the card that its figures can be made again from."""

from __future__ import annotations

import json

import streamlit as st

from dashboard.components.run_detail import RunPage
from dashboard.current_site import the_site
from pipeline.jobs.citations import benchmark_address, run_bibtex
from pipeline.jobs.run_card import card_text, run_address, run_card


def show_exports(page: RunPage) -> None:
    """Two expanders: the card with its downloads, and BibTeX."""
    site, run = the_site(), page.run
    with st.expander("Reproduce this run"):
        card = run_card(site, run)
        text = card_text(card)
        st.caption("Everything that its figures were made from. The same is at `/api/v1/runs/…/card`.")
        st.code(text, language=None, wrap_lines=True)
        with st.container(horizontal=True):
            st.download_button(
                "Card as JSON",
                data=lambda: json.dumps(card, ensure_ascii=False, allow_nan=False, indent=2).encode(),
                file_name=f"equirank-run-{run.id}-card.json",
                mime="application/json",
                icon=":material/download:",
                on_click="ignore",
                key="run_card_json",
            )
            st.download_button(
                "Card as text",
                data=text.encode(),
                file_name=f"equirank-run-{run.id}-card.txt",
                mime="text/plain",
                icon=":material/download:",
                on_click="ignore",
                key="run_card_text",
            )
    with st.expander("Cite this run"):
        cited = run_bibtex(
            run,
            page.retriever,
            page.benchmark,
            address=run_address(site, run),
            benchmark_address=benchmark_address(site, page.benchmark),
        )
        st.code(cited, language="bibtex", wrap_lines=True)
