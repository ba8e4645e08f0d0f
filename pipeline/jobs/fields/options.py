"""What a request for a method with fields settles to: defaults filled in, stored texts found, identity complete."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pipeline.baselines.methods import method as method_entry
from pipeline.baselines.methods import method_preset
from pipeline.errors import UsageError
from pipeline.formats.messages import quote
from pipeline.jobs.fields.methods import LLM, ORIGINAL, RULES, FieldMethod, FieldOptions
from pipeline.jobs.site import Site
from pipeline.mftr.settings import DEFAULT_PRESET, MftrSettings, Penalty, Weighting, preset
from store.access import mftr
from store.errors import NotFound
from store.field_text_models import FieldTextKind, ParameterSource
from store.records import BenchmarkRecord
from store.settings import Settings

if TYPE_CHECKING:
    from pipeline.jobs.evaluation_request import Evaluation, EvaluationRequest
    from pipeline.retrieval.contract import Contract

#: The language model of the MFTR paper (§4.4).
DEFAULT_LLM = "openai/gpt-4o-mini"


def method_settings(method: FieldMethod, name: str) -> MftrSettings:
    """MFTR's settings of a preset, as a variant changes them.

    Raises:
        UsageError: there is no such preset.
    """
    settings = preset(name or DEFAULT_PRESET)
    if method is FieldMethod.WITHOUT_WEIGHTING:
        return replace(settings, weighting=Weighting.MEAN, penalty=Penalty.NONE)
    if method is FieldMethod.WITHOUT_PENALTY:
        return replace(settings, penalty=Penalty.NONE)
    return settings


def settings_of(evaluation: Evaluation) -> MftrSettings:
    """MFTR's settings of a request."""
    assert evaluation.options is not None
    return method_settings(evaluation.options.method, evaluation.options.preset)


def preset_name(method: FieldMethod, name: str) -> str:
    """The method's preset, its default for ""; "" where it has none.

    Raises:
        UsageError: it has no such preset.
    """
    if method.needs.fields:
        preset(name or DEFAULT_PRESET)
        return name or DEFAULT_PRESET
    found = method_preset(method_entry(method), name)
    return "" if found is None else found.name


def settled_options(
    site: Site, request: EvaluationRequest, method: FieldMethod, version: BenchmarkRecord, contract: Contract
) -> FieldOptions:
    """The options of a request on a stored benchmark, whose model encodes by ``contract``.

    Raises:
        NotFound: named field texts or weights are not stored.
        UsageError: they belong to something else, an option has no such value, or the budget is over the limit.
    """
    options = plain_options(site.settings, request, method)
    tools, queries = options.tools, options.queries
    if tools not in ("", RULES, LLM):
        tools = _stored(site, tools, FieldTextKind.TOOLS, version)
    if queries not in ("", ORIGINAL, LLM):
        queries = _stored(site, queries, FieldTextKind.QUERIES, version)
    weights = options.weights and _weights(site, options.weights, version, contract, tools, queries)
    return replace(options, tools=tools, queries=queries, weights=weights)


def plain_options(settings: Settings, request: EvaluationRequest, method: FieldMethod) -> FieldOptions:
    """The options of a request, without looking into the store.

    Raises:
        UsageError: an option has no such value, means nothing to the method, or the budget is over the limit.
    """
    needs = method.needs
    for name, said, used in (
        ("standardizer", request.standardizer, needs.tools),
        ("rewriter", request.rewriter, needs.queries),
        ("weights", request.weights, needs.learns),
    ):
        if said and not used:
            means = "mean" if name == "weights" else "means"
            raise UsageError(f"the {name} {means} nothing to the method {method}: leave the option out")
    if request.instruction and needs.fields:
        raise UsageError(f"{method} makes queries of its own; instructions mean nothing to it: leave them out")
    tools = (request.standardizer or RULES) if needs.tools else ""
    queries = (request.rewriter or ORIGINAL) if needs.queries else ""
    if method in (FieldMethod.REWRITE_ONLY, FieldMethod.WEIGHTING_REWRITE) and queries == ORIGINAL:
        raise UsageError(f"{method} rewrites queries: choose the rewriter llm, or stored rewritten queries")
    asks = needs.asks or LLM in (tools, queries)
    llm = (request.llm or DEFAULT_LLM) if asks else ""
    if asks:
        _check_budget(settings, request)
    name = preset_name(method, request.method_preset)
    details: dict[str, Any] = {}
    if needs.fields:
        details["settings"] = _json(asdict(method_settings(method, name)))
    details |= _versions(method, name, tools, queries)
    return FieldOptions(method, name, tools, queries, request.weights, llm, details)


