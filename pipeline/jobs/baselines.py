"""The rivals of MFTR and its ablation variants as evaluations: one call each, over the site's caches."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline.baselines.ablation_variants import Combination, Variant, variant
from pipeline.baselines.result import BaselineResult
from pipeline.benchmark import Benchmark
from pipeline.errors import UsageError
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.llm.records import Asker, Usage
from pipeline.mftr.schema import RewrittenQuery, StandardizedTool
from pipeline.mftr.settings import MftrSettings
from pipeline.retrieval.embedding_cache import EmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import CancelledCallback, ProgressCallback
from pipeline.run import Run, RunTarget

#: The variants of Table 3 that are not over four fields of our own standardizing on both sides.
VARIANTS = {
    FieldMethod.STAND_ONLY: "standardized-only",
    FieldMethod.REWRITE_ONLY: "rewrite-only",
    FieldMethod.STAND_REWRITE: "standardized-rewrite",
    FieldMethod.WEIGHTING_ONLY: "weighting-only",
    FieldMethod.WEIGHTING_STAND: "weighting-standardized",
    FieldMethod.WEIGHTING_REWRITE: "weighting-rewrite",
    FieldMethod.WITHOUT_WEIGHTING: "without-weighting",
    FieldMethod.WITHOUT_PENALTY: "without-penalty",
    FieldMethod.MFTR: "mftr",
}


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a baseline works on.

    Attributes:
        tools, queries: in fields, for the variants that need them.
        settings: MFTR's, for the variants with weights.
        llm: the language model, for those that ask one.
        method_preset: of PLUTo or OnlineRAG; "" for the others.
    """

    benchmark: Benchmark
    model: ModelSpec
    preset: str
    instruction: bool
    depth: int
    tools: Iterable[StandardizedTool] = ()
    queries: Iterable[RewrittenQuery] = ()
    settings: MftrSettings | None = None
    llm: str = ""
    method_preset: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A finished ranking, or how many questions wait.

    Attributes:
        run: None as long as questions wait for a batch's answers.
        efficiency: by name, as a run keeps it.
        pending: distinct questions that wait.
        failures: in words, what a language model gave no valid answer for.
        usage: of the answers that were used.
    """

    run: Run | None
    target: RunTarget | None
    efficiency: dict[str, Any]
    notes: tuple[str, ...] = ()
    pending: int = 0
    failures: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


def own_settings(method: FieldMethod, name: str = "") -> Any:
    """The settings of EasyTool, PLUTo or OnlineRAG under one of its presets."""
    if method is FieldMethod.EASYTOOL:
        from pipeline.baselines.easytool import EasyToolSettings

        return EasyToolSettings()
    if method is FieldMethod.ONLINERAG:
        from pipeline.baselines.onlinerag import OnlineSettings

        return OnlineSettings(projection=name == "unit-ball")
    from pipeline.baselines.pluto import Fill, PlutoSettings

    return PlutoSettings(fill=Fill.NONE if name == "paper" else Fill.FULL_DOC)


def baseline_identity(method: FieldMethod, name: str = "") -> dict[str, Any]:
    """A baseline's own settings under a preset, and the versions of its prompts, as JSON."""
    from pipeline.baselines import easytool, pluto, pluto_grounding
    from pipeline.llm.prompts import load_prompt

    own: dict[str, Any] = {"own": json.loads(json.dumps(asdict(own_settings(method, name)), default=str))}
    prompts = {
        FieldMethod.EASYTOOL: (easytool.OVERVIEW_PROMPT, easytool.GUIDE_PROMPT),
        FieldMethod.PLUTO: (
            pluto.PLAN_PROMPT,
            pluto.SELECT_PROMPT,
            pluto_grounding.USE_CASES_PROMPT,
            pluto_grounding.EDIT_PROMPT,
        ),
    }.get(method, ())
    if prompts:
        own["own prompts"] = sorted(load_prompt(prompt).reference for prompt in prompts)
    return own


def rank_baseline(
    method: FieldMethod,
    inputs: Inputs,
    asker: Asker | None = None,
    *,
    cache: EmbeddingCache | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelledCallback | None = None,
) -> Outcome:
    """Rank by EasyTool, PLUTo, OnlineRAG or a variant of Table 3.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        Cancelled: on request.
        JudgeError: the language model cannot be asked.
        MftrError, ModelError, UsageError: as the method.
    """
    common: dict[str, Any] = {"depth": inputs.depth, "cache": cache, "progress": progress, "cancelled": cancelled}
    if method in VARIANTS:
        return _variant(variant(VARIANTS[method]), inputs, common)
    common |= {"instruction": inputs.instruction, "settings": own_settings(method, inputs.method_preset)}
    if method is FieldMethod.ONLINERAG:
        from pipeline.baselines.onlinerag_retrieval import retrieve_onlinerag

        found = retrieve_onlinerag(inputs.benchmark, inputs.model, inputs.preset, **common)
        return Outcome(found.run, found.target, _costs(found.efficiency.as_json()), found.notes)
    if asker is None:
        raise UsageError(f"{method} asks a language model: name one and a budget")
    if method is FieldMethod.EASYTOOL:
        from pipeline.baselines.easytool import retrieve_easytool

        result = retrieve_easytool(inputs.benchmark, inputs.model, asker, inputs.llm, inputs.preset, **common)
    else:
        from pipeline.baselines.pluto_retrieval import retrieve_pluto

        result = retrieve_pluto(inputs.benchmark, inputs.model, asker, inputs.llm, inputs.preset, **common)
    return _of_result(result)


def _of_result(result: BaselineResult) -> Outcome:
    failures = tuple(f"{failed.subject}, {failed.what}: {failed.reason}" for failed in result.failures)
    found = result.retrieval
    if found is None:
        return Outcome(None, None, {}, (), result.pending, failures, result.usage)
    efficiency = found.efficiency.as_json()
    return Outcome(found.run, found.target, efficiency, found.notes, 0, failures, result.usage)


def _variant(row: Variant, inputs: Inputs, common: dict[str, Any]) -> Outcome:
    if inputs.instruction:
        raise UsageError(f"{row.label} has queries of its own making; instructions mean nothing to it")
    given: dict[str, Any] = {"standardized": inputs.tools, "rewritten": inputs.queries, **common}
    if row.combination is Combination.ONE_TEXT:
        from pipeline.baselines.one_text import retrieve_one_text

        found = retrieve_one_text(inputs.benchmark, row, inputs.model, inputs.preset, **given)
        return Outcome(found.run, found.target, _costs(found.efficiency.as_json()), found.notes)
    from pipeline.baselines.weighted import retrieve_weighted

    assert inputs.settings is not None
    weighed = retrieve_weighted(inputs.benchmark, row, inputs.model, inputs.preset, base=inputs.settings, **given)
    cost = {
        "query_ms": weighed.query_ms,
        "aggregation_ms": weighed.query_ms,
        "dimension": inputs.model.entry.dimension,
        "parameters": inputs.model.entry.parameters,
    }
    notes = (f"{row.label} of the MFTR paper's Table 3.", *weighed.notes)
    return Outcome(weighed.run, weighed.target, _costs(cost), notes)


def _costs(efficiency: dict[str, Any]) -> dict[str, Any]:
    """Without a language model its columns are 0, not unknown."""
    none = {"llm_calls_per_query": 0.0, "llm_seconds_per_query": 0.0, "llm_calls_per_tool": 0.0}
    return {**efficiency, **none}
