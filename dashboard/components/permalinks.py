"""Widgets whose state is the address: every state of a page can be sent to somebody as a link.

A bound widget writes its value into the query string and reads it from there; a value equal to the widget's
default is left out. Names carry the page's prefix (``lb_metric``). What a link must always say, whatever the
defaults of a later release are (the benchmark's version), is written in even when it is the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, overload
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard.components import link_notices
from dashboard.components.viewport import end_page
from dashboard.current_site import the_site
from pipeline.jobs.public_address import public_address

BIND: Any = "query-params"


def forget_stale(key: str, options: Iterable[Any]) -> None:
    """Drop a remembered choice that is not offered any more, so that the widget falls back to its default."""
    if key in st.session_state:
        offered = list(options)
        value = st.session_state[key]
        kept = [v for v in value if v in offered] if isinstance(value, list) else value
        if kept != value or (not isinstance(value, list) and value is not None and value not in offered):
            if isinstance(value, list):
                st.session_state[key] = kept
            else:
                del st.session_state[key]


def follow_default(key: str, default: Any, *, first: bool = False) -> None:
    """Let a control that nobody has set move along when its default changes, as with another benchmark.

    An address leaves defaults out: kept at the former default, the control would show what its link does not say.
    """
    known = f"{key}_default"
    before = st.session_state.get(known)
    if before is not None and before != default and key in st.session_state and st.session_state[key] == before:
        if first:
            # Said aloud, so that the browser shows it too; with another default than the first Streamlit would warn.
            st.session_state[key] = default
        else:
            del st.session_state[key]
    st.session_state[known] = default


def start_anew(prefix: str, *, keep: Sequence[str] = ()) -> None:
    """Let a form that the reader left and came back to show what its address says, and defaults for the rest.

    Streamlit keeps the values of bound widgets for a session, but not those of described selects, whose address is
    kept by hand: without this, half of a form would come back as it was left. Call it before the form is drawn.

    Args:
        prefix: of the form's keys.
        keep: keys that are no control.
    """
    of_form = [str(key) for key in st.session_state if str(key).startswith(prefix) and key not in keep]
    written = [key.removesuffix("_written") for key in of_form if key.endswith("_written")]
    if all(st.query_params.get(key) == st.session_state[f"{key}_written"] for key in written):
        return
    for key in of_form:
        del st.session_state[key]


def _check_link(label: str, key: str, options: Iterable[Any], shown: Any, describe: Callable[[Any], Any] = str) -> None:
    """Notice words of a link that a bound control does not offer; before the control is drawn for the first time.

    Args:
        label: of the control.
        key: name of the query parameter.
        options: what is offered.
        shown: what the control shows where the link's word is no option; of a list, what it shows without the link.
        describe: how an option is written in the address.
    """
    if key in st.session_state or key not in st.query_params:
        return
    offered = {str(describe(option)): option for option in options}
    said = st.query_params.get_all(key)
    unknown = [word for word in said if word and word not in offered]
    if not unknown:
        return
    value = [offered[word] for word in said if word in offered] or shown if isinstance(shown, list) else shown
    written = ", ".join(str(describe(one)) for one in (value if isinstance(value, list) else [value]))
    link_notices.replaced(label, key, unknown, value, written)


def only_choice(label: str, key: str, value: str) -> None:
    """Stand in for a control that is not drawn, since there is one option: a link may ask for another."""
    _check_link(label, key, [value], value)
    link_notices.show_replaced(key, value)


def page_number(pages: int, key: str) -> int:
    """Which page of a list is open; draws the pages where there are several.

    Args:
        pages: how many there are.
        key: name of the query parameter.
    """
    _check_link("Page", key, range(1, pages + 1), 1)
    if int(st.session_state.get(key) or 1) > pages:
        st.session_state[key] = 1
    page = int(st.pagination(pages, key=key, bind=BIND)) if pages > 1 else 1
    link_notices.show_replaced(key, page)
    return min(page, pages)


def unknown_choice(label: str, key: str, options: Iterable[str]) -> None:
    """Say that a link names what is not offered, where the control for it is not drawn at all."""
    said = st.query_params.get(key)
    if said and said not in set(options):
        link_notices.cannot_show(label)


def pinned_select(label: str, options: Sequence[str], key: str, default: str, **how: Any) -> str:
    """A select box whose value is always in the address, the default too.

    Args:
        label: the accessible name.
        options: stable words; they are what the address says.
        key: name of the query parameter.
        default: the option to start with.
        how: further arguments of ``st.selectbox``.
    """
    forget_stale(key, options)
    if key not in st.query_params:
        # The address first: once the widget is bound, only the widget may change it.
        with suppress(StreamlitAPIException):
            st.query_params[key] = st.session_state.get(key) or default
        if st.session_state.get(key) is None:
            st.session_state[key] = default
    chosen = st.selectbox(label, options, index=None, required=True, key=key, bind=BIND, **how)
    return chosen if chosen is not None and chosen in options else default


def select(label: str, options: Sequence[Any], key: str, default: Any, **how: Any) -> Any:
    """A select box bound to the address."""
    index = list(options).index(default) if default in options else 0
    _check_link(label, key, options, options[index], how.get("format_func", str))
    forget_stale(key, options)
    follow_default(key, options[index], first=index == 0)
    chosen = st.selectbox(label, options, index=index, key=key, bind=BIND, **how)
    link_notices.show_replaced(key, chosen)
    return chosen


def described_select(
    label: str, options: Sequence[str], key: str, default: str, *, describe: Callable[[str], str],
    missing: str | None = link_notices.HIDDEN, stop: bool = True, **how: Any,
) -> str:  # fmt: skip
    """A select box that shows descriptions, while the address says the stable word behind them.

    A bound widget would write the description, which changes with the machine; so the address is kept by hand. Where
    a link names something that is not offered, nothing is chosen in its place: the box stays empty and says so, and
    the page ends there.

    Args:
        label: the accessible name.
        options: stable words.
        key: name of the query parameter.
        default: the option to start with.
        describe: what is shown for a word.
        missing: why what a link names may be missing; None where ``default`` may be shown in its place, with a notice.
        stop: end the page where a choice is missing; else the answer is empty, and the caller has to.
        how: further arguments of ``st.selectbox``.
    """
    said = st.query_params.get(key)
    written = f"{key}_written"
    absent = False
    if said != st.session_state.get(written) or key not in st.session_state:
        # Opened from a link, or the browser went back: the address leads.
        absent = bool(said) and said not in options and said != st.session_state.get(written)
        st.session_state[key] = said if said in options else default
        if absent and missing is None:
            link_notices.replaced(label, key, [str(said)], default, describe(default))
        elif absent:
            st.session_state[key] = None
    elif st.session_state[key] is None and said in options:
        st.session_state[key] = said
    forget_stale(key, options)
    # The browser remembers the description: when it changes, the choice behind it has to be said anew.
    described = tuple(describe(option) for option in options)
    if st.session_state.get(f"{key}_described") != described and key in st.session_state:
        st.session_state[key] = st.session_state[key]
    st.session_state[f"{key}_described"] = described
    index = list(options).index(default) if default in options else 0
    first: dict[str, Any] = {} if key in st.session_state else {"index": index}
    if key in st.session_state and st.session_state[key] is None:
        first = {"index": None, "required": True, "placeholder": "choose another"}
    chosen = st.selectbox(label, options, key=key, format_func=describe, **first, **how)
    if chosen is None:
        st.session_state[written] = said
        link_notices.cannot_show(label, missing or link_notices.HIDDEN)
        if stop:
            end_page()
        return ""
    if chosen != said:
        st.query_params[key] = chosen
    st.session_state[written] = chosen
    link_notices.show_replaced(key, chosen)
    return str(chosen)


def segments(label: str, options: Sequence[Any], key: str, default: Any, **how: Any) -> Any:
    """A segmented control with one choice, bound to the address."""
    _check_link(label, key, options, default, how.get("format_func", str))
    forget_stale(key, options)
    follow_default(key, default)
    chosen = st.segmented_control(label, options, default=default, required=True, key=key, bind=BIND, **how)
    chosen = default if chosen is None else chosen
    link_notices.show_replaced(key, chosen)
    return chosen


def several(label: str, options: Sequence[str], key: str, default: Sequence[str] = (), **how: Any) -> list[str]:
    """A multiselect bound to the address."""
    kept = [option for option in default if option in options]
    _check_link(label, key, options, kept, how.get("format_func", str))
    forget_stale(key, options)
    follow_default(key, kept)
    chosen = st.multiselect(label, options, default=kept or None, key=key, bind=BIND, **how)
    link_notices.show_replaced(key, chosen)
    return chosen


def text(label: str, key: str, **how: Any) -> str:
    """A line of text bound to the address."""
    return st.text_input(label, key=key, bind=BIND, **how) or ""


@overload
def number(label: str, key: str, least: int, most: int, default: int, step: int = 1, **how: Any) -> int: ...
@overload
def number(label: str, key: str, least: int, most: int, default: None, step: int = 1, **how: Any) -> int | None: ...
@overload
def number(label: str, key: str, least: float, most: float, default: float, step: float = 1.0, **how: Any) -> float: ...
@overload
def number(
    label: str, key: str, least: float, most: float, default: None, step: float = 1.0, **how: Any
) -> float | None: ...
def number(label: str, key: str, least: Any, most: Any, default: Any, step: Any = 1, **how: Any) -> Any:
    """A number bound to the address; what a link says beyond the bounds is noticed.

    Args:
        label: the accessible name.
        key: name of the query parameter.
        least: the smallest that can be chosen.
        most: the largest that can be chosen.
        default: to start with, lowered to ``most``; None for an empty field, which may be emptied again.
        step: of the arrows; of the type of the bounds.
        how: further arguments of ``st.number_input``.
    """
    shown = None if default is None else min(default, most)
    if key not in st.session_state and key in st.query_params:
        said = st.query_params.get_all(key)
        if any(word and not _within(word, least, most) for word in said):
            link_notices.replaced(label, key, said, shown, "" if shown is None else f"{shown:g}")
    chosen = st.number_input(label, least, most, shown, step, key=key, bind=BIND, **how)
    link_notices.show_replaced(key, chosen)
    return chosen


def _within(word: str, least: float, most: float) -> bool:
    """Whether a link's word is a number within the bounds."""
    try:
        value = float(word)
    except ValueError:
        return False
    return math.isfinite(value) and least <= value <= most


