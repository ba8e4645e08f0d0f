"""One query on the page: what it asks, what counts as an answer and why, and what the chosen runs make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard.charts.found_steps import CONFIG, Steps, found_steps
from dashboard.charts.layout import shortened, told_apart
from dashboard.components import permalinks, viewport
from dashboard.components.document_view import side_by_side
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.query_reading import ReadRun
from pipeline.scoring.compiled import EquivalentsBasis
from pipeline.scoring.query_card import QueryCard, Role

PREFIX = "q_"
_TITLE = 150
_HEAD = 24

ROLES = {
    Role.GROUND_TRUTH.value: "ground truth",
    Role.EQUIVALENT.value: "equivalent",
    Role.IN_COMBINATION.value: "in a valid combination",
    Role.REJECTED.value: "judged, not valid",
    Role.UNJUDGED.value: "not judged",
}
_MARKS = {
    Role.GROUND_TRUTH.value: "●",
    Role.EQUIVALENT.value: "○",
    Role.IN_COMBINATION.value: "◌",
    Role.REJECTED.value: "×",
    Role.UNJUDGED.value: "",
}
_VERDICTS = {"valid": "valid", "invalid": "not valid", "unsure": "unsure"}
_ORIGINS = {
    "ground_truth": "the label",
    "judged": "a judge",
    "rule": "a rule",
    "human": "a person",
    "executed": "a call",
}
_YES = {True: "yes", False: "no", None: NONE}


@dataclass(frozen=True, eq=False)
class OpenQuery:
    """A query that is being looked at.

    Attributes:
        names: tool id → what it is called here: its name, with the id where two share one.
        heads: run id → its name as the head of a column, short enough to leave room for the figures.
        ranks: run id → tool id → rank, for the tools of the labels.
    """

    card: QueryCard
    runs: tuple[ReadRun, ...]
    names: Mapping[str, str]
    ranks: Mapping[str, Mapping[str, int]]
    heads: Mapping[str, str]

    def rank(self, run: ReadRun, tool: str) -> str:
        """The rank as text."""
        found = self.ranks.get(run.id, {}).get(tool)
        return NONE if found is None else str(found)

    def listed(self, tools: Sequence[str]) -> str:
        """The names of a combination's tools."""
        return " + ".join(self.names.get(tool, tool) for tool in tools)


def opened(card: QueryCard, runs: Sequence[ReadRun]) -> OpenQuery:
    """Names and ranks looked up once."""
    pairs = card.tools.select("tool_id", "name").rows()
    counts = Counter(name for _, name in pairs)
    names = {tool: tool if not name else name if counts[name] == 1 else f"{name} ({tool})" for tool, name in pairs}
    ranks: dict[str, dict[str, int]] = {run.id: {} for run in runs}
    for run_id, tool, rank in card.ranks.drop_nulls("rank").select("run", "tool_id", "rank").iter_rows():
        ranks[run_id][tool] = rank
    return OpenQuery(card, tuple(runs), names, ranks, column_heads(runs))


def column_heads(runs: Sequence[ReadRun]) -> dict[str, str]:
    """Run id → its name cut to the width of a column; no two are equal, or one column would take another's place."""
    heads = told_apart([run.name for run in runs], _HEAD)
    if len(set(heads)) < len(heads):
        heads = [f"{place}: {head}" for place, head in enumerate(heads, start=1)]
    return dict(zip((run.id for run in runs), heads, strict=True))


def show_query(query: OpenQuery, disputes: Callable[[], None] | None = None) -> None:
    """Draw everything.

    Args:
        query: what is open.
        disputes: draws, below the verdicts, what is disputed of them.
    """
    heading(query.card)
    if query.runs:
        outcome(query)
    needs(query)
    combinations(query)
    if disputes is not None:
        disputes()
    if query.runs:
        first_results(query)


