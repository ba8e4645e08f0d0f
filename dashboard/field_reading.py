"""What the MFTR lab reads: runs over fields, why a tool has its rank, learned weights, stored analyses.

Nothing here loads a model: embeddings come from the cache, figures from jobs. Kept by what is stored, never by frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard import reading
from dashboard.current_site import the_site
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs.benchmark_library import load_compiled
from pipeline.jobs.fields import explaining as mftr_explaining
from pipeline.jobs.fields import reading as mftr_reading
from pipeline.jobs.fields.reading import FieldRun, QueryInFields, ToolInFields
from pipeline.mftr.explain import Explanation
from pipeline.scoring.kernel import METRICS, evaluate
from pipeline.scoring.query_changes import query_changes
from store.access import field_analyses, mftr, retrievers, runs
from store.access.mftr import ParameterSet
from store.errors import NotFound
from store.records import BenchmarkRecord

#: The depths of the paper's Figure 3 and between.
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
#: Rivals whose recall is drawn beside a run's, in the order of the paper's table.
METHODS = ("full-doc", "easytool", "pluto", "onlinerag", "mftr")
#: Results of a list that the page shows.
_TOP = 10


@dataclass(frozen=True, eq=False)
class LabRun:
    """A run over fields and the Full-Doc run of the same model and encoding.

    Attributes:
        full_doc: id of that run; None where it is not published.
        rewritten: whether a language model rewrote the queries.
        full_doc_ranking, full_doc_scores: artifacts; "" likewise.
    """

    found: FieldRun
    family: str
    rewritten: bool
    standardizer: str
    ranking: str
    scores: str
    full_doc: str | None
    full_doc_ranking: str
    full_doc_scores: str

    @property
    def id(self) -> str:
        """Of the run."""
        return self.found.run_id


def lab_runs(record: BenchmarkRecord) -> dict[str, LabRun]:
    """The published runs over fields of a benchmark version, by id: MFTR first, then its variants."""
    return _lab_runs(the_site().database.url, record.name, reading.board_stamp(record.id))


@st.cache_resource(max_entries=32, show_spinner=False)
def _lab_runs(place: str, name: str, stamp: str) -> dict[str, LabRun]:
    del place, stamp
    site = the_site()
    found: dict[str, LabRun] = {}
    listed = mftr_reading.field_runs_of(site, name)
    with site.database.reading() as session:
        for run in sorted(listed, key=lambda run: (run.method != "mftr", run.retriever, run.preset)):
            own = runs.get(session, run.run_id)
            base = runs.get(session, run.full_doc_run) if run.full_doc_run else None
            if not own.ranking_artifact or not own.per_query_artifact:
                continue
            tools, queries = mftr.field_texts(session, run.tools), mftr.field_texts(session, run.queries)
            found[run.run_id] = LabRun(
                run,
                retrievers.get_by_id(session, own.retriever_id).family or "",
                queries.source != "original query",
                tools.source,
                own.ranking_artifact,
                own.per_query_artifact,
                base.id if base else None,
                (base.ranking_artifact or "") if base else "",
                (base.per_query_artifact or "") if base else "",
            )
    return found


def differences(run: LabRun) -> pl.DataFrame:
    """Every query with NDCG@10 under Full-Doc and under the run, the greatest difference first.

    Returns:
        ``query_id``, ``domain`` and ``base_…``, ``tuned_…``, ``change_…`` of both views; without a Full-Doc run the
        base is 0.
    """
    return _differences(run.full_doc_scores, run.scores)


@st.cache_resource(max_entries=32, show_spinner=False)
def _differences(base: str, own: str) -> pl.DataFrame:
    artifacts = the_site().artifacts
    columns = ["query_id", "domain", "source", "old_NDCG@10", "new_NDCG@10"]
    after = artifacts.get_frame(own, columns)
    before = artifacts.get_frame(base, columns) if base else after.with_columns(pl.col("^(old|new)_.*$") * 0.0)
    found = query_changes(before, after, "NDCG", 10)
    size = pl.max_horizontal(pl.col("change_new").abs(), pl.col("change_old").abs())
    # Of equal differences the one that every valid answer sees, then gains before losses: the page starts there.
    order = [size, pl.col("change_new").abs(), pl.col("change_new"), pl.col("query_id")]
    return found.sort(order, descending=[True, True, True, False])


def mean_change(run: LabRun) -> float:
    """Mean size of the differences, by every valid answer."""
    return float(differences(run)["change_new"].abs().mean() or 0.0)  # type: ignore[arg-type]


def top(ranking: str, query_id: str, depth: int = _TOP) -> list[str]:
    """The first tools of a ranking for a query, best first."""
    if not ranking:
        return []
    scanned = the_site().artifacts.scan(ranking).filter(pl.col("query_id") == query_id, pl.col("rank") <= depth)
    return list(scanned.sort("rank").collect()["tool_id"])


def rank_of(ranking: str, query_id: str, tool_id: str) -> int | None:
    """Where a ranking has a tool; None where it is not in the list."""
    if not ranking:
        return None
    of = (pl.col("query_id") == query_id) & (pl.col("tool_id") == tool_id)
    found = the_site().artifacts.scan(ranking).filter(of).select("rank").collect()
    return int(found["rank"][0]) if found.height else None


def explanation(run_id: str, query_id: str, tool_id: str) -> Explanation:
    """Why the run gives the tool its rank; raises as ``pipeline.jobs.fields.explaining.explain_tool``."""
    return _explanation(the_site().database.url, run_id, query_id, tool_id)


@st.cache_resource(max_entries=512, show_spinner=False)
def _explanation(place: str, run_id: str, query_id: str, tool_id: str) -> Explanation:
    return mftr_explaining.explain_in(the_site(), _work(place, run_id), query_id, tool_id)


@st.cache_resource(max_entries=4, show_spinner="Reading the run's fields")
def _work(place: str, run_id: str) -> mftr_explaining.RunWork:
    del place
    return mftr_explaining.run_work(the_site(), run_id)


@st.cache_resource(max_entries=256, show_spinner=False)
def _tool(place: str, name: str, texts: str, tool_id: str) -> ToolInFields:
    del place
    return mftr_reading.tool_in_fields(the_site(), name, texts, tool_id)


def tool(record: BenchmarkRecord, run: LabRun, tool_id: str) -> ToolInFields:
    """A tool beside its documentation."""
    return _tool(the_site().database.url, record.name, run.found.tools, tool_id)


@st.cache_resource(max_entries=256, show_spinner=False)
def _query(place: str, name: str, texts: str, query_id: str) -> QueryInFields:
    del place
    return mftr_reading.query_in_fields(the_site(), name, texts, query_id)


def query(record: BenchmarkRecord, run: LabRun, query_id: str) -> QueryInFields:
    """A query beside its rewriting."""
    return _query(the_site().database.url, record.name, run.found.queries, query_id)


def weights(run: LabRun) -> ParameterSet | None:
    """What the run learned; None where nothing was."""
    if run.found.parameters is None:
        return None
    with the_site().database.reading() as session:
        try:
            return mftr.parameters(session, run.found.parameters)
        except NotFound:
            return None


def analyses(run_id: str) -> dict[str, pl.DataFrame]:
    """Kind → the stored figures of a run; see ``pipeline.jobs.fields.analyses``."""
    with the_site().database.reading() as session:
        known = field_analyses.of_run(session, run_id)
    return {kind: _frame(record.artifact) for kind, record in known.items()}


@st.cache_resource(max_entries=128, show_spinner=False)
def _frame(artifact: str) -> pl.DataFrame:
    return the_site().artifacts.get_frame(artifact)


def recall(record: BenchmarkRecord, run: LabRun) -> pl.DataFrame:
    """Recall@K of the run and of the published rivals with the same model and encoding.

    Returns:
        ``method``, ``view``, ``k``, ``recall`` (mean over queries), Full-Doc first.
    """
    parts = []
    for method, ranking in _rivals(record, run).items():
        curve = _recall(record.id, record.content_hash or "", ranking)
        parts.append(curve.select(pl.lit(method).alias("method"), pl.all()))
    return pl.concat(parts)


def _rivals(record: BenchmarkRecord, run: LabRun) -> dict[str, str]:
    """Method → ranking artifact."""
    with the_site().database.reading() as session:
        own = runs.get(session, run.id)
        contract = (own.method_settings or {}).get("encoding_contract")
        listed = runs.list_runs(session, benchmark_version_id=record.id, public_only=True)
        found: dict[str, str] = {}
        for run_id in listed.filter(pl.col("method").is_in(list(METHODS)))["run_id"]:
            other = runs.get(session, run_id)
            encoded = (other.method_settings or {}).get("encoding_contract", other.contract_hash)
            if encoded == contract and other.ranking_artifact and other.method != own.method:
                found.setdefault(other.method, other.ranking_artifact)
    ordered = {method: found[method] for method in METHODS if method in found}
    return {**ordered, own.method: run.ranking}


@st.cache_resource(max_entries=128, show_spinner=False)
def _recall(version_id: int, content_hash: str, ranking: str) -> pl.DataFrame:
    del content_hash
    site = the_site()
    compiled = load_compiled(site, version_id)
    scored = evaluate(compiled, run_of_frame(site.artifacts.get_frame(ranking), compiled.target), DEPTHS)
    place = METRICS.index("Recall")
    rows = [
        (view, k, float(values[place, i].mean()) if values.shape[2] else 0.0)
        for view, values in (("old", scored.old), ("new", scored.new))
        for i, k in enumerate(DEPTHS)
    ]
    return pl.DataFrame(rows, schema={"view": pl.String, "k": pl.Int64, "recall": pl.Float64}, orient="row")