def switch(label: str, key: str, **how: Any) -> bool:
    """A toggle bound to the address, off by default."""
    _check_link(label, key, [True, False], False, lambda on: str(on).lower())
    chosen = st.toggle(label, key=key, bind=BIND, **how)
    link_notices.show_replaced(key, chosen)
    return chosen


def reset(values: dict[str, Any]) -> Callable[[], None]:
    """A callback that gives bound widgets these values; the address follows."""

    def apply() -> None:
        for key, value in values.items():
            st.session_state[key] = value

    return apply


def full_address(path: str) -> str:
    """A link that can be sent to somebody: the site's public address, or where this reader sees the site.

    Args:
        path: within the site, as ``address`` gives it.
    """
    settings = the_site().settings
    opened = urlsplit(st.context.url or "")
    if "public_url" in settings.model_fields_set or not opened.netloc:
        return public_address(settings) + path
    # Nobody said what the public address is: a server on another port than the usual one must not print links
    # that lead elsewhere.
    return f"{opened.scheme}://{opened.netloc}{path}"


def address(path: str, **parameters: str | Sequence[str]) -> str:
    """A link within the site, ``/run?id=…``."""
    query = urlencode({k: v for k, v in parameters.items() if v}, doseq=True)
    return f"/{path.lstrip('/')}" + (f"?{query}" if query else "")


class _Home(st.Page):
    """The first page under an address of its own.

    Streamlit's address of it is empty, so the browser reads a link to it as one to the page that it is on, as soon as
    somebody opens the link in another tab or copies it.
    """

    @property
    def url_path(self) -> str:
        """Relative, as those of the other pages: the site may live in a folder of its host."""
        return "./"


def leaderboard_link(label: str, *, icon: str, query_params: dict[str, str] | None = None) -> None:
    """A link to the leaderboard, which is the first page."""
    home = _Home("pages/leaderboard.py", default=True)
    st.page_link(home, label=label, icon=icon, query_params=query_params or {})