def _versions(method: FieldMethod, name: str, tools: str, queries: str) -> dict[str, Any]:
    """Versions of the rules and prompts that decide the texts, and a baseline's own settings."""
    found: dict[str, Any] = {}
    if tools == RULES:
        from pipeline.mftr.rules import RULES_VERSION

        found["rules"] = RULES_VERSION
    prompts: list[str] = []
    for kind, source in (("tools", tools), ("queries", queries)):
        if source == LLM:
            from pipeline.jobs.fields.llm_texts import prompts as prompts_of

            prompts += prompts_of(kind)
    if method.needs.asks or method is FieldMethod.ONLINERAG:
        from pipeline.jobs.baselines import baseline_identity

        found |= baseline_identity(method, name)
    if prompts:
        found["prompts"] = sorted(prompts)
    return found


def _stored(site: Site, name: str, kind: FieldTextKind, version: BenchmarkRecord) -> str:
    with site.database.reading() as session:
        try:
            found = mftr.field_texts(session, name)
        except NotFound:
            words = f"{RULES} or {LLM}" if kind is FieldTextKind.TOOLS else f"{ORIGINAL} or {LLM}"
            raise NotFound(
                f"there are no stored {kind} in fields called {quote(name)}: choose {words}, or the id of a set that "
                "`equirank mftr texts` lists"
            ) from None
    if found.kind != kind:
        raise UsageError(f"the field texts {found.id[:8]} are {found.kind}; what is needed here are {kind}")
    if found.benchmark_version_id != version.id:
        raise UsageError(f"the field texts {found.id[:8]} belong to another benchmark version than {version.name}")
    return found.id


def _weights(site: Site, set_id: str, version: BenchmarkRecord, contract: Contract, tools: str, queries: str) -> str:
    """The whole id of imported weights, which mean nothing to other texts or another encoding than theirs."""
    with site.database.reading() as session:
        found = mftr.parameters(session, set_id)
    if found.benchmark_version_id != version.id:
        raise UsageError(f"the weights {set_id[:8]} belong to another benchmark version than {version.name}")
    if found.source is not ParameterSource.IMPORTED:
        raise UsageError(f"the weights {set_id[:8]} were learned here: leave them out and the same are used again")
    if found.contract_hash != contract.hash:
        raise UsageError(f"the weights {set_id[:8]} were imported for another model or encoding preset")
    if (found.tools, found.queries) != (tools, queries):
        raise UsageError(
            f"the weights {set_id[:8]} were imported with other texts: give the standardizer {found.tools[:12]} and "
            f"the rewriter {found.queries[:12]} with them"
        )
    return found.id


def _check_budget(settings: Settings, request: EvaluationRequest) -> None:
    budget, limit = request.budget, settings.llm_budget_dollars
    if budget is not None and not (math.isfinite(budget) and 0 <= budget <= (limit or math.inf)):
        most = f"0 to {limit:g} (EQUIRANK_LLM_BUDGET_DOLLARS)" if limit else "0 or more"
        raise UsageError(f"the budget is {budget:g} US dollars: choose {most}")
    if budget is None and not limit and not request.batch:
        raise UsageError(
            "a language model is asked and nobody says what that may cost: give a budget in US dollars, or write the "
            "questions to a batch file"
        )


def _json(value: Any) -> Any:
    """As it comes back from JSON, so that an identity is the same before and after it was stored."""
    return json.loads(json.dumps(value))