def heading(card: QueryCard) -> None:
    """The query's text, its instruction and what its labels hold."""
    with st.container(gap="xxsmall"):
        st.title(plain(shortened(card.text or card.query_id, _TITLE)), anchor=False)
        valid = card.combinations["combination"].count()
        equivalents = card.tools.filter(role=Role.EQUIVALENT.value).height
        counts = [
            card.query_id,
            *(part for part in (card.domain, card.source) if part),
            f"{_counted(len(card.ground_truth), 'tool')} in the label",
            _counted(valid, "valid combination"),
            _counted(equivalents, "equivalent"),
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
        st.caption("Each dot is an equivalent, each diamond a ground-truth tool, at the rank where the run has it.")
    with st.expander("Data of this chart, and every judged tool"):
        text_table(ranks_table(query), label="Rank of every labelled tool under every run", key="q_ranks")


def finding(query: OpenQuery, run: ReadRun) -> str:
    """What the run does with this query, in one sentence of our Markdown."""
    card, name = query.card, plain(run.name)
    steps = card.steps.filter(pl.col("run") == run.id)
    truth, equivalent = _best(steps, Role.GROUND_TRUTH), _best(steps, Role.EQUIVALENT)
    ndcg = card.winners.filter((pl.col("run") == run.id) & (pl.col("metric") == "NDCG"))
    old, new = (float(ndcg["old"][0]), float(ndcg["new"][0])) if ndcg.height else (0.0, 0.0)
    hit, near = _within(truth, card.k), _within(equivalent, card.k)
    if near and not hit:
        return (
            f"**{name} ranks an equivalent at {equivalent} and no ground-truth tool in its top {card.k}**: one label "
            f"scores it {points(old)}, every valid answer {points(new)} (NDCG@{card.k})."
        )
    if new > old:
        return (
            f"**Every valid answer lifts {name} from {points(old)} to {points(new)}** (NDCG@{card.k}): its best "
            f"ground-truth tool is at {truth or NONE}, its best equivalent at {equivalent or NONE}."
        )
    if hit:
        return f"**{name} has a ground-truth tool at {truth}**; equivalents add nothing to its {points(old)} here."
    return f"**{name} has neither a ground-truth tool nor an equivalent in its top {card.k}.**"


def _best(steps: pl.DataFrame, role: Role) -> int | None:
    """The best rank of a tool in this role; None where none was retrieved."""
    return min(steps.filter(role=role.value)["rank"].drop_nulls().to_list(), default=None)


def _within(rank: object, k: int) -> bool:
    return isinstance(rank, int) and rank <= k


def winners_table(query: OpenQuery) -> pl.DataFrame:
    """Each run's metrics, old and new, with the combination that wins."""
    rows = []
    for run in query.runs:
        for row in query.card.winners.filter(pl.col("run") == run.id).iter_rows(named=True):
            number = row["combination"]
            rows.append(
                {
                    "Run": query.heads[run.id],
                    "Metric": f"{row['metric']}@{query.card.k}",
                    "Old": points(row["old"]),
                    "New": points(row["new"]),
                    "Lift": points(row["new"] - row["old"], signed=True),
                    "Best combination": f"{'label' if number == 0 else number}: {query.listed(row['tool_ids'])}",
                }
            )
    return pl.DataFrame(rows)


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


def ranks_table(query: OpenQuery) -> pl.DataFrame:
    """Every tool of a label with its rank under every run."""
    tools = query.card.tools.filter(pl.col("role") != Role.UNJUDGED.value)
    return pl.DataFrame(
        {
            "Tool": [query.names[tool] for tool in tools["tool_id"]],
            "Id": tools["tool_id"],
            "What it is": [ROLES[role] for role in tools["role"]],
            **{query.heads[run.id]: [query.rank(run, tool) for tool in tools["tool_id"]] for run in query.runs},
        }
    )


def needs(query: OpenQuery) -> None:
    """Each sub-query's equivalents, and the documentation of one of them beside the ground truth's."""
    card = query.card
    st.subheader("What counts as an answer, and why", anchor=False)
    verified = card.basis is EquivalentsBasis.VERIFIED
    st.caption(
        "Equivalents were judged one by one against the need that the ground-truth tool meets."
        if verified
        else "This benchmark has no verdicts on single tools: equivalents are what its valid combinations hold beyond "
        "the label."
    )
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
        judged = card.equivalents.filter(pl.col("position") == need["position"])
        others = [tool for tool in judged["tool_id"] if tool != truth]
        if others:
            text_table(
                equivalents_table(query, judged),
                key="q_equivalents",
                label="Tools judged for this need",
                widths={"Tool": 200, "Reason": 520},
            )
    else:
        others = card.tools.filter(role=Role.EQUIVALENT.value)["tool_id"].to_list()
        judged = card.equivalents.clear()
    documents(query, truth, list(dict.fromkeys(others)), judged)


def equivalents_table(query: OpenQuery, judged: pl.DataFrame) -> pl.DataFrame:
    """The tools judged for one need, with verdict, judge, reason and ranks."""
    return pl.DataFrame(
        {
            "Tool": [query.names.get(tool, tool) for tool in judged["tool_id"]],
            "Verdict": [_VERDICTS.get(word, word) for word in judged["verdict"]],
            **{query.heads[run.id]: [query.rank(run, tool) for tool in judged["tool_id"]] for run in query.runs},
            "Decided by": [_decided(*row) for row in judged.select("origin", "judge").iter_rows()],
            "Reason": judged["reason"].fill_null(""),
        }
    )


def _decided(origin: str | None, judge: str | None) -> str:
    said = _ORIGINS.get(origin or "", origin or "")
    return ": ".join(part for part in (said, judge if judge and origin != "ground_truth" else "") if part)


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
        said = _VERDICTS.get(row["verdict"], row["verdict"]) if row else ROLES[roles[tool]]
        return f"{query.names.get(tool, tool)} · {said}"

    other = permalinks.described_select(
        "Compare the ground truth's documentation with", list(others), PREFIX + "tool", others[0], describe=described
    )
    row = verdicts.get(other)
    if row is not None:
        said = f"{_VERDICTS.get(row['verdict'], row['verdict'])}, decided by {_decided(row['origin'], row['judge'])}"
        st.text(f"{said[:1].upper()}{said[1:]}. {row['reason'] or ''}".strip())
    side_by_side(
        (query.names.get(truth, truth), f"ground truth · {truth}", texts.get(truth) or ""),
        (query.names.get(other, other), f"{described(other).rsplit(' · ', 1)[-1]} · {other}", texts.get(other) or ""),
        key="q_documents",
    )


def combinations(query: OpenQuery) -> None:
    """All combinations in RRF order, the invalid ones last."""
    card = query.card
    failed = card.combinations["combination"].null_count()
    st.subheader("Combinations", anchor=False)
    valid = card.combinations.height - failed
    said = (
        "The label is the only valid one."
        if valid == 1
        else f"{_counted(valid, 'valid one')}, the label first, then by RRF score: the sum of 1 / (60 + rank) over its "
        "tools, each ranked for its own need."
    )
    if failed:
        said += f" {whole(failed)} more did not pass and {'counts' if failed == 1 else 'count'} for nothing."
    if query.runs:
        said += " Columns of runs say where they rank the combination's tools."
    st.caption(said)
    text_table(combinations_table(query), key="q_combinations", label="Combinations")


def combinations_table(query: OpenQuery) -> pl.DataFrame:
    """One row a combination."""
    rows = query.card.combinations
    wins: dict[int, list[str]] = {}
    for run in query.runs:
        won = query.card.winners.filter(pl.col("run") == run.id)
        for number in won["combination"].unique(maintain_order=True):
            metrics = ", ".join(won.filter(pl.col("combination") == number)["metric"])
            wins.setdefault(number, []).append(f"{query.heads[run.id]}: {metrics}" if len(query.runs) > 1 else metrics)
    columns: dict[str, list[str]] = {
        "#": ["label" if n == 0 else NONE if n is None else str(n) for n in rows["combination"]],
        "Tools": [query.listed(tools) for tools in rows["tool_ids"]],
        "Verdict": [_VERDICTS.get(word or "", word or "") for word in rows["verdict"]],
    }
    for run in query.runs:
        columns[query.heads[run.id]] = [
            ", ".join(query.rank(run, tool) for tool in tools) for tools in rows["tool_ids"]
        ]
    if query.runs:
        columns["Best for"] = ["; ".join(wins.get(n, [])) for n in rows["combination"]]
    optional = {
        "RRF": [NONE if score is None else f"{score:.4f}" for score in rows["rrf_score"]],
        "Covers the query": [_YES[flag] for flag in rows["coverage"]],
        "Fits together": [_YES[flag] for flag in rows["dependency_consistent"]],
        "Judge": rows["judge"].fill_null("").to_list(),
        "Reason": rows["reason"].fill_null("").to_list(),
    }
    columns |= {name: texts for name, texts in optional.items() if any(text not in ("", NONE) for text in texts)}
    return pl.DataFrame(columns)


def first_results(query: OpenQuery) -> None:
    """The first K results of every run."""
    card = query.card
    st.subheader(f"First {card.k} results" if card.k > 1 else "First result", anchor=False)
    text_table(results_table(query), key="q_results", label=f"First {card.k} results of every run")
    st.caption(
        "● ground truth, ○ equivalent, ◌ another tool of a valid combination, × judged and not valid; unmarked: nobody "
        "judged it for this query, and it counts as wrong."
    )


def results_table(query: OpenQuery) -> pl.DataFrame:
    """One row a rank, one column a run; the mark says what the tool is to the query."""
    columns: dict[str, list[str]] = {"Rank": [str(rank) for rank in range(1, query.card.k + 1)]}
    for run in query.runs:
        cells = [""] * query.card.k
        rows = query.card.lists.filter(pl.col("run") == run.id)
        for rank, tool, role in rows.select("rank", "tool_id", "role").iter_rows():
            cells[rank - 1] = f"{_MARKS[role]} {query.names.get(tool, tool)}".strip()
        columns[query.heads[run.id]] = cells
    return pl.DataFrame(columns)


def _counted(count: int, what: str) -> str:
    return f"{whole(count)} {what}" if count == 1 else f"{whole(count)} {what}s"
