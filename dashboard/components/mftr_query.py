"""One query and one tool under MFTR and Full-Doc: texts in fields, ranks in each field, penalty, both lists."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl
import streamlit as st

from dashboard import field_reading, query_reading
from dashboard.charts.layout import shortened
from dashboard.components import permalinks, viewport
from dashboard.components.document_view import side_by_side
from dashboard.components.failures import show
from dashboard.components.kind_words import counted
from dashboard.components.mftr_words import (
    METHOD_TITLES,
    charge_sentence,
    field_table,
    parameter_table,
    rank_sentence,
    reason_sentence,
    scaling_sentence,
    score_sentence,
    share_sentence,
    unused_fields,
)
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from dashboard.field_reading import LabRun
from dashboard.query_reading import Content
from pipeline import published
from pipeline.errors import MftrError
from pipeline.mftr.explain import Explanation
from pipeline.mftr.schema import Field
from store.errors import NotFound
from store.field_analysis_models import AnalysisKind
from store.records import BenchmarkRecord

PREFIX = "lab_"
_MOST_QUERIES = 300
_UNLISTED = 10**6


@dataclass(frozen=True, eq=False)
class OpenedQuery:
    """A query with its labels.

    Attributes:
        labels, equivalents: tool ids.
        kind: what is retrieved: ``tool`` or ``skill``.
        names: tool id → name, of every tool of the benchmark.
    """

    query_id: str
    kind: str
    text: str
    labels: list[str]
    equivalents: list[str]
    names: dict[str, str]


def choose_query(run: LabRun, version: Content, kind: str) -> OpenedQuery:
    """A select box of queries, those first where Full-Doc and the run differ most."""
    ordered = field_reading.differences(run)
    texts = dict(version.benchmark.queries.select("query_id", "text").iter_rows())
    changes = dict(ordered.select("query_id", "change_new").iter_rows())
    offered = ordered["query_id"].head(_MOST_QUERIES).to_list()
    for wanted in (st.query_params.get(PREFIX + "query"), st.session_state.get(PREFIX + "query")):
        if wanted in texts and wanted not in offered:
            offered.append(wanted)

    shorts = {query: shortened(" ".join((texts[query] or "").split()), 110) for query in offered}
    repeated = {short for short, times in Counter(shorts.values()).items() if times > 1}

    def describe(query_id: str) -> str:
        change = "" if run.full_doc is None else f"{points(changes.get(query_id), signed=True)}  "
        return f"{change}{shorts[query_id]}{f' · {query_id}' if shorts[query_id] in repeated else ''}"

    query_id = permalinks.described_select(
        "Query"
        if run.full_doc is None
        else "Query, the one first where MFTR and Full-Doc differ most (points of NDCG@10)",
        offered,
        PREFIX + "query",
        offered[0],
        describe=describe,
    )
    place = int(version.compiled.queries.find([query_id])[0])
    compiled = version.compiled
    ids = compiled.tools.ids
    truth = compiled.truth_tools[compiled.truth_offsets[place] : compiled.truth_offsets[place + 1]]
    outside = compiled.outside_tools[compiled.outside_offsets[place] : compiled.outside_offsets[place + 1]]
    names = dict(version.benchmark.tools.select("tool_id", "name").iter_rows())
    return OpenedQuery(
        query_id,
        kind,
        texts[query_id] or "",
        [str(ids[i]) for i in np.asarray(truth)],
        [str(ids[i]) for i in np.asarray(outside)],
        names,
    )


def choose_tool(run: LabRun, query: OpenedQuery) -> str:
    """A select box of tools: the labels, valid ones, and what either list begins with."""
    first = field_reading.top(run.full_doc_ranking, query.query_id)
    own = field_reading.top(run.ranking, query.query_id)
    offered = list(dict.fromkeys([*query.labels, *query.equivalents, *own, *first]))
    wanted = st.query_params.get(PREFIX + "tool")
    _forget_tool_of_another(f"{run.id} {query.query_id}", wanted)
    wanted = st.query_params.get(PREFIX + "tool")
    if wanted in query.names and wanted not in offered:
        offered.append(str(wanted))
    valid = [tool for tool in offered if _role(query, tool) != "not valid"]
    default = max(valid, key=lambda tool: _move(run, query, tool)) if valid else offered[0]
    names = {tool: _name(query, tool) for tool in offered}
    repeated = {name for name, times in Counter(names.values()).items() if times > 1}
    words = {
        tool: " · ".join([name, *([tool] if name in repeated and name != tool else []), _role(query, tool)])
        for tool, name in names.items()
    }
    return permalinks.described_select(
        query.kind.capitalize(), offered, PREFIX + "tool", default, describe=lambda tool: words[tool]
    )


def _forget_tool_of_another(of: str, wanted: str | None) -> None:
    """A new query starts with its own tool; one that a link or the browser's history names is kept."""
    key = PREFIX + "tool"
    before = st.session_state.get(f"{key}_of")
    st.session_state[f"{key}_of"] = of
    if before is not None and before != of and wanted == st.session_state.get(f"{key}_written"):
        st.session_state.pop(key, None)
        if key in st.query_params:
            del st.query_params[key]


