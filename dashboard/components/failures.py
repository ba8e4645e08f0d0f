"""How errors reach a reader: ours as their message, any other as a sentence with a number to find it in the log."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dashboard.components.untrusted import plain
from dashboard.components.viewport import end_page
from pipeline.errors import EquiRankError
from store.errors import StoreError

log = logging.getLogger("equirank.dashboard")


def message_of(error: Exception) -> str:
    """What to show for ``error``; the traceback of an unforeseen one goes to the log only."""
    if isinstance(error, EquiRankError | StoreError):
        return str(error)
    number = secrets.token_hex(4)
    log.error("page failed (%s)", number, exc_info=error)
    return f"Something went wrong on our side. Nothing was changed. The log has it under number {number}."


def show(message: str) -> None:
    """An error box with several lines of plain text; what others wrote in it is not read as markup."""
    st.error("  \n".join(plain(line) for line in message.splitlines() if line.strip()), icon=":material/error:")


def show_failure(error: Exception) -> bool:
    """Show an exception that no page caught; True keeps Streamlit's own display away."""
    show(message_of(error))
    return True


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show our own errors where they happen and stop the page there; others go on to ``show_failure``."""
    try:
        yield
    except (EquiRankError, StoreError) as error:
        show(str(error))
        end_page()
