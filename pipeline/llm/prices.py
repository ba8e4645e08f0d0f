"""What a token costs: registered prices first, then the table that comes with litellm, else unknown (not 0)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.errors import JudgeError

_TABLE = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True)
class Price:
    """US dollars a token.

    Attributes:
        batch_prompt, batch_completion: in batch mode, where the provider states it.
    """

    prompt: float
    completion: float
    batch_prompt: float | None = None
    batch_completion: float | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int, *, batch: bool = False) -> float:
        """Dollars for so many tokens; discounts for cached prompts are left out, so this never says too little."""
        prompt, completion = self.prompt, self.completion
        if batch:
            prompt = prompt if self.batch_prompt is None else self.batch_prompt
            completion = completion if self.batch_completion is None else self.batch_completion
        return prompt_tokens * prompt + completion_tokens * completion


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
        prompt = _highest(entry, "input_cost_per_token")
        completion = _highest(entry, "output_cost_per_token", "output_cost_per_reasoning_token")
    except (KeyError, TypeError, ValueError):
        return None
    return Price(
        prompt, completion, entry.get("input_cost_per_token_batches"), entry.get("output_cost_per_token_batches")
    )


def _highest(entry: Mapping[str, Any], *names: str) -> float:
    """The highest of the prices that may apply; the first must be stated."""
    return max(float(entry[names[0]]), *(float(entry.get(name) or 0) for name in names))


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
        if not model or not slash or not all(math.isfinite(value) and value >= 0 for value in values):
            raise JudgeError(
                f"{part!r} is no price: write provider/model=PROMPT/COMPLETION in dollars a million tokens, such as "
                "hosted_vllm/qwen3=0.1/0.4 (0/0 for a model that costs nothing)"
            )
        prices[model.strip()] = Price(values[0] / 1e6, values[1] / 1e6)
    return prices
