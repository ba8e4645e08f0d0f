"""One item before a reviewer: what is asked, which tools are said to answer it, and their documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard.charts.layout import shortened
from dashboard.components.document_view import side_by_side, sides
from dashboard.components.numbers import NONE
from dashboard.components.untrusted import plain
from pipeline.toolex.review_card import ReviewCard
from pipeline.toolex.validation import Bucket
from store.access.reviews import LONGEST_REASON

_TITLE = 240
_TAB = 28

#: What a reviewer chooses between: None is valid.
CHOICES: tuple[Bucket | None, ...] = (None, *Bucket)


def captions(kind: str) -> list[str]:
    """What each of ``CHOICES`` means.

    Args:
        kind: what is retrieved: ``tool`` or ``skill``.
    """
    said: Mapping[Bucket | None, str] = {
        None: f"Together the {kind}s cover everything that the query asks for, and they can work together.",
        Bucket.DECOMPOSITION: f"The steps do not say what the query says; a {kind} fits its step but not the query.",
        Bucket.NEAR_SYNONYM: f"A {kind} sounds alike but does something else, or less.",
        Bucket.COVERAGE: f"Something that the query asks for is done by none of the {kind}s.",
        Bucket.PLATFORM: f"A {kind} needs an id, token or session that the others cannot give it.",
        Bucket.OTHER: "Say what in the sentence.",
    }
    return [said[choice] for choice in CHOICES]


@dataclass(frozen=True)
class Given:
    """A verdict as the form gives it.

    Attributes:
        bucket: why it is invalid; None for valid.
    """

    bucket: Bucket | None
    reason: str

    @property
    def valid(self) -> bool:
        """Whether the combination is valid."""
        return self.bucket is None


def choice_text(bucket: Bucket | None) -> str:
    """``Valid``, or ``Invalid: incomplete coverage``."""
    return "Valid" if bucket is None else f"Invalid: {bucket.value}"


def evidence(card: ReviewCard, key: str, kind: str) -> None:
    """Everything that the verdict is about.

    Args:
        card: the item.
        key: of its widgets.
        kind: what is retrieved: ``tool`` or ``skill``.
    """
    with st.container(gap="xxsmall"):
        st.subheader(plain(shortened(card.text or card.query_id, _TITLE)), anchor=False)
        if len(card.text) > _TITLE or "\n" in card.text.strip():
            st.text(card.text)
        if card.instruction:
            st.caption(f"Instruction: {plain(card.instruction)}")
    names = shown_names(card)
    with st.container(gap="xxsmall"):
        st.markdown(f"**What the query needs, and which {kind} does it**")
        st.table(steps_table(card, names, kind), border="horizontal", hide_index=True)
        if card.others:
            listed = ", ".join(plain(names[tool]) for tool in card.others)
            st.caption(f"Also in the candidate, for no step in particular: {listed}.")
    documentation(card, names, key, kind)


def shown_names(card: ReviewCard) -> dict[str, str]:
    """Tool id → its name, with the id where two share one."""
    counts = Counter(card.names.values())
    return {
        tool: tool if not name else name if counts[name] == 1 else f"{name} ({tool})"
        for tool, name in card.names.items()
    }


def steps_table(card: ReviewCard, names: Mapping[str, str], kind: str) -> pl.DataFrame:
    """A row a sub-query; cells are Markdown of ours with the strangers' text escaped."""
    rows = [
        {
            "Step": f"{place}\\. {plain(step.text) or NONE}",
            "Ground truth": plain(names.get(step.truth, step.truth)),
            "Candidate": _candidate(step.candidate, step.truth, names, kind),
        }
        for place, step in enumerate(card.steps, start=1)
    ]
    return pl.DataFrame(rows)


def _candidate(tool: str | None, truth: str, names: Mapping[str, str], kind: str) -> str:
    if tool is None:
        return "not stored which"
    return f"the same {kind}" if tool == truth else f"**{plain(names.get(tool, tool))}**"


