"""A language model puts a benchmark's tools and queries into fields: in whole or in part, and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.benchmark import Benchmark
from pipeline.errors import MftrError
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.texts import Origin
from pipeline.jobs.site import Site
from pipeline.llm.records import Asker, Usage
from pipeline.mftr import rewriter, standardizer
from pipeline.mftr.rules import RULES_VERSION
from pipeline.mftr.schema import Field, RewrittenQuery, StandardizedTool
from pipeline.mftr.standardizer import ToolDocument
from pipeline.retrieval.documents import queries_in_order
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import RunTarget
from store.field_text_models import FieldTextSource


@dataclass(frozen=True, eq=False)
class Made:
    """Tools or queries in fields.

    Attributes:
        kind: ``tools`` or ``queries``.
        failures: id → what has no valid answer and why, in words.
        field_failures: the same of tools by field, as files hold it.
        pending: distinct questions that wait for a batch's answers; the rest is final only when it is 0.
        usage: of the answers and failures; what came from the cache counts as it was paid.
    """

    kind: str
    tools: tuple[StandardizedTool, ...] = ()
    queries: tuple[RewrittenQuery, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    field_failures: Mapping[str, Mapping[Field, str]] = field(default_factory=dict)
    pending: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def count(self) -> int:
        """Tools or queries that have fields."""
        return len(self.tools) + len(self.queries)


def failure_words(failed: Mapping[Field, str]) -> str:
    """The fields of a tool that could not be filled, in one line."""
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items())


def standardize(
    benchmark: Benchmark,
    target: RunTarget,
    asker: Asker,
    llm: str,
    part: slice = slice(None),
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Made:
    """Put tools into fields; ``part`` counts in byte order of their ids.

    Raises:
        BudgetExceeded, Cancelled, JudgeError: as ``standardize_by_model``.
    """
    rows = {
        tool_id: ToolDocument(tool_id, documentation or "", name or "")
        for tool_id, documentation, name in benchmark.tools.select("tool_id", "documentation", "name").iter_rows()
    }
    documents = [rows[tool_id] for tool_id in list(target.tools.ids)[part]]
    made = standardizer.standardize_by_model(documents, asker, llm, progress=progress, cancelled=cancelled)
    failures = {tool_id: failure_words(failed) for tool_id, failed in made.failures.items()}
    return Made("tools", made.tools, (), failures, made.failures, made.pending, made.usage)


def rewrite(
    benchmark: Benchmark,
    target: RunTarget,
    tools: Sequence[StandardizedTool],
    asker: Asker,
    llm: str,
    part: slice = slice(None),
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Made:
    """Rewrite queries; ``part`` counts in byte order of their ids.

    Raises:
        BudgetExceeded, Cancelled, JudgeError: as ``rewrite_by_model``.
    """
    texts, _ = queries_in_order(benchmark, target)
    queries = list(zip(target.queries.ids, texts, strict=True))[part]
    made = rewriter.rewrite_by_model(queries, tools, asker, llm, progress=progress, cancelled=cancelled)
    return Made("queries", (), made.queries, made.failures, {}, made.pending, made.usage)


def prompts(kind: str) -> tuple[str, ...]:
    """``name@version`` of the prompts for ``tools`` or ``queries``, and the rules behind the queries' feedback."""
    return standardizer.prompt_references() if kind == "tools" else rewriter.prompt_references()


def feedback_tools(site: Site, benchmark: Benchmark, tools_id: str) -> list[StandardizedTool]:
    """The tools that queries are rewritten with: a stored set, or by rules where there is none."""
    return field_texts.load_tools(site, tools_id) if tools_id else field_texts.rule_based_tools(benchmark)


def store(site: Site, version_id: int, target: RunTarget, made: Made, llm: str, person: str, *, label: str = "") -> str:
    """Store what was made, complete; returns the set's id.

    Args:
        site: where to.
        version_id: of the benchmark.
        target: its ids.
        made: with nothing pending.
        llm: the language model; "" for rules and original queries.
        person: whose it is.
        label: the owner's words.

    Raises:
        MftrError: the language model gave no valid answer at all; a run over that would be 0 from end to end.
    """
    if llm:
        _require_answers(made, llm)
    usage = made.usage
    if llm:
        counts = {"llm_calls": usage.calls, "llm_seconds": usage.seconds, "llm_cost": usage.cost}
        origin = Origin(FieldTextSource.LLM, llm, prompts(made.kind), "", counts)
    elif made.kind == "tools":
        origin = Origin(FieldTextSource.RULES, rules_version=RULES_VERSION)
    else:
        origin = Origin(FieldTextSource.ORIGINAL)
    common = {"failures": made.failures, "label": label, "person": person}
    if made.kind == "tools":
        return field_texts.store_tools(site, version_id, target, made.tools, origin, **common).id  # type: ignore[arg-type]
    return field_texts.store_queries(site, version_id, target, made.queries, origin, **common).id  # type: ignore[arg-type]


def _require_answers(made: Made, llm: str) -> None:
    """Refuse texts in which nothing at all was answered: the model is at fault then, not the tools or queries."""
    blank = {tool_id for tool_id, failed in made.field_failures.items() if len(failed) == len(Field)}
    if made.queries or any(tool.tool_id not in blank for tool in made.tools) or not made.failures:
        return
    verb = "standardize" if made.kind == "tools" else "rewrite"
    raise MftrError(
        f"{llm} gave no valid answer for any of {len(made.failures):,} {made.kind}, so nothing can be ranked; the "
        f"last: {list(made.failures.values())[-1]}. Choose another model, or ask again with `equirank mftr {verb} "
        "--retry-failed`"
    )
