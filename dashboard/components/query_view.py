"""One query on the page: what it asks, what counts as an answer and why, and what the chosen runs make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import streamlit as st

from dashboard.charts.found_steps import CONFIG, Steps, found_steps
from dashboard.charts.layout import shortened
from dashboard.components import permalinks, viewport
from dashboard.components.document_view import side_by_side
from dashboard.components.figure import draw_chart
from dashboard.components.kind_words import counted
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.open_query import OpenQuery
from dashboard.components.query_deciders import deciders
from dashboard.components.query_tables import (
    ROLES,
    VERDICTS,
    combinations_table,
    decided,
    equivalents_table,
    ranks_table,
    results_table,
    winners_table,
)
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.query_reading import ReadRun
from pipeline.scoring.compiled import EquivalentsBasis
from pipeline.scoring.query_card import Role

PREFIX = "q_"
_TITLE = 150
#: Letters of a name that a column has room for, on a phone and elsewhere.
_SHORT_NAME, _NAME = 26, 44
#: Rows that a table shows before it scrolls: a query may have hundreds of equivalents and combinations.
_MOST_ROWS = 12


def show_query(query: OpenQuery, disputes: Callable[[], None] | None = None) -> None:
    """Draw everything.

    Args:
        query: what is open.
        disputes: draws, below the verdicts, what is disputed of them.
    """
    heading(query)
    if query.runs:
        outcome(query)
    needs(query)
    combinations(query)
    if disputes is not None:
        disputes()
    if query.runs:
        first_results(query)


def heading(query: OpenQuery) -> None:
    """The query's text, its instruction and what its labels hold."""
    card = query.card
    with st.container(gap="xxsmall"):
        st.title(plain(shortened(card.text or card.query_id, _TITLE)), anchor=False)
        valid = card.combinations["combination"].count()
        equivalents = card.tools.filter(role=Role.EQUIVALENT.value).height
        counts = [
            card.query_id,
            *(part for part in (card.domain, card.source) if part),
            f"{counted(len(card.ground_truth), query.kind)} in the label",
            counted(valid, "valid combination"),
            counted(equivalents, "equivalent"),
        ]
        st.caption(plain(" · ".join(counts)))
    if len(card.text) > _TITLE:
        st.text(card.text)
    if card.instruction:
        with st.container(gap="xxsmall"):
            st.markdown("**Instruction given to retrievers**")
            st.text(card.instruction)


def outcome(query: OpenQuery) -> None:
    """Scores, the step plot and the winning combinations."""
    card = query.card
    st.subheader("What the runs make of it", anchor=False)
    st.markdown(finding(query, query.runs[0]))
    text_table(winners_table(query), label=f"Scores of this query at K = {card.k}", key="q_winners")
    if not card.tools.filter(role=Role.EQUIVALENT.value).is_empty():
        drawn = step_lines(query)
        draw_chart(
            found_steps(drawn, card.k, ground(), narrow=viewport.is_narrow()),
            config=CONFIG, key="q_steps", alt="Equivalents found by rank, one line a run",
        )  # fmt: skip
        st.caption(
            f"Each dot is an equivalent, each diamond a ground-truth {query.kind}, at the rank where the run has it."
        )
    with st.expander(f"Data of this chart, and every judged {query.kind}"):
        text_table(
            ranks_table(query),
            label=f"Rank of every labelled {query.kind} under every run",
            key="q_ranks",
            most_rows=_MOST_ROWS,
        )


def finding(query: OpenQuery, run: ReadRun) -> str:
    """What the run does with this query, in one sentence of our Markdown."""
    card, kind, name = query.card, query.kind, plain(run.name)
    steps = card.steps.filter(pl.col("run") == run.id)
    truth, equivalent = _best(steps, Role.GROUND_TRUTH), _best(steps, Role.EQUIVALENT)
    ndcg = card.winners.filter((pl.col("run") == run.id) & (pl.col("metric") == "NDCG"))
    old, new = (float(ndcg["old"][0]), float(ndcg["new"][0])) if ndcg.height else (0.0, 0.0)
    hit, near = _within(truth, card.k), _within(equivalent, card.k)
    if near and not hit:
        return (
            f"**{name} ranks an equivalent at {equivalent} and no ground-truth {kind} in its top {card.k}**: one label "
            f"scores it {points(old)}, every valid answer {points(new)} (NDCG@{card.k})."
        )
    if new > old:
        return (
            f"**Every valid answer lifts {name} from {points(old)} to {points(new)}** (NDCG@{card.k}): its best "
            f"ground-truth {kind} is at {truth or NONE}, its best equivalent at {equivalent or NONE}."
        )
    if hit:
        return f"**{name} has a ground-truth {kind} at {truth}**; equivalents add nothing to its {points(old)} here."
    return f"**{name} has neither a ground-truth {kind} nor an equivalent in its top {card.k}.**"