def documentation(card: ReviewCard, names: Mapping[str, str], key: str, kind: str) -> None:
    """The documents of both sets: where they differ side by side, a tab a step; the shared ones folded."""
    pairs = [
        (f"{place}. {shortened(names[step.candidate], _TAB)}", step.truth, step.candidate)
        for place, step in enumerate(card.steps, start=1)
        if step.candidate is not None and step.candidate != step.truth
    ]
    paired = {tool for _, truth, candidate in pairs for tool in (truth, candidate)}
    rest = [tool for tool in card.documents if tool not in paired]
    kept = [tool for tool in rest if any(tool == step.truth == step.candidate for step in card.steps)]
    single = [tool for tool in rest if tool not in kept]

    def side(tool: str) -> tuple[str, str, str]:
        role = "ground truth" if any(step.truth == tool for step in card.steps) else "candidate"
        return (names[tool], f"{'both' if tool in kept else role} · {tool}", card.documents[tool])

    st.markdown("**Documentation**")
    labels = [plain(label) for label, _, _ in pairs] + [plain(shortened(names[tool], _TAB)) for tool in single]
    places = st.tabs(labels) if len(labels) > 1 else [st.container() for _ in labels]
    for place, (_, truth, candidate) in zip(places, pairs, strict=False):
        with place:
            pair = side(truth), side(candidate)
            side_by_side(*pair, key=f"{key}_{truth}_{candidate}", marked=much_alike(*pair))
    for place, tool in zip(places[len(pairs) :], single, strict=True):
        with place:
            side_by_side(side(tool), None, key=f"{key}_{tool}")
    if kept:
        with st.expander(f"{kind.capitalize()}s that both have: " + ", ".join(plain(names[tool]) for tool in kept)):
            for tool in kept:
                side_by_side(side(tool), None, key=f"{key}_{tool}")


def much_alike(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Whether at least half of two documents is in both: else marks would be everywhere and help nobody.

    Args:
        one: name, role and documentation, as ``side_by_side`` takes them.
        other: the same of the other tool.
    """
    stretches = [stretch for side in sides(one, other) for stretch in side["segments"]]
    letters = sum(len(text) for text, _ in stretches)
    return 2 * sum(len(text) for text, differs in stretches if differs) <= letters


def judge_words(card: ReviewCard) -> None:
    """Why the judge accepted it: folded, and below the form, for it must not lead the reviewer."""
    with st.expander("What the judge wrote: look after deciding"):
        st.text(card.rationale or "It gave no reason.")


def said_of_it(reviews: Sequence[tuple[str, Given]]) -> None:
    """The two reviews, before whoever decides; nobody's name is there."""
    for title, given in reviews:
        with st.container(gap="xxsmall"):
            st.markdown(f"**{title}: {choice_text(given.bucket).lower().replace(': ', ', ')}**")
            st.text(given.reason)


def verdict_form(key: str, kind: str, given: Given | None = None, *, save: str = "Save and go on") -> Given | None:
    """The form; returns a whole verdict when it is sent, and says what is missing else.

    Args:
        key: of this item's widgets.
        kind: what is retrieved: ``tool`` or ``skill``.
        given: what was said before.
        save: label of the button.
    """
    with st.form(f"{key}_form", border=False):
        chosen = st.radio(
            "Is the candidate valid?",
            range(len(CHOICES)),
            index=None if given is None else CHOICES.index(given.bucket),
            format_func=lambda place: choice_text(CHOICES[place]),
            captions=captions(kind),
            key=f"{key}_verdict",
        )
        reason = st.text_area(
            "Why, in one sentence",
            given.reason if given else "",
            max_chars=LONGEST_REASON,
            height=84,
            key=f"{key}_reason",
        )
        sent = st.form_submit_button(save, type="primary", icon=":material/check:", width="stretch")
    if not sent:
        return None
    said = (reason or "").strip()
    missing = [*([] if chosen is not None else ["a verdict"]), *([] if said else ["a sentence that says why"])]
    if missing or chosen is None:
        st.warning(f"Nothing is saved yet: {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing.")
        return None
    return Given(CHOICES[chosen], said)