def _move(run: LabRun, query: OpenedQuery, tool: str) -> float:
    """How much a reader who starts at the top notices of the difference: 1 to 2 more than 50 to 100."""
    ranks = [
        field_reading.rank_of(ranking, query.query_id, tool) or _UNLISTED
        for ranking in (run.full_doc_ranking, run.ranking)
    ]
    return abs(1 / ranks[0] - 1 / ranks[1])


def _name(query: OpenedQuery, tool: str) -> str:
    return shortened(query.names.get(tool) or tool, 70)


def _role(query: OpenedQuery, tool: str) -> str:
    if tool in query.labels:
        return "the label"
    return "equivalent" if tool in query.equivalents else "not valid"


def show_query(record: BenchmarkRecord, run: LabRun) -> None:
    """Draw it."""
    version = query_reading.content(record)
    narrow = viewport.is_narrow()
    query = choose_query(run, version, record.kind)
    tool_id = choose_tool(run, query)
    title = METHOD_TITLES.get(run.found.method, run.found.method)
    try:
        found = field_reading.explanation(run.id, query.query_id, tool_id)
    except MftrError as error:
        show(str(error))
        st.page_link(
            "pages/evaluate.py", label="Evaluate the model again", icon=":material/play_arrow:",
            query_params={"ev_benchmark": record.name, "ev_model": run.found.retriever_key},
        )  # fmt: skip
        found = None
    if found is not None:
        _ranks(found, query, run, title, narrow)
    _lists(run, query, title, tool_id, narrow)
    _texts(record, run, query, tool_id)


def _ranks(found: Explanation, query: OpenedQuery, run: LabRun, title: str, narrow: bool) -> None:
    """The paper's Table 4 of this query and tool, in words first."""
    name = query.names.get(found.tool_id) or found.tool_id
    st.markdown(
        rank_sentence(found, shortened(name, 80), title, run.full_doc is not None) + " " + reason_sentence(found)
    )
    unused = unused_fields(run.rewritten, field_reading.analyses(run.id).get(AnalysisKind.FIELDS))
    table = field_table(found, unused)
    if narrow:
        short = [name for name in ("Field", "Rank", "Share", "Score", "Scaled", "Weight") if name in table.columns]
        text_table(table.select(short), label="Score and rank by each field")
        with st.expander("Texts that matched"):
            _plain_table(table.select("Field", "The query asks", "The document says"))
    else:
        _plain_table(table)
    ranked = f"Rank: of {whole(found.tools)} {query.kind}s by this field alone, {NONE} where nothing matches."
    learned = (
        f"Weight: learned on the other folds, this query is in fold {found.fold + 1}. {share_sentence(found, unused)}"
        if run.found.parameters is not None
        else "Nothing was learned: the score is the mean of the fields."
    )
    st.caption(
        " ".join(text for text in (score_sentence(found), scaling_sentence(found, query.kind), ranked, learned) if text)
    )
    _penalty(found, query.kind)
    if run.found.retriever_key == "bm25s":
        _printed_case()


def _penalty(found: Explanation, kind: str) -> None:
    """What each parameter is charged."""
    if not found.parameters:
        st.caption("The document states no parameters, so there is nothing to charge.")
        return
    with st.expander(f"Parameters and penalty · {whole(len(found.parameters))}", expanded=found.penalty > 0):
        st.caption(charge_sentence(found))
        text_table(parameter_table(found), label=f"Parameters of the {kind} and what each is charged", most_rows=12)