def _best(steps: pl.DataFrame, role: Role) -> int | None:
    """The best rank of a tool in this role; None where none was retrieved."""
    return min(steps.filter(role=role.value)["rank"].drop_nulls().to_list(), default=None)


def _within(rank: object, k: int) -> bool:
    return isinstance(rank, int) and rank <= k


def step_lines(query: OpenQuery) -> list[Steps]:
    """What the plot draws."""
    lines = []
    for run in query.runs:
        steps = query.card.steps.filter(pl.col("run") == run.id)
        named = steps.with_columns(
            name=pl.Series([query.names.get(tool, tool) for tool in steps["tool_id"]], dtype=pl.String)
        )
        depth = int(named["rank"].max() or 0)  # type: ignore[arg-type]
        lines.append(Steps(run.name, run.family, named, max(depth, query.card.k)))
    return lines


def needs(query: OpenQuery) -> None:
    """Each sub-query's equivalents, and the documentation of one of them beside the ground truth's."""
    card = query.card
    st.subheader("What counts as an answer, and why", anchor=False)
    verified = card.basis is EquivalentsBasis.VERIFIED
    st.caption(equivalents_basis(query))
    place = 0
    if card.subqueries.height > 1:
        said = [
            f"{i + 1}. {shortened(text or query.names.get(tool, tool), 110)}"
            for i, (text, tool) in enumerate(card.subqueries.select("text", "tool_id").iter_rows())
        ]
        words = [str(i + 1) for i in range(card.subqueries.height)]
        chosen = permalinks.described_select(
            "Need", words, PREFIX + "need", words[0], describe=lambda word: said[int(word) - 1]
        )
        place = int(chosen) - 1
    if card.subqueries.is_empty():
        return
    need = card.subqueries.row(place, named=True)
    if need["text"]:
        st.text(f"The need: {need['text']}")
    truth = need["tool_id"]
    if verified:
        judged = by_rank(query, truth, card.equivalents.filter(pl.col("position") == need["position"]))
        others = [tool for tool in judged["tool_id"] if tool != truth]
        if others:
            judged_tables(query, judged)
    else:
        others = card.tools.filter(role=Role.EQUIVALENT.value)["tool_id"].to_list()
        judged = card.equivalents.clear()
    documents(query, truth, list(dict.fromkeys(others)), judged)


def equivalents_basis(query: OpenQuery) -> str:
    """What an equivalent is here, and who decided it."""
    if query.card.basis is not EquivalentsBasis.VERIFIED:
        return (
            f"This benchmark has no verdicts on single {query.kind}s: equivalents are what its valid combinations "
            "hold beyond the label."
        )
    who = deciders(query.card.equivalents)
    if not who:
        return f"No {query.kind} but the label has a verdict for this query."
    return (
        f"What is an equivalent was decided by {who}, for each {query.kind} and the need that the ground-truth "
        f"{query.kind} meets."
    )


def by_rank(query: OpenQuery, truth: str, judged: pl.DataFrame) -> pl.DataFrame:
    """The ground truth first, then what any of the runs ranks highest; what none has comes last, in its own order."""
    best = [
        min((ranks[tool] for ranks in query.ranks.values() if tool in ranks), default=None)
        for tool in judged["tool_id"]
    ]
    order = pl.DataFrame({"other": judged["tool_id"] != truth, "best": pl.Series(best, dtype=pl.Int64)})
    return judged[order.select(pl.arg_sort_by("other", "best", nulls_last=True, maintain_order=True)).to_series()]


