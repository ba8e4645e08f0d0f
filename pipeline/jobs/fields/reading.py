"""What pages and the command line read of multi-field retrieval: stored texts, runs over fields and their weights.

No model is loaded here. Why a tool has its rank is ``pipeline.jobs.fields.explaining``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import polars as pl

from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.site import Site
from pipeline.mftr.files import rewritten_to_json, standardized_to_json
from pipeline.mftr.learned_parameters import weight_shares
from pipeline.mftr.schema import Field, RewrittenQuery, StandardizedTool
from pipeline.mftr.settings import DEFAULT_PRESET
from store.access import benchmarks, mftr, runs
from store.access.mftr import FieldTextsRecord
from store.errors import NotFound
from store.field_text_models import FieldTextKind, FieldTextSource, ParameterSource

#: Methods whose runs have fields, weights and explanations.
EXPLAINED = (FieldMethod.MFTR.value, FieldMethod.WITHOUT_WEIGHTING.value, FieldMethod.WITHOUT_PENALTY.value)
#: Columns of ``weight_table``.
WEIGHT_COLUMNS: dict[str, Any] = {
    "set_id": pl.String,
    "retriever": pl.String,
    "preset": pl.String,
    "tools": pl.String,
    "queries": pl.String,
    "source": pl.String,
    "run_id": pl.String,
    "field": pl.String,
    "weight": pl.Float64,
    "share": pl.Float64,
    "folds": pl.Int64,
    "negative_folds": pl.Int64,
}


@dataclass(frozen=True)
class FieldTextSet:
    """Stored tools or queries in fields, as a list shows them.

    Attributes:
        kind: ``tools`` or ``queries``.
        source: ``rule-based``, ``llm``, ``imported`` or ``original query``.
        words: the source with the language model or version, for readers.
        filled, items, failures: how many have fields, of how many, and how many answers failed.
        counts: other figures by name.
    """

    id: str
    kind: str
    source: str
    words: str
    model: str
    prompts: tuple[str, ...]
    filled: int
    items: int
    failures: int
    counts: Mapping[str, Any]
    label: str
    created: datetime

    def as_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return {**asdict(self), "prompts": list(self.prompts), "created": self.created.isoformat(timespec="seconds")}


def field_text_sets(site: Site, benchmark: str, kind: FieldTextKind | str | None = None) -> list[FieldTextSet]:
    """The stored tools and queries in fields of a benchmark version, the newest first.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
        found = mftr.list_field_texts(session, benchmark_version_id=version.id, kind=kind)
    return [_set(record) for record in found]


@dataclass(frozen=True)
class ImportedWeights:
    """Weights that were imported, as they can be chosen.

    Attributes:
        id: of the parameter set.
        folds: how many each query's own is of.
        created: when they were imported.
    """

    id: str
    folds: int
    created: datetime | None


