"""What pages show beside a run over fields: single fields, variants, masked documents, tests against baselines.

Computed in a job, stored as frames, read by pages; doing one twice changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from pipeline.baselines.ablation_variants import VARIANTS, Combination, Queries, Variant
from pipeline.baselines.field_analysis import single_field_runs
from pipeline.baselines.masking import masked_runs
from pipeline.benchmark import Average, Benchmark, Kind
from pipeline.errors import EquiRankError, UsageError
from pipeline.formats.ranking import run_of_frame
from pipeline.jobs import measuring
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import permissions
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.ablations import variant_run
from pipeline.jobs.fields.files import ReadTexts
from pipeline.jobs.fields.folder import Texts
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.fields.options import method_settings
from pipeline.jobs.fields.reading import EXPLAINED
from pipeline.jobs.fields.scoring import scorer_of
from pipeline.jobs.site import Site
from pipeline.mftr.schema import Field
from pipeline.mftr.settings import DEFAULT_PRESET
from pipeline.retrieval.contract import Dtype
from pipeline.retrieval.models import ModelSpec, resolve_model
from pipeline.retrieval.progress import Cancelled, CancelledCallback, ProgressCallback
from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.gain_table import gain_table
from pipeline.scoring.kernel import METRICS, evaluate
from store.access import benchmarks, field_analyses, mftr, runs
from store.errors import NotFound, StoreError
from store.field_analysis_models import AnalysisKind
from store.field_text_models import FieldTextSource
from store.records import BenchmarkRecord, RunRecord

#: Raised whenever the same inputs would give other figures.
ANALYSIS_VERSION = "1"
#: Kinds that were changed since, so that stored ones are made again.
_CHANGED = {AnalysisKind.FIELDS: "2"}
#: Cutoff of all figures, as in the paper.
CUTOFF = 10
#: Columns of ``fields``, ``variants`` and ``masking``; values are means over queries, fractions. ``tools`` counts the
#: tools that have the field, null where that means nothing.
FIGURES: dict[str, Any] = {
    "key": pl.String,
    "label": pl.String,
    "view": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "tools": pl.Int64,
}
#: Columns of ``tests``: a run against its strongest baseline of each figure, two-sided sign flips over the queries.
TESTS: dict[str, Any] = {
    "view": pl.String,
    "metric": pl.String,
    "baseline_run": pl.String,
    "baseline": pl.String,
    "value": pl.Float64,
    "baseline_value": pl.Float64,
    "p": pl.Float64,
    "queries": pl.Int64,
}
#: What MFTR is compared with in the paper's Table 2.
BASELINES = ("full-doc", "easytool", "pluto", "onlinerag")
#: The key of the row that is a whole method: all fields, or the whole document.
WHOLE = "whole"

_SHOWN_METRICS = ("NDCG", "Recall")


@dataclass(frozen=True, eq=False)
class _Work:
    """A run over fields with what its analyses need."""

    run: RunRecord
    version: BenchmarkRecord
    benchmark: Benchmark
    compiled: CompiledBenchmark
    model: ModelSpec
    encoding: str
    preset: str
    tools: str
    queries: str


def kinds_of(version: BenchmarkRecord) -> tuple[AnalysisKind, ...]:
    """The analyses that a benchmark allows; skills are no JSON documents, so nothing of theirs is masked."""
    return tuple(kind for kind in AnalysisKind if kind is not AnalysisKind.MASKING or version.kind == Kind.TOOL)


def pending(site: Site) -> dict[str, tuple[str, ...]]:
    """Published run id → the analyses that a worker makes by itself and that are missing or out of date.

    Tests and single fields for every run over fields; variants and masked documents, which take a run each, on the
    demo benchmarks only: elsewhere somebody has to ask for them.
    """
    found: dict[str, tuple[str, ...]] = {}
    with site.database.reading() as session:
        versions = {record.id: record for record in benchmarks.list_records(session) if record.has_content}
        listed = runs.list_runs(session, public_only=True)
        wanted = listed.filter(pl.col("method").is_in(list(EXPLAINED)), pl.col("provenance") == "measured")
        records = [runs.get(session, run_id) for run_id in wanted["run_id"]]
        known = {record.id: field_analyses.of_run(session, record.id) for record in records}
    for record in records:
        version = versions.get(record.benchmark_version_id)
        if version is None or record.method_settings is None:
            continue
        kinds = [AnalysisKind.TESTS, AnalysisKind.FIELDS]
        if version.is_demo and record.method == FieldMethod.MFTR:
            kinds += [AnalysisKind.VARIANTS, AnalysisKind.MASKING]
        missing = tuple(
            str(kind)
            for kind in kinds
            if kind in kinds_of(version)
            and (kind not in known[record.id] or known[record.id][kind].computed_from != name_of(site, record, kind))
        )
        if missing:
            found[record.id] = missing
    return found


def name_of(site: Site, run: RunRecord, kind: AnalysisKind | str) -> str:
    """A hash of what an analysis of a run follows from."""
    said: list[Any] = [_CHANGED.get(AnalysisKind(kind), ANALYSIS_VERSION), run.id, str(kind)]
    if kind == AnalysisKind.TESTS:
        said.append(sorted(record.id for record in _baselines(site, run)))
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def is_current(site: Site, run_id: str, kind: AnalysisKind | str) -> bool:
    """Whether the stored analysis of a run is what would be made now."""
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        known = field_analyses.of_run(session, run_id).get(str(kind))
    return known is not None and known.computed_from == name_of(site, run, kind)


def compute(
    site: Site, run_id: str, kinds: Sequence[str], say: Callable[[str], None], progress: ProgressCallback | None = None
) -> list[str]:
    """Make and store the analyses of a run; what fails is said and the rest is done. Returns the failures in words."""
    failures = []
    for kind in kinds:
        try:
            made = analysis(site, run_id, kind, progress=progress)
            say(f"analysed {kind} of run {run_id}: {made.height} figures")
        except Cancelled:
            raise
        except (EquiRankError, StoreError, ValueError) as error:
            failures.append(f"{kind}: {error}")
            say(f"the analysis of {kind} failed: {error}")
    return failures


def analysis(
    site: Site,
    run_id: str,
    kind: AnalysisKind | str,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> pl.DataFrame:
    """Make one analysis of a stored run, and store it.

    Returns:
        Columns of ``TESTS``, or of ``FIGURES``.

    Raises:
        Cancelled: on request.
        MftrError, ModelError: the run's model or texts cannot be used.
        NotFound: there is no such run.
        UsageError: the run is not over fields, or its benchmark does not allow this analysis.
    """
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    if run.method_settings is None or run.method not in EXPLAINED:
        raise UsageError(f"the run {run_id} ({run.method}) is not over fields: choose a run of MFTR")
    name = name_of(site, run, kind)
    if kind == AnalysisKind.TESTS:
        frame = _tests(site, run)
    else:
        work = _work(site, run)
        make = {
            AnalysisKind.FIELDS: _fields,
            AnalysisKind.VARIANTS: _variants,
            AnalysisKind.MASKING: _masking,
        }[AnalysisKind(kind)]
        rows = make(site, work, progress, cancelled)
        frame = pl.DataFrame(rows, schema=FIGURES, orient="row")
    artifact = site.artifacts.put_frame(frame)
    with site.database.session() as session:
        field_analyses.put(session, run_id, kind, computed_from=name, artifact=artifact, artifacts=site.artifacts)
    return frame


def _work(site: Site, run: RunRecord) -> _Work:
    said = run.method_settings
    assert said is not None
    with site.database.reading() as session:
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
    model = resolve_model(
        said["model"], permissions=permissions(site.settings), dtype=Dtype(said["dtype"]) if said["dtype"] else None
    )
    return _Work(
        run,
        version,
        load_benchmark(site, version.id),
        load_compiled(site, version.id),
        model,
        said["encoding"],
        said["preset"] or DEFAULT_PRESET,
        said["tools"],
        said["queries"],
    )


_Row = tuple[str, str, str, str, float | None, int | None]


def _figures(compiled: CompiledBenchmark, run: Run, key: str, label: str, tools: int | None = None) -> list[_Row]:
    """NDCG@10 and Recall@10 of a ranking under both labels, as rows of ``FIGURES``."""
    scored = evaluate(compiled, run, (CUTOFF,))
    rows: list[_Row] = []
    for view, values in (("old", scored.old), ("new", scored.new)):
        for metric in _SHOWN_METRICS:
            of = values[METRICS.index(metric), 0]
            rows.append((key, label, view, metric, float(of.mean()) if len(of) else None, tools))
    return rows


def _stored_run(site: Site, work: _Work) -> Run:
    assert work.run.ranking_artifact is not None
    return run_of_frame(site.artifacts.get_frame(work.run.ranking_artifact), work.compiled.target)


def _fields(
    site: Site, work: _Work, progress: ProgressCallback | None, cancelled: CancelledCallback | None
) -> list[_Row]:
    target = work.compiled.target
    tools = field_texts.tool_fields(site, work.tools, target)
    queries = field_texts.query_fields(site, work.queries, target)
    contract = work.model.contract(work.encoding)
    scorer = scorer_of(
        tools, queries, work.model, contract, measuring.embedding_cache(site), progress=progress, cancelled=cancelled
    ).scorer
    settings = method_settings(FieldMethod(work.run.method), work.preset)
    found = single_field_runs(scorer, target, settings, progress=progress, cancelled=cancelled)
    rows = _figures(work.compiled, _stored_run(site, work), WHOLE, "All fields together")
    for field in Field:
        tools_with = int(scorer.tools[field].filled.sum())
        own = _figures(work.compiled, found[field], field.value, field.value, tools_with)
        if not found[field].queries_answered:
            # Nothing to rank by is no score of 0.
            own = [(key, label, view, metric, None, count) for key, label, view, metric, _, count in own]
        rows += own
    return rows


def possible_variants(rewritten: bool) -> tuple[Variant, ...]:
    """The rows of Table 3 that can be made: where no query was rewritten, one-sided rewriting means nothing.

    The last three rows then stand for "the original query in every field".
    """
    return tuple(
        row
        for row in VARIANTS
        if rewritten
        or row.queries is Queries.ORIGINAL
        or (row.needs_standardized and row.combination is not Combination.ONE_TEXT)
    )


def _variants(
    site: Site, work: _Work, progress: ProgressCallback | None, cancelled: CancelledCallback | None
) -> list[_Row]:
    with site.database.reading() as session:
        source = mftr.field_texts(session, work.queries).source
    texts = Texts(field_texts.load_tools(site, work.tools), field_texts.load_queries(site, work.queries))
    read = ReadTexts(texts, None, None, ())
    rows: list[_Row] = []
    for row in possible_variants(source != FieldTextSource.ORIGINAL):
        if row.key == FieldMethod.MFTR and work.run.method == FieldMethod.MFTR:
            made = _stored_run(site, work)
        else:
            made = variant_run(
                row,
                work.benchmark,
                read,
                work.model,
                work.encoding,
                work.preset,
                cache=measuring.embedding_cache(site),
                progress=progress,
                cancelled=cancelled,
            )
        rows += _figures(work.compiled, made, row.key, row.label)
    return rows


def _masking(
    site: Site, work: _Work, progress: ProgressCallback | None, cancelled: CancelledCallback | None
) -> list[_Row]:
    cache = measuring.embedding_cache(site)
    full, masked = masked_runs(
        work.benchmark, work.model, work.encoding, cache=cache, progress=progress, cancelled=cancelled
    )
    rows = _figures(work.compiled, full, WHOLE, "Whole document")
    for part in masked:
        rows += _figures(work.compiled, part.run, part.field, part.field, part.tools)
    return rows


def _baselines(site: Site, run: RunRecord) -> list[RunRecord]:
    """The published measured runs that a run is compared with: same model and encoding, a baseline's method.

    Of each method the newest; the same per-query scores must be there.
    """
    contract = (run.method_settings or {}).get("encoding_contract")
    found: dict[str, RunRecord] = {}
    with site.database.reading() as session:
        listed = runs.list_runs(session, benchmark_version_id=run.benchmark_version_id, public_only=True)
        for run_id in listed.filter(pl.col("method").is_in(list(BASELINES)))["run_id"]:
            record = runs.get(session, run_id)
            own = record.contract_hash if record.method == "full-doc" else None
            encoded = (record.method_settings or {}).get("encoding_contract", own)
            if contract is not None and encoded == contract and record.per_query_artifact is not None:
                found.setdefault(record.method, record)
    return list(found.values())


def _tests(site: Site, run: RunRecord) -> pl.DataFrame:
    """Each figure of a run against the strongest baseline of that figure."""
    if run.per_query_artifact is None:
        raise NotFound(f"the run {run.id} has no scores by query")
    names = [f"{view}_{metric}@{CUTOFF}" for view in ("old", "new") for metric in METRICS]
    read = partial(site.artifacts.get_frame, columns=["query_id", "domain", *names])
    own = read(run.per_query_artifact)
    rivals = {record.id: (record, read(record.per_query_artifact or "")) for record in _baselines(site, run)}
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    rows = []
    for view in ("old", "new"):
        for metric in _SHOWN_METRICS:
            name = f"{view}_{metric}@{CUTOFF}"
            means = {key: _mean(scores[name]) for key, (_, scores) in rivals.items()}
            if not means:
                continue
            best = max(means, key=lambda key: (means[key], key))
            if best not in tables:
                compared = gain_table(
                    rivals[best][1],
                    own,
                    metrics=_SHOWN_METRICS,
                    k=CUTOFF,
                    averages=(Average.MICRO,),
                    domains=[],
                )
                tables[best] = {row["metric"]: row for row in compared.iter_rows(named=True)}
            row = tables[best][metric]
            rows.append(
                (
                    view,
                    metric,
                    best,
                    rivals[best][0].method,
                    _mean(own[name]),
                    means[best],
                    row[f"p_{view}"],
                    own.height,
                )
            )
    return pl.DataFrame(rows, schema=TESTS, orient="row")


def _mean(scores: pl.Series) -> float:
    return float(scores.to_numpy().mean()) if scores.len() else 0.0
