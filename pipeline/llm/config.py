"""How models are asked: where, how often, how long, at what price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.errors import JudgeError
from pipeline.llm.prices import Price
from pipeline.llm.providers import COMPATIBLE, provider_of


@dataclass(frozen=True)
class ProviderLimit:
    """Bounds on requests to one provider, in this process.

    Attributes:
        concurrency: requests open at a time.
        per_minute: requests begun in a minute, evenly spaced; 0 for no bound.
    """

    concurrency: int = 16
    per_minute: int = 0


@dataclass(frozen=True)
class AskingConfig:
    """Everything about calls that does not decide an answer.

    Attributes:
        base_url: of an OpenAI-compatible server that takes the place of the providers in ``COMPATIBLE``.
        api_key: key for ``base_url`` only; no provider's key is ever sent there.
        limit: of each provider that ``limits`` does not name.
        connect_seconds, read_seconds, call_seconds: the longest wait for a connection, between two pieces of an
            answer, and for a whole call.
        attempts: how many invalid answers a question may get.
        retries: how many calls of a question may break off or be turned away.
        backoff_seconds, longest_wait_seconds: first and longest wait between two tries.
        hopeless_after: that many questions in a row without any reply from the provider end the work.
        prices: dollars a token by model, in place of the ones that litellm knows.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    limit: ProviderLimit = ProviderLimit()
    limits: Mapping[str, ProviderLimit] = field(default_factory=dict)
    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    call_seconds: float = 120.0
    attempts: int = 4
    retries: int = 6
    backoff_seconds: float = 1.0
    longest_wait_seconds: float = 60.0
    hopeless_after: int = 20
    prices: Mapping[str, Price] = field(default_factory=dict)

    def limit_of(self, provider: str) -> ProviderLimit:
        """The bounds for this provider."""
        return self.limits.get(provider, self.limit)

    def base_url_of(self, model: str) -> str:
        """Where this model is asked, "" for its provider's own address."""
        return self.base_url if provider_of(model) in COMPATIBLE else ""


def parse_limits(text: str) -> dict[str, ProviderLimit]:
    """``anthropic=8/50, openai=32``: requests open at a time and, after a slash, begun in a minute.

    Raises:
        JudgeError: the text has another shape.
    """
    limits: dict[str, ProviderLimit] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        provider, separator, numbers = part.partition("=")
        concurrency, _, per_minute = numbers.partition("/")
        try:
            limit = ProviderLimit(int(concurrency), int(per_minute or 0))
        except ValueError:
            limit = ProviderLimit(0)
        if not provider.strip() or not separator or limit.concurrency < 1 or limit.per_minute < 0:
            raise JudgeError(
                f"{part!r} does not say how often a provider may be asked: write provider=OPEN or "
                "provider=OPEN/PER_MINUTE, such as anthropic=8/50"
            )
        limits[provider.strip()] = limit
    return limits
