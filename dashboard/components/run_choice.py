"""Choosing runs to look at: names to read, run ids in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dashboard import query_reading
from dashboard.query_reading import ReadRun
from store.records import BenchmarkRecord

MOST_RUNS = 6
#: The address may carry the token of a private run that its reader was given, as on the run's own page.
TOKEN = "token"


def choose_runs(
    record: BenchmarkRecord, key: str, *, at_first: int, label: str = "Runs", **how: Any
) -> list[ReadRun]:  # fmt: skip
    """A multiselect of runs with rankings, the board's best ones chosen at first.

    Args:
        record: the benchmark version.
        key: name of the query parameter, once a run.
        at_first: how many are chosen when the address names none.
        label: the accessible name.
        how: further arguments of ``st.multiselect``.
    """
    offered = query_reading.offered_runs(record, st.query_params.get_all(key), st.query_params.get(TOKEN))
    if not offered:
        return []
    chosen = described_several(
        label, list(offered), key, list(offered)[:at_first], describe=lambda run_id: offered[run_id].name,
        of=str(record.id), max_selections=MOST_RUNS, placeholder="choose runs", **how,
    )  # fmt: skip
    return [offered[run_id] for run_id in chosen]


def described_several(
    label: str,
    options: Sequence[str],
    key: str,
    default: Sequence[str],
    *,
    describe: Callable[[str], str],
    of: str,
    **how: Any,
) -> list[str]:
    """A multiselect that shows descriptions, while the address says the stable words behind them.

    Args:
        label: the accessible name.
        options: stable words.
        key: name of the query parameter.
        default: chosen when the address names none of the options.
        describe: what is shown for a word.
        of: what the options belong to; another one starts with its own choice.
        how: further arguments of ``st.multiselect``.
    """
    said = st.query_params.get_all(key)
    widget, written = f"{key}_{of}", f"{key}_{of}_written"
    if widget not in st.session_state or said != st.session_state.get(written):
        # Opened from a link, or the browser went back: the address leads.
        st.session_state[widget] = [word for word in dict.fromkeys(said) if word in options] or list(default)
    else:
        st.session_state[widget] = [word for word in st.session_state[widget] if word in options]
    chosen = st.multiselect(label, options, key=widget, format_func=describe, **how)
    if chosen != said:
        st.query_params[key] = chosen
    st.session_state[written] = list(chosen)
    return list(chosen)
