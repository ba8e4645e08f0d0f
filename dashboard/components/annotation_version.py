"""The number of the version that an expansion makes: what the page shows is what is made, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from store.records import BenchmarkRecord

#: The version that the page showed when a button was pressed.
_SHOWN = "an_shown_version"


def next_version(record: BenchmarkRecord, records: Iterable[BenchmarkRecord], claimed: Iterable[str] = ()) -> str:
    """The next number after the parent's own that is free, from 2 where that is no number.

    Higher numbers that somebody chose change nothing, so that what a page offers stays as it is.

    Args:
        record: what is to be expanded.
        records: every stored version.
        claimed: versions of this benchmark that expansions are to make.
    """
    taken = {*(other.version for other in records if other.slug == record.slug), *claimed}
    own = int(record.version) if record.version.isdecimal() else 1
    return next(str(number) for number in count(own + 1) if str(number) not in taken)


def keep_shown(slug: str, version: str) -> None:
    """Called when a button is pressed, with what the page showed then: drawn anew, it may show another number."""
    st.session_state[_SHOWN] = (slug, version)


def refused(slug: str, version: str) -> str:
    """Why the number that the page showed is not made, in words, where it is none that is free now; else "".

    Args:
        slug: of the benchmark.
        version: the number that is free now.
    """
    of, shown = st.session_state.pop(_SHOWN, (slug, version))
    if of != slug or shown == version:
        return ""
    return (
        f"{slug}@{shown} was taken meanwhile, by another expansion or an import. Nothing was started. The next free "
        f"version is {slug}@{version}: press the button again to make it."
    )