def _printed_case() -> None:
    """The paper's Table 4, which is BM25's."""
    cells: dict[str, dict[str, str]] = {}
    for figure in published.figures():
        if figure.place == "MFTR Table 4":
            cells.setdefault(figure.subject, {})[figure.figure] = figure.printed
    fields = [name for name, of in cells.items() if "field rank" in of]
    if not fields:
        return
    with st.expander("The paper’s own case, as printed in its Table 4"):
        st.caption(
            "A podcast producer asks how to remove background noise; Gorilla HuggingFace, BM25, fields by a language "
            f"model. Full-Doc ranks the labelled tool {cells['Full-Doc']['final rank']}, MFTR "
            f"{cells['MFTR']['final rank']}."
        )
        text_table(
            pl.DataFrame(
                {
                    "Field": fields,
                    "Rank": [cells[name]["field rank"] for name in fields],
                    "Share": [f"{cells[name]['learned weight']} %" for name in fields],
                }
            ),
            label="Field ranks and weights of the case in the MFTR paper's Table 4",
        )


def _plain_table(frame: pl.DataFrame) -> None:
    """A table whose texts wrap; others' words escaped."""
    st.table(
        frame.with_columns(pl.col(pl.String).map_elements(plain, return_dtype=pl.String)),
        border="horizontal",
        hide_index=True,
    )


def _lists(run: LabRun, query: OpenedQuery, title: str, tool_id: str, narrow: bool) -> None:
    """The first ten of both."""
    st.subheader("The first ten of both", anchor=False)
    sides = {"Full-Doc": field_reading.top(run.full_doc_ranking, query.query_id)} if run.full_doc else {}
    sides[title] = field_reading.top(run.ranking, query.query_id)
    depth = max((len(tools) for tools in sides.values()), default=0)

    def cell(tools: list[str], place: int) -> str:
        if place >= len(tools):
            return NONE
        tool = tools[place]
        mark = {"the label": "✓ ", "equivalent": "≈ "}.get(_role(query, tool), "")
        name = shortened(_name(query, tool), 16) if narrow else _name(query, tool)
        return f"{mark}{name}{' ◂' if tool == tool_id else ''}"

    _plain_table(
        pl.DataFrame(
            {"Rank": [str(place + 1) for place in range(depth)]}
            | {name: [cell(tools, place) for place in range(depth)] for name, tools in sides.items()}
        )
    )
    found = {name: sum(_role(query, tool) != "not valid" for tool in tools) for name, tools in sides.items()}
    counts = [f"{name} has {counted(n, f'valid {query.kind}')} here" for name, n in found.items()]
    st.caption(f"✓ the label, ≈ an equivalent, ◂ the chosen {query.kind}. {'; '.join(counts)}.")


def _texts(record: BenchmarkRecord, run: LabRun, query: OpenedQuery, tool_id: str) -> None:
    """Raw beside standardized, asked beside rewritten."""
    st.subheader("What was compared", anchor=False)
    try:
        tool, asked = field_reading.tool(record, run, tool_id), field_reading.query(record, run, query.query_id)
    except NotFound as error:
        show(str(error))
        return
    name = tool.name or tool_id
    by = {"rule-based": "by rules", "llm": "by a language model", "imported": "imported"}.get(run.standardizer, "")
    side_by_side(
        (name, "Raw documentation, what Full-Doc reads", tool.documentation),
        (name, f"Four fields, {by}", _laid_out(tool.fields, tool.failure)),
        key="lab_documents",
        marked=False,
    )
    if run.standardizer == "rule-based":
        empty = [f.value for f in Field if tool.tool is not None and not _has(tool.fields, f)]
        st.caption(
            "Rules fill what the document states and leave the rest empty"
            + (f"; here empty: {', '.join(empty)}." if empty else ".")
        )
    with st.container(gap="xsmall"):
        rewriting = (
            "Needs and arguments" if run.rewritten else "Not rewritten: the query is its one need in every field"
        )
        side_by_side(
            ("The query", "As it was asked", query.text),
            ("In fields", rewriting, _laid_out(asked.fields, asked.failure)),
            key="lab_queries",
            marked=False,
        )


def _has(fields: dict[str, object] | None, field: Field) -> bool:
    return bool((fields or {}).get(field.value))


def _laid_out(fields: dict[str, object] | None, failure: str) -> str:
    if failure:
        return f"failed: {failure}"
    return NONE if fields is None else json.dumps(fields, ensure_ascii=False)