def imported_weights(site: Site, benchmark: str, contract_hash: str, tools: str, queries: str) -> list[ImportedWeights]:
    """The imported weights of these texts and this encoding, the newest first; they mean nothing to others.

    Args:
        site: where they are stored.
        benchmark: ``slug`` or ``slug@version``.
        contract_hash: how the model encodes.
        tools, queries: ids of the stored texts in fields.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
        found = mftr.list_parameters(session, benchmark_version_id=version.id)
    return [
        ImportedWeights(one.id, one.fold_count, one.created_at)
        for one in found
        if one.source is ParameterSource.IMPORTED
        and (one.contract_hash, one.tools, one.queries) == (contract_hash, tools, queries)
    ]


def _set(record: FieldTextsRecord) -> FieldTextSet:
    words = record.source
    if record.source == FieldTextSource.RULES:
        words = f"{record.source} (rules {record.rules_version})"
    elif record.source == FieldTextSource.LLM:
        words = f"by {record.model}"
    return FieldTextSet(
        record.id,
        record.kind,
        record.source,
        words,
        record.model,
        record.prompts,
        record.filled,
        record.items,
        record.failures,
        record.counts,
        record.label,
        record.created_at,
    )


@dataclass(frozen=True)
class ToolInFields:
    """A tool beside its raw documentation.

    Attributes:
        documentation: verbatim; foreign text.
        tool: in fields; None where the set has none of it.
        fields: the published JSON shape; None likewise.
        failure: what a language model could not fill, in words; "" for nothing.
    """

    tool_id: str
    name: str
    documentation: str
    tool: StandardizedTool | None
    fields: dict[str, Any] | None
    failure: str


def tool_in_fields(site: Site, benchmark: str, field_texts_id: str, tool_id: str) -> ToolInFields:
    """One tool of a stored set.

    Raises:
        NotFound: there is no such benchmark, set or tool.
    """
    version_id, content = _row_of(site, benchmark, "tools", "tool_id", tool_id)
    del version_id
    row = _text_row(site, field_texts_id, tool_id)
    given = {tool.tool_id: tool for tool in field_texts.load_tools(site, field_texts_id)}.get(tool_id)
    fields = None if given is None else dict(standardized_to_json(given))
    return ToolInFields(
        tool_id, content["name"] or "", content["documentation"] or "", given, fields, row["failure"] or ""
    )


@dataclass(frozen=True)
class QueryInFields:
    """A query beside its rewriting; see ``ToolInFields``."""

    query_id: str
    text: str
    query: RewrittenQuery | None
    fields: dict[str, Any] | None
    failure: str


def query_in_fields(site: Site, benchmark: str, field_texts_id: str, query_id: str) -> QueryInFields:
    """One query of a stored set.

    Raises:
        NotFound: there is no such benchmark, set or query.
    """
    _, content = _row_of(site, benchmark, "queries", "query_id", query_id)
    row = _text_row(site, field_texts_id, query_id)
    given = {query.query_id: query for query in field_texts.load_queries(site, field_texts_id)}.get(query_id)
    fields = None if given is None else dict(rewritten_to_json(given))
    return QueryInFields(query_id, content["text"] or "", given, fields, row["failure"] or "")


def _row_of(site: Site, benchmark: str, table: str, key: str, value: str) -> tuple[int, dict[str, Any]]:
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    if table not in version.artifacts:
        raise NotFound(f"{version.name} has no {table}")
    found = site.artifacts.scan(version.artifacts[table]).filter(pl.col(key) == value).collect()
    if not found.height:
        raise NotFound(f"{version.name} has no {key.removesuffix('_id')} {value!r}")
    return version.id, found.row(0, named=True)


def _text_row(site: Site, field_texts_id: str, key: str) -> dict[str, Any]:
    with site.database.reading() as session:
        record = mftr.field_texts(session, field_texts_id)
    found = site.artifacts.scan(record.artifact).filter(pl.col("id") == key).collect()
    if not found.height:
        raise NotFound(f"the field texts {field_texts_id[:8]} do not name {key!r}")
    return found.row(0, named=True)


@dataclass(frozen=True)
class FieldRun:
    """A stored run over fields, as a choice on a page.

    Attributes:
        words: retriever, preset, standardizer and rewriter, for readers.
        tools, queries: ids of its field texts.
        parameters: id of its parameter set; None where nothing was learned.
    """

    run_id: str
    retriever_key: str
    retriever: str
    method: str
    contract: str
    words: str
    preset: str
    tools: str
    queries: str
    parameters: str | None
    full_doc_run: str | None


def field_runs_of(site: Site, benchmark: str, *, run_ids: tuple[str, ...] | None = None) -> list[FieldRun]:
    """The measured runs over fields of a benchmark version that a page may offer, the newest first.

    Args:
        site: where they are stored.
        benchmark: ``slug`` or ``slug@version``.
        run_ids: those that the reader may see; None takes the published public ones.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
        listed = runs.list_runs(session, benchmark_version_id=version.id)
        shown = listed.filter(
            pl.col("run_id").is_in(list(run_ids))
            if run_ids is not None
            else (pl.col("state") == "published") & (pl.col("visibility") == "public")
        )
        records = {row["run_id"]: runs.get(session, row["run_id"]) for row in shown.iter_rows(named=True)}
        names = {row["run_id"]: (row["retriever_key"], row["retriever"]) for row in shown.iter_rows(named=True)}
    base = {record.contract_hash: run_id for run_id, record in records.items() if record.method == "full-doc"}
    found = []
    for run_id, record in records.items():
        said = record.method_settings
        if record.method not in EXPLAINED or said is None:
            continue
        key, name = names[run_id]
        words = ", ".join(part for part in (name, record.contract) if part)
        found.append(
            FieldRun(
                run_id,
                key,
                name,
                record.method,
                record.contract,
                words,
                said["preset"] or DEFAULT_PRESET,
                said["tools"],
                said["queries"],
                said["parameters"],
                base.get(said["encoding_contract"]),
            )
        )
    return found


