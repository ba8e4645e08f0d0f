"""Which theme the reader looks at; the themes themselves are in ``.streamlit/config.toml``."""

from __future__ import annotations

import streamlit as st

from dashboard.charts.palette import Ground


def ground() -> Ground:
    """Light or dark, as the browser shows it; light until it has said so."""
    return Ground.DARK if st.context.theme.get("type") == "dark" else Ground.LIGHT
