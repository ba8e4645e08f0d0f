"""The field texts that a run is over: made where no language model is needed, read, and described to readers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pipeline.formats.messages import plural
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import LLM, ORIGINAL, RULES
from pipeline.jobs.fields.options import settings_of
from pipeline.jobs.site import Site
from pipeline.mftr.fields import QueryFields, ToolFields
from pipeline.mftr.settings import Weighting
from pipeline.run import RunTarget
from store.access import mftr
from store.access.mftr import FieldTextsRecord
from store.field_text_models import FieldTextSource


@dataclass(frozen=True)
class FieldSources:
    """Ids of the field texts that a run is over; "" where its method needs none."""

    tools: str
    queries: str

    def as_json(self) -> dict[str, str]:
        """The attributes by name."""
        return asdict(self)


def ready_sources(site: Site, evaluation: Evaluation) -> FieldSources | None:
    """The field texts of a request, made and stored here where that needs no language model; None where it does."""
    options = evaluation.options
    assert options is not None
    if LLM in (options.tools, options.queries):
        return None
    tools = rules_set(site, evaluation) if options.tools == RULES else options.tools
    queries = original_set(site, evaluation) if options.queries == ORIGINAL else options.queries
    return FieldSources(tools, queries)


def rules_set(site: Site, evaluation: Evaluation) -> str:
    """Id of the benchmark's tools in fields by rules, stored."""
    version_id = evaluation.version.id
    made = field_texts.rule_based_tools(load_benchmark(site, version_id))
    target = load_compiled(site, version_id).target
    return field_texts.store_tools(site, version_id, target, made, field_texts.rules_origin()).id


def original_set(site: Site, evaluation: Evaluation) -> str:
    """Id of the benchmark's queries as their own needs, stored."""
    version_id = evaluation.version.id
    asked = field_texts.original_queries(load_benchmark(site, version_id))
    target = load_compiled(site, version_id).target
    origin = field_texts.Origin(FieldTextSource.ORIGINAL)
    return field_texts.store_queries(site, version_id, target, asked, origin).id


def sources_of(site: Site, evaluation: Evaluation, sources: FieldSources) -> tuple[RunTarget, ToolFields, QueryFields]:
    """The benchmark's ids, and the field texts in their order."""
    target = load_compiled(site, evaluation.version.id).target
    tools = field_texts.tool_fields(site, sources.tools, target)
    return target, tools, field_texts.query_fields(site, sources.queries, target)


def costs_of(site: Site, sources: FieldSources) -> dict[str, float | None]:
    """Calls and seconds of language models behind field texts; None where they were made elsewhere."""
    tools, queries = _records(site, sources)

    def figure(record: FieldTextsRecord | None, name: str) -> float | None:
        if record is not None and record.source == FieldTextSource.IMPORTED:
            return None
        if record is None or record.source != FieldTextSource.LLM:
            return 0.0
        total = record.counts.get(name)
        return None if total is None or not record.items else float(total) / record.items

    return {
        "llm_calls_per_query": figure(queries, "llm_calls"),
        "llm_seconds_per_query": figure(queries, "llm_seconds"),
        "llm_calls_per_tool": figure(tools, "llm_calls"),
    }


def source_notes(site: Site, evaluation: Evaluation, sources: FieldSources) -> tuple[str, ...]:
    """What readers of the results must know of the field texts and weights."""
    options = evaluation.options
    assert options is not None
    tools, queries = _records(site, sources)
    notes = []
    if tools is not None:
        notes.append(
            {
                FieldTextSource.RULES: "Tools were put into fields by rules (rule-based), without a language model; "
                "what a document does not state is empty.",
                FieldTextSource.LLM: f"Tools were put into fields by {tools.model}.",
            }.get(FieldTextSource(tools.source), f"The tools in fields were imported ({tools.id[:8]}).")
        )
    if queries is not None:
        notes.append(
            {
                FieldTextSource.ORIGINAL: "Each query itself is its one need in every field, without arguments: no "
                "query was rewritten.",
                FieldTextSource.LLM: f"Queries were rewritten by {queries.model}.",
            }.get(FieldTextSource(queries.source), f"The rewritten queries were imported ({queries.id[:8]}).")
        )
    for record, one, many in ((tools, "tool", "tools"), (queries, "query", "queries")):
        if record is None:
            continue
        if record.failures:
            several = plural(record.failures, f"{one} lacks", f"{many} lack")
            notes.append(f"{several} fields, because the language model gave no valid answer.")
        elif record.filled < record.items:
            several = plural(record.items - record.filled, f"{one} is", f"{many} are")
            notes.append(f"{several} not in the imported file.")
    settings = settings_of(evaluation)
    if options.weights:
        notes.append(f"The weights were imported ({options.weights[:8]}) and apply by each query's fold.")
    elif options.method.needs.learns and settings.weighting is not Weighting.MEAN:
        notes.append(
            f"Weights were learned on this benchmark's own labels; {settings.folds} folds, each query ranked by "
            "weights that never saw it."
        )
    return tuple(notes)


def _records(site: Site, sources: FieldSources) -> tuple[FieldTextsRecord | None, FieldTextsRecord | None]:
    with site.database.reading() as session:
        found = [mftr.field_texts(session, name) if name else None for name in (sources.tools, sources.queries)]
    return found[0], found[1]
