"""Putting a benchmark's tools and queries into fields from the command line, for folders and stored benchmarks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.benchmark import Benchmark
from pipeline.errors import MftrError, UsageError
from pipeline.jobs.benchmark_library import Library, load_compiled
from pipeline.jobs.fields import llm_texts as field_llm
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.files import queries_for, read_weights, tools_for
from pipeline.jobs.fields.llm_texts import Made
from pipeline.jobs.fields.parameters import stored_parameters
from pipeline.jobs.llm_answers import StoredAnswers, asking_config, live_asker, site_budget
from pipeline.jobs.site import Site
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.records import Asker
from pipeline.mftr.files import (
    RewrittenQueries,
    StandardizedDocuments,
    write_rewritten,
    write_standardized,
)
from pipeline.mftr.learned_parameters import published_folds
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.progress import ProgressCallback
from store.access import benchmarks, mftr
from store.access.mftr import ParameterSet
from store.field_text_models import FieldTextSource, ParameterSource
from store.records import BenchmarkRecord


@dataclass(frozen=True)
class Asking:
    """How a language model is asked.

    Attributes:
        llm: ``provider/model``; "" asks nobody.
        budget: US dollars; earlier attempts at the same work count.
        export_batch: write the open questions here instead of asking.
        import_batch: take answers from here.
        retry_failed: ask questions again that are recorded as failed.
    """

    llm: str = ""
    budget: float | None = None
    export_batch: Path | None = None
    import_batch: Path | None = None
    retry_failed: bool = False

    def check(self, operator_limit: float) -> None:
        """Refuse what does not fit together.

        Raises:
            UsageError: it does not.
        """
        batch = self.export_batch or self.import_batch
        if not self.llm and (self.budget is not None or batch or self.retry_failed):
            raise UsageError("--budget, --export-batch, --import-batch and --retry-failed need --llm MODEL")
        if self.export_batch and self.import_batch:
            raise UsageError("--export-batch and --import-batch are two steps: give one of them")
        if self.llm and not batch and self.budget is None and not operator_limit:
            raise UsageError("say what the language model may cost with --budget USD, or use --export-batch F")


@dataclass(frozen=True)
class Asked:
    """What became of it.

    Attributes:
        count: tools or queries with fields.
        failures: id → what could not be filled and why.
        pending: questions without an answer yet; nothing is written or stored then.
        files: that were written.
        stored: id of the stored set; "" for none.
        lines: what is worth knowing, in sentences.
    """

    count: int
    failures: Mapping[str, str]
    pending: int = 0
    files: tuple[Path, ...] = ()
    stored: str = ""
    lines: tuple[str, ...] = ()


class _Target:
    """The benchmark that is worked on, and the store where one is needed."""

    def __init__(self, name: str, out: Path | None, asking: Asking) -> None:
        self.library = Library()
        asking.check(self.library.limits_site.settings.llm_budget_dollars)
        self.name, self.out, self.asking = name, out, asking
        self.is_folder = Path(name).expanduser().is_dir()
        if self.is_folder and out is None and asking.export_batch is None:
            raise UsageError("what is made for a folder goes to a file: give --out F, or import the folder")
        self.benchmark: Benchmark = self.library.benchmark(name)
        self.target = run_target(self.benchmark)

    @property
    def site(self) -> Site:
        """The site, with its database."""
        return self.library.site

    @cached_property
    def version(self) -> BenchmarkRecord:
        with self.site.database.reading() as session:
            return benchmarks.get(session, self.name)

    @contextmanager
    def asker(self, what: str) -> Iterator[Asker]:
        """Who answers: live models, a file of answers, or a file that questions go to."""
        asking = self.asking
        said = f"mftr {what} {self.benchmark.content_hash} {asking.llm}"
        scope = f"mftr-{what}-{hashlib.sha256(said.encode()).hexdigest()[:24]}"
        settings = self.site.settings
        budget = site_budget(settings, scope, max_cost=asking.budget)
        store = StoredAnswers(self.site.database)
        if asking.export_batch is not None:
            with BatchWriter(store, asking.export_batch, retry_failed=asking.retry_failed) as writer:
                yield writer
        elif asking.import_batch is not None:
            answers = BatchAnswers(store, asking.import_batch, budget, asking_config(settings).prices)
            try:
                yield answers
            finally:
                answers.close()
        else:
            yield live_asker(settings, self.site.database, budget, retry_failed=asking.retry_failed)


def standardize_tools(
    benchmark: str,
    asking: Asking,
    *,
    out: Path | None = None,
    label: str = "",
    progress: ProgressCallback | None = None,
) -> Asked:
    """Put every tool into four fields.

    Args:
        benchmark: a folder, or a stored name.
        asking: without a language model, rules do it.
        out: file to write; None stores.
        label: the owner's words for a stored set.
        progress: stage ``standardizing`` or ``rewriting``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        JudgeError: the model cannot be asked, or a batch file cannot be used.
        MftrError, UsageError: files or options cannot be used.
    """
    work = _Target(benchmark, out, asking)
    if not asking.llm:
        tools = tuple(field_texts.rule_based_tools(work.benchmark, progress=progress))
        made = Made("tools", tools=tools)
    else:
        with work.asker("standardize") as asker:
            made = field_llm.standardize(work.benchmark, work.target, asker, asking.llm, progress=progress)
            waiting = _waiting(made, asker)
        if waiting is not None:
            return waiting
    return _kept(work, made, label, _lines(asker) if asking.llm else ())


def rewrite_queries(
    benchmark: str,
    asking: Asking,
    *,
    standardized: Path | None = None,
    out: Path | None = None,
    label: str = "",
    progress: ProgressCallback | None = None,
) -> Asked:
    """Rewrite every query; arguments and errors as for ``standardize_tools``.

    Args:
        benchmark: a folder, or a stored name.
        asking: without a language model, each query is its own need.
        standardized: file of the tools that are shown with a query; None takes the rules'.
        out: file to write; None stores.
        label: the owner's words for a stored set.
        progress: stage ``standardizing`` or ``rewriting``.
    """
    work = _Target(benchmark, out, asking)
    if not asking.llm:
        made = Made("queries", queries=tuple(field_texts.original_queries(work.benchmark)))
        return _kept(work, made, label, ())
    if standardized is None:
        tools = field_texts.rule_based_tools(work.benchmark)
    else:
        tools = list(tools_for(standardized, work.benchmark.tools["tool_id"].to_list())[0].tools)
    with work.asker("rewrite") as asker:
        made = field_llm.rewrite(work.benchmark, work.target, tools, asker, asking.llm, progress=progress)
        waiting = _waiting(made, asker)
    return waiting if waiting is not None else _kept(work, made, label, _lines(asker))


def _waiting(made: Made, asker: Asker) -> Asked | None:
    """What to say of a batch that is being written or is not complete; None when everything has an outcome."""
    if isinstance(asker, BatchWriter):
        return Asked(0, {}, asker.pending, tuple(asker.parts))
    return Asked(0, {}, made.pending, (), "", _lines(asker)) if made.pending else None


def _lines(asker: Asker) -> tuple[str, ...]:
    if not isinstance(asker, BatchAnswers):
        return ()
    report = asker.report()
    said = [f"{report.lines:,} lines: {report.accepted:,} new answers, {report.known:,} were known"]
    said += [f"line {problem.line}: {problem.message}" for problem in report.problems[:20]]
    if len(report.problems) > 20:
        said.append(f"… and {len(report.problems) - 20:,} more problems")
    return tuple(said)


def _kept(work: _Target, made: Made, label: str, lines: tuple[str, ...]) -> Asked:
    if work.out is None:
        stored = field_llm.store(
            work.site, work.version.id, work.target, made, work.asking.llm, LOCAL_PERSON, label=label
        )
        return Asked(made.count, made.failures, 0, (), stored, lines)
    try:
        if made.kind == "tools":
            write_standardized(work.out, StandardizedDocuments(made.tools, made.field_failures))
        else:
            write_rewritten(work.out, RewrittenQueries(made.queries, made.failures))
    except OSError as error:
        raise MftrError(f"{work.out} cannot be written ({error.strerror})") from None
    return Asked(made.count, made.failures, 0, (work.out,), "", lines)


@dataclass(frozen=True)
class Imported:
    """Ids of what was stored; "" where nothing was given."""

    tools: str
    queries: str
    weights: str
    notes: tuple[str, ...]


def import_files(
    benchmark: str,
    standardized: Path | None,
    rewritten: Path | None,
    weights: Path | None,
    *,
    weights_of: str = "",
    model: str = "",
    preset: str = "paper",
    label: str = "",
) -> Imported:
    """Store published files for a stored benchmark.

    Raises:
        MftrError: a file cannot be read or belongs to another benchmark.
        NotFound: the benchmark is not stored.
        UsageError: nothing is given, or weights without their texts and model.
    """
    from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_options

    if standardized is None and rewritten is None and weights is None:
        raise UsageError("give --standardized F, --rewritten F or both, and --weights F with --model M beside them")
    if weights is not None and not (standardized and rewritten and model):
        raise UsageError("weights belong to texts and a model: give --standardized F, --rewritten F and --model M too")
    site = Library().site
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    target = load_compiled(site, version.id).target
    origin = field_texts.Origin(FieldTextSource.IMPORTED)
    tools_id = queries_id = weights_id = ""
    notes: list[str] = []
    if standardized is not None:
        documents, said = tools_for(standardized, target.tools.ids)
        notes += said
        failures = {key: field_llm.failure_words(failed) for key, failed in documents.failures.items()}
        tools_id = field_texts.store_tools(
            site, version.id, target, documents.tools, origin, failures=failures, label=label, person=LOCAL_PERSON
        ).id
    if rewritten is not None:
        queries, said = queries_for(rewritten, target.queries.ids)
        notes += said
        queries_id = field_texts.store_queries(
            site, version.id, target, queries.queries, origin, failures=queries.failures, label=label,
            person=LOCAL_PERSON,
        ).id  # fmt: skip
    if weights is not None:
        from pipeline.jobs.benchmark_library import load_benchmark

        request = EvaluationRequest(benchmark, model, preset=preset)
        spec, _, contract = resolve_options(site.settings, request)
        read = read_weights(weights, load_benchmark(site, version.id), spec.entry, weights_of)
        published_folds(read, queries.queries)  # for its refusal of queries without a fold
        folds = tuple(stored_parameters(number, fold) for number, fold in enumerate(read))
        source = ParameterSource.IMPORTED
        set_id = mftr.parameter_set_id(version.id, contract.hash, tools_id, queries_id, {}, source, folds)
        made = ParameterSet(set_id, version.id, contract.hash, tools_id, queries_id, {}, source, len(folds), folds)
        with site.database.session() as session:
            weights_id = mftr.add_parameters(session, made).id
    return Imported(tools_id, queries_id, weights_id, tuple(notes))
