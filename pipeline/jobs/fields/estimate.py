"""How much work an evaluation with fields or a language model is; nothing is loaded and nobody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.jobs import measuring
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields import llm_texts as field_llm
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.methods import LLM, FieldMethod
from pipeline.jobs.fields.runs import OVER_FIELDS
from pipeline.jobs.fields.scoring import stage_texts
from pipeline.jobs.llm_answers import StoredAnswers, asking_config
from pipeline.jobs.site import Site
from pipeline.llm.estimate import SAMPLE, EstimateLine
from pipeline.llm.estimate import estimate as estimate_questions
from pipeline.llm.records import Check, Outcome, Pending, Question, Tell
from pipeline.mftr import fields
from pipeline.mftr.schema import StandardizedTool
from pipeline.retrieval.contract import PromptedText
from pipeline.retrieval.retrieve import Method

#: Calls of a tool and of a query that cannot be counted beforehand, as the first ones' multiples: EasyTool's guides
#: follow from its overviews, PLUTo's plans from its retrievals.
_GUIDES_PER_TOOL = 2.0
_PLUTO_CALLS = {"tools": 1.5, "queries": 20.0}


@dataclass(frozen=True)
class AskingEstimate:
    """What a language model will be asked.

    Attributes:
        calls: questions without a stored answer; retries come on top.
        cost: expected, in US dollars; None when the price is unknown.
        worst_cost: when every answer is as long as it can be; None likewise.
        rough: whether later questions follow from earlier answers, so that their number is a guess.
    """

    calls: int
    cost: float | None
    worst_cost: float | None
    rough: bool


def field_texts_to_encode(site: Site, evaluation: Evaluation) -> dict[str, list[PromptedText]]:
    """The distinct texts that a dense model will encode; empty for lexical ones.

    Texts that a language model has still to write are stood for by the rules' and the queries themselves.
    """
    options = evaluation.options
    assert options is not None
    if not evaluation.model.entry.dense:
        return {}
    if options.method not in OVER_FIELDS:
        return measuring.plain_texts(site, evaluation.version.id, evaluation.contract, Method.FULL_DOC)
    target = load_compiled(site, evaluation.version.id).target
    benchmark = load_benchmark(site, evaluation.version.id)
    tools_id, queries_id = _stored(options.tools), _stored(options.queries)
    if tools_id:
        tools = field_texts.tool_fields(site, tools_id, target)
    else:
        tools = fields.tool_fields(_by_rules(site, evaluation.version.id), target.tools)
    if queries_id:
        queries = field_texts.query_fields(site, queries_id, target)
    else:
        queries = fields.query_fields(field_texts.original_queries(benchmark), target.queries)
    return stage_texts(tools, queries, evaluation.contract)


def _stored(source: str) -> str:
    from pipeline.jobs.fields.asking import stored_id

    return stored_id(source)


@lru_cache(maxsize=2)
def _by_rules(site: Site, version_id: int) -> list[StandardizedTool]:
    return field_texts.rule_based_tools(load_benchmark(site, version_id))


def asking_estimate(site: Site, evaluation: Evaluation) -> AskingEstimate | None:
    """What a language model will be asked and what that costs; None where none is asked.

    Of a big benchmark a sample of the tools and queries is looked at.
    """
    options = evaluation.options
    if options is None or not options.asks:
        return None
    benchmark = load_benchmark(site, evaluation.version.id)
    target = load_compiled(site, evaluation.version.id).target
    store, prices = StoredAnswers(site.database), asking_config(site.settings).prices
    found: list[EstimateLine] = []
    factor = 1.0
    if LLM in (options.tools, options.queries):
        for kind, source, count in (
            ("tools", options.tools, len(target.tools)),
            ("queries", options.queries, len(target.queries)),
        ):
            if source != LLM or not count:
                continue
            step = max(1, count // (SAMPLE // 4))
            collector, part = _Collector(), slice(0, None, step)
            if kind == "tools":
                field_llm.standardize(benchmark, target, collector, options.llm, part)
            else:
                tools = _by_rules(site, evaluation.version.id)
                field_llm.rewrite(benchmark, target, tools, collector, options.llm, part)
            looked_at = len(range(0, count, step))
            total = round(len(collector.questions) * count / looked_at)
            found += estimate_questions(collector.questions, store=store, prices=prices, total=total)
    else:
        collector = _Collector()
        step = max(1, len(target.tools) // (SAMPLE // 4))
        # Their first questions show whole documents, as the four of standardizing do: a quarter of those.
        field_llm.standardize(benchmark, target, collector, options.llm, slice(0, None, step))
        quarter = collector.questions[::4]
        found = estimate_questions(quarter, prices=prices, total=len(target.tools))
        if options.method is FieldMethod.EASYTOOL:
            factor = 1 + _GUIDES_PER_TOOL
        else:
            per_query = _PLUTO_CALLS["queries"] * len(target.queries) / max(1, len(target.tools))
            factor = _PLUTO_CALLS["tools"] + per_query
    return AskingEstimate(
        round(factor * sum(line.calls for line in found)),
        _sum([line.expected_cost for line in found], factor),
        _sum([line.worst_cost for line in found], factor),
        options.method.needs.asks,
    )


def _sum(costs: Sequence[float | None], factor: float) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return factor * sum(known) if len(known) == len(costs) else None


class _Collector:
    """An ``Asker`` that notes what it is asked and answers nothing."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``."""
        self.questions += questions
        return [Pending(question.key) for question in questions]
