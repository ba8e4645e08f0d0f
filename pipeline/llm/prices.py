"""What a token costs: registered prices first, then the table that comes with litellm, else unknown (not 0)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.errors import JudgeError

_TABLE = "model_prices_and_context_window_backup.json"
#: The most that a registered price may be, in US dollars a million tokens: more is a slip of the pen.
_DEAREST = 1e6
#: Prices of calls with long prompts, by thousands of tokens.
_LONG = re.compile(r"(?:input|output)_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True)
class Price:
    """US dollars a token.

    Attributes:
        batch_prompt, batch_completion: in batch mode, where the provider states it.
        long: for all tokens of a call whose prompt has more tokens than the number says; longest first.
        fee: US dollars a call, whatever its tokens, such as that of a search.
    """

    prompt: float
    completion: float
    batch_prompt: float | None = None
    batch_completion: float | None = None
    long: tuple[tuple[int, Price], ...] = ()
    fee: float = 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int, *, batch: bool = False) -> float:
        """Dollars for so many tokens; discounts for cached prompts are left out, so this never says too little."""
        for above, price in self.long:
            if prompt_tokens > above:
                return self.fee + price.cost(prompt_tokens, completion_tokens, batch=batch)
        prompt, completion = self.prompt, self.completion
        if batch:
            prompt = prompt if self.batch_prompt is None else self.batch_prompt
            completion = completion if self.batch_completion is None else self.batch_completion
        return self.fee + prompt_tokens * prompt + completion_tokens * completion


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    """The prices of litellm, read from its package without importing it (which takes seconds)."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).with_name(_TABLE)
    if not path.is_file():
        return {}
    table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def price_of(model: str, registered: Mapping[str, Price]) -> Price | None:
    """The price of ``provider/model``; None when nobody states it."""
    if model in registered:
        return registered[model]
    provider, _, name = model.partition("/")
    entry = _table().get(model)
    if entry is None:
        entry = _table().get(name)
        if not isinstance(entry, dict) or entry.get("litellm_provider") != provider:
            return None
    try:
        return _read(entry, name)
    except (KeyError, TypeError, ValueError):
        return None


def _read(entry: Mapping[str, Any], model: str) -> Price:
    """The prices of an entry of the table, with those of long prompts."""
    long = {
        int(found[1]) * 1000: _at(entry, f"_above_{found[1]}k_tokens")
        for name in entry
        if (found := _LONG.fullmatch(name))
    }
    # Some state each length as an entry of its own.
    tiers = [(int(tier["range"][0]), _at(tier, "")) for tier in entry.get("tiered_pricing", ()) if "range" in tier]
    long |= {above: price for above, price in tiers if above > 0}
    short = _at(entry, "") if "input_cost_per_token" in entry else dict(tiers)[0]
    return replace(short, long=tuple(sorted(long.items(), reverse=True)), fee=_fee(entry, model))


def _fee(entry: Mapping[str, Any], model: str) -> float:
    """What a call costs beside its tokens: a fee for it, and the dearest search where every call searches."""
    fee = float(entry.get("input_cost_per_request") or 0.0)
    searches = entry.get("search_context_cost_per_query") or {}
    always = entry.get("litellm_provider") == "perplexity" or "search" in model
    return fee + (max(map(float, searches.values()), default=0.0) if always else 0.0)


def _at(entry: Mapping[str, Any], length: str) -> Price:
    """The prices at one length of prompts; a side that is not stated for it costs what it does for shorter ones."""

    def stated(name: str) -> float | None:
        value = entry.get(name)
        return None if value is None else float(value)

    prompt, completion = stated(f"input_cost_per_token{length}"), stated(f"output_cost_per_token{length}")
    if prompt is None:
        prompt = float(entry["input_cost_per_token"])
    if completion is None:
        completion = float(entry["output_cost_per_token"])
    return Price(
        prompt,
        max(completion, stated("output_cost_per_reasoning_token") or 0.0),
        stated(f"input_cost_per_token{length}_batches"),
        stated(f"output_cost_per_token{length}_batches"),
    )


def parse_prices(text: str) -> dict[str, Price]:
    """``hosted_vllm/qwen=0.1/0.4``: dollars a million prompt and completion tokens, several separated by commas.

    Raises:
        JudgeError: the text has another shape.
    """
    prices: dict[str, Price] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        model, _, numbers = part.rpartition("=")
        prompt, slash, completion = numbers.partition("/")
        try:
            values = float(prompt), float(completion)
        except ValueError:
            values = (math.nan, math.nan)
        if not model or not slash or not all(0 <= value <= _DEAREST for value in values):
            raise JudgeError(
                f"{part[:200]!r} is no price: write provider/model=PROMPT/COMPLETION in dollars a million tokens, each "
                f"0 to {_DEAREST:,.0f}, such as hosted_vllm/qwen3=0.1/0.4 (0/0 for a model that costs nothing)"
            )
        prices[model.strip()] = Price(values[0] / 1e6, values[1] / 1e6)
    return prices
