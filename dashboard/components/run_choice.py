"""Choosing runs to look at: names to read, run ids in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dashboard import query_reading
from dashboard.components import link_notices
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
        absent = len(set(st.query_params.get_all(key)))
        if absent:
            link_notices.left_out(label, absent)
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
        default: chosen when the address names nothing; nothing replaces what it names and is not offered.
        describe: what is shown for a word.
        of: what the options belong to; another one starts with its own choice.
        how: further arguments of ``st.multiselect``.
    """
    said = st.query_params.get_all(key)
    widget, written, last = f"{key}_{of}", f"{key}_{of}_written", f"{key}_last_written"
    missing = f"{widget}_missing"
    if widget not in st.session_state or said != st.session_state.get(written):
        # Opened from a link, or the browser went back: the address leads.
        kept = [word for word in dict.fromkeys(said) if word in options]
        # What was chosen for another benchmark comes from no link.
        absent = len(set(said) - set(kept)) if said != st.session_state.get(last) else 0
        st.session_state[missing] = (kept, absent)
        st.session_state[widget] = kept if kept or absent else list(default)
    else:
        st.session_state[widget] = [word for word in st.session_state[widget] if word in options]
    chosen = st.multiselect(label, options, key=widget, format_func=describe, **how)
    kept, absent = st.session_state.get(missing) or ([], 0)
    if absent and chosen == kept:
        # The address stays as it was opened: sent on, it says the same.
        link_notices.left_out(label, absent)
        st.session_state[written] = st.session_state[last] = said
        return list(chosen)
    st.session_state[missing] = None
    if chosen != said:
        st.query_params[key] = chosen
    st.session_state[written] = st.session_state[last] = list(chosen)
    return list(chosen)