def judged_tables(query: OpenQuery, judged: pl.DataFrame) -> None:
    """What is valid for one need in a table, and below it, to be opened, what is not."""
    is_valid = pl.col("verdict") == "valid"
    valid, others = judged.filter(is_valid), judged.filter(~is_valid)
    narrow = viewport.is_narrow()
    widths = {query.kind.capitalize(): 200 if narrow else 330, "Reason": 390}
    longest = _SHORT_NAME if narrow else _NAME
    if not valid.is_empty():
        text_table(
            equivalents_table(query, valid, longest),
            key="q_equivalents",
            label=f"Valid {query.kind}s for this need",
            widths=widths,
            most_rows=_MOST_ROWS,
        )
    if not others.is_empty():
        with st.expander(f"Judged and not valid: {whole(others.height)}"):
            text_table(
                equivalents_table(query, others, longest),
                key="q_not_valid",
                label=f"{query.kind.capitalize()}s judged and not valid for this need",
                widths=widths,
                most_rows=_MOST_ROWS,
            )


def documents(query: OpenQuery, truth: str, others: Sequence[str], judged: pl.DataFrame) -> None:
    """The documentation of the ground truth and of one other tool, side by side."""
    texts = dict(query.card.tools.select("tool_id", "documentation").iter_rows())
    roles = dict(query.card.tools.select("tool_id", "role").iter_rows())
    verdicts = {row["tool_id"]: row for row in judged.iter_rows(named=True)}
    if not others:
        st.caption("Nothing but the ground truth is known to meet this need.")
        side_by_side((query.names.get(truth, truth), "ground truth", texts.get(truth) or ""), None, key="q_documents")
        return

    def described(tool: str) -> str:
        row = verdicts.get(tool)
        said = VERDICTS.get(row["verdict"], row["verdict"]) if row else ROLES[roles[tool]]
        return f"{query.names.get(tool, tool)} · {said}"

    other = permalinks.described_select(
        "Compare the ground truth's documentation with", list(others), PREFIX + "tool", others[0], describe=described
    )
    row = verdicts.get(other)
    if row is not None:
        said = f"{VERDICTS.get(row['verdict'], row['verdict'])}, decided by {decided(row['origin'], row['judge'])}"
        st.text(f"{said[:1].upper()}{said[1:]}. {row['reason'] or ''}".strip())
    side_by_side(
        (query.names.get(truth, truth), f"ground truth · {truth}", texts.get(truth) or ""),
        (query.names.get(other, other), f"{described(other).rsplit(' · ', 1)[-1]} · {other}", texts.get(other) or ""),
        key="q_documents",
    )


def combinations(query: OpenQuery) -> None:
    """The valid combinations in RRF order, and below them, to be opened, those that did not pass."""
    rows = query.card.combinations
    passed = rows.filter(pl.col("combination").is_not_null())
    failed = rows.filter(pl.col("combination").is_null())
    st.subheader("Combinations", anchor=False)
    said = (
        "The label is the only valid one."
        if passed.height == 1
        else f"{counted(passed.height, 'valid one')}, the label first, then by RRF score: the sum of 1 / (60 + rank) "
        f"over its {query.kind}s, each ranked for its own need."
    )
    if query.runs:
        said += f" Columns of runs say where they rank the combination's {query.kind}s."
    st.caption(said)
    text_table(
        combinations_table(query, passed), key="q_combinations", label="Valid combinations", most_rows=_MOST_ROWS
    )
    if not failed.is_empty():
        with st.expander(f"{whole(failed.height)} did not pass"):
            text_table(
                combinations_table(query, failed), key="q_failed_combinations",
                label="Combinations that did not pass", most_rows=_MOST_ROWS,
            )  # fmt: skip


def first_results(query: OpenQuery) -> None:
    """The first K results of every run."""
    card = query.card
    st.subheader(f"First {card.k} results" if card.k > 1 else "First result", anchor=False)
    # A single run's names have the whole width.
    longest = _SHORT_NAME if viewport.is_narrow() else max(_NAME, 110 // len(query.runs))
    text_table(
        results_table(query, longest), key="q_results", label=f"First {card.k} results of every run",
        widths={"Rank": 56},
    )  # fmt: skip
    st.caption(
        f"● ground truth, ○ equivalent, ◌ another {query.kind} of a valid combination, × judged and not valid; "
        "unmarked: nobody judged it for this query, and it counts as wrong."
    )
