"""Which theme the reader looks at, and what Streamlit's own theme lacks."""

from __future__ import annotations

import streamlit as st

from dashboard.charts.palette import DARK, Ground

#: Streamlit writes white on the primary colour. On a dark ground no primary colour can be read both under white and
#: as a text of its own (segmented controls, links), so what is filled with it gets the ground's colour as its text.
_DARK_FILLS = f"""<style>
button[data-testid="stBaseButton-primary"]:not(:disabled), button[data-testid="stBaseButton-primary"]:not(:disabled) *,
[data-testid="stMultiSelectTagsContainer"] [data-tag], [data-testid="stMultiSelectTagsContainer"] [data-tag] *
{{ color: {DARK.ground} !important; }}
</style>"""


def ground() -> Ground:
    """Light or dark, as the browser shows it; light until it has said so."""
    return Ground.DARK if st.context.theme.get("type") == "dark" else Ground.LIGHT


def readable_fills() -> None:
    """Make text on filled buttons and chosen options readable in the dark theme; call it once a page."""
    if ground() is Ground.DARK:
        st.html(_DARK_FILLS)
