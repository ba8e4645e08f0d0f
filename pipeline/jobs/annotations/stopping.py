"""Whether an expansion of the command line ended because its budget did: no job says so, its ledger does."""

from __future__ import annotations

import math

from pipeline.jobs.annotations.following import AnnotationProgress
from pipeline.jobs.llm_answers import asking_config
from pipeline.jobs.site import Site
from pipeline.llm.prices import price_of
from pipeline.toolex.settings import settings_from_json

#: The most tokens that a prompt may be are its bytes, about four a token; prompts longer than the mean take more.
_LONGEST_PROMPT = 6


def stopped_by_budget(site: Site, one: AnnotationProgress) -> bool:
    """Whether what is left is less than a next call may cost, of the stages that were asked so far.

    Args:
        site: its prices.
        one: an expansion without a job that is not done.
    """
    if one.budget.max_calls is not None and one.spent.calls >= one.budget.max_calls:
        return True
    if one.budget.max_cost is None:
        return False
    settings, known = settings_from_json(one.record.settings), asking_config(site.settings).prices
    answer = max(settings.decompose_tokens, settings.verdict_tokens)
    dearest = 0.0
    for line in one.meter:
        price = price_of(line.model, known)
        if price is not None and line.usage.calls:
            prompt = _LONGEST_PROMPT * line.usage.prompt_tokens / line.usage.calls
            dearest = max(dearest, price.cost(math.ceil(prompt), answer))
    return one.budget.max_cost - one.spent.cost < dearest