def weight_table(site: Site, benchmark: str) -> pl.DataFrame:
    """Learned and imported weights of a benchmark's stored runs, as in Table 5: one row a run and field.

    ``weight`` is the mean over the folds, ``share`` its part of the sum (null where a mean is negative),
    ``negative_folds`` in how many folds it is below 0.

    Returns:
        Columns of ``WEIGHT_COLUMNS``, the newest set first.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
        sets = mftr.list_parameters(session, benchmark_version_id=version.id)
    by_set = {run.parameters: run for run in reversed(field_runs_of(site, benchmark)) if run.parameters}
    rows = []
    for made in sets:
        run = by_set.get(made.id)
        if run is None:
            continue
        means = [sum(fold.weights[i] for fold in made.folds) / len(made.folds) for i in range(4)]
        shares = weight_shares((means[0], means[1], means[2], means[3]))
        for place, name in enumerate(Field):
            rows.append(
                (
                    made.id,
                    run.retriever,
                    run.preset,
                    made.tools,
                    made.queries,
                    str(made.source),
                    run.run_id,
                    name.value,
                    means[place],
                    None if shares is None else shares[place],
                    len(made.folds),
                    sum(fold.weights[place] < 0 for fold in made.folds),
                )
            )
    return pl.DataFrame(rows, schema=WEIGHT_COLUMNS, orient="row")


@dataclass(frozen=True)
class MethodPair:
    """A method's run and the Full-Doc run of the same model and encoding: a gain of method, not of fine-tuning.

    Attributes:
        base_run: the Full-Doc run.
        method_run: the other.
    """

    base_run: str
    method_run: str
    retriever: str
    method: str
    contract: str


def method_pairs(site: Site, benchmark: str) -> list[MethodPair]:
    """Every published run of a method with fields or a language model beside its Full-Doc counterpart.

    Raises:
        NotFound: the benchmark is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
        listed = runs.list_runs(session, benchmark_version_id=version.id)
        shown = listed.filter((pl.col("state") == "published") & (pl.col("visibility") == "public"))
        records = [(row["retriever"], runs.get(session, row["run_id"])) for row in shown.iter_rows(named=True)]
    base: dict[str | None, str] = {}
    for _, record in records:
        if record.method == "full-doc":
            base.setdefault(record.contract_hash, record.id)
    found = []
    for name, record in records:
        said = record.method_settings or {}
        beside = base.get(said.get("encoding_contract"))
        if said and beside is not None:
            found.append(MethodPair(beside, record.id, name, record.method, record.contract))
    return found


def benchmark_texts(site: Site, benchmark: str) -> tuple[list[str], list[str]]:
    """The ids of a benchmark's queries and tools, for a page's choices.

    Raises:
        BenchmarkError, NotFound: it has no content, or is not stored.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    content = load_benchmark(site, version.id)
    return content.queries["query_id"].to_list(), content.tools["tool_id"].to_list()
