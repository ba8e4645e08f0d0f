"""One call through litellm, and what its many errors mean for us."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import warnings
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeGuard

from pipeline.errors import JudgeError
from pipeline.llm.config import AskingConfig
from pipeline.llm.http_guard import Redirected, guard, watched
from pipeline.llm.providers import redacted, require_key
from pipeline.llm.waiting import parse_retry_after

#: A count of tokens from here on is none: no call is that long.
MOST_TOKENS = 1 << 31


class Trouble(Enum):
    """What a failed call means."""

    #: The provider did not take it; it cost nothing and may be tried again.
    TURNED_AWAY = "turned away"
    #: It broke off after it was sent; it may have cost its worst and may be tried again.
    BROKE_OFF = "broke off"
    #: The request itself is refused (400, 422): another form may be taken.
    FORM_REFUSED = "form refused"
    #: This question is refused whatever its form: too long, or against the provider's rules.
    QUESTION_REFUSED = "question refused"
    #: Nothing can be asked of this model: no key, no permission, no such model.
    MODEL_REFUSED = "model refused"
    #: Another address was named instead of an answer; nothing was sent there.
    REDIRECTED = "redirected"


class CallFailed(Exception):
    """A call without an answer.

    Attributes:
        trouble: what it means.
        reason: in words, without secrets.
        retry_after: seconds that the provider asked us to wait.
        seconds: how long the call took.
    """

    seconds = 0.0

    def __init__(self, trouble: Trouble, reason: str, retry_after: float | None = None) -> None:
        """Keep what is known."""
        super().__init__(reason)
        self.trouble, self.reason, self.retry_after = trouble, reason, retry_after


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        prompt_tokens, completion_tokens: as the provider counts them; None when it does not say.
        seconds: wall time of the call.
        problem: why a reply could not be read, "" where it was.
    """

    text: str | None
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float
    problem: str = ""


@lru_cache(maxsize=1)
def _litellm() -> Any:
    """The package, imported late (5 s) and made quiet: no fetched price map, no telemetry, no prints, no logs."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    settings: Any = litellm
    settings.telemetry = False
    settings.suppress_debug_info = True
    settings.drop_params = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        # Its log lines can hold headers and whole prompts. So can pydantic's warnings of replies in another shape.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    guard(settings)
    return settings


def prepare(model: str, config: AskingConfig) -> None:
    """Check that the model can be asked before anything is sent.

    Raises:
        JudgeError: its provider is unknown, or needs a key that the environment does not have.
    """
    if not config.base_url_of(model):
        require_key(model)
    litellm = _litellm()
    try:
        litellm.get_llm_provider(model=model)
    except Exception:  # litellm's own class, with advice that does not fit here
        raise JudgeError(
            f"{model!r} names no provider that litellm knows: write provider/model, such as openai/gpt-4o-mini"
        ) from None


def require_bound(model: str) -> None:
    """Check that the length of the model's answers can be bounded, without which no budget in money can be kept.

    Raises:
        JudgeError: its provider takes no bound.
    """
    provider, _, name = model.partition("/")
    takes = _litellm().get_supported_openai_params(model=name, custom_llm_provider=provider)
    if takes is not None and not {"max_tokens", "max_completion_tokens"} & set(takes):
        raise JudgeError(
            f"a budget in money cannot be kept: {model} takes no bound on the length of its answers. Choose another "
            "model, or limit the number of calls instead"
        )


async def call(model: str, body: dict[str, Any], config: AskingConfig) -> Reply:
    """Ask once.

    Raises:
        CallFailed: there is no answer.
    """
    import httpx

    base_url = config.base_url_of(model)
    where: dict[str, Any] = {"api_base": base_url, "api_key": config.api_key or "none"} if base_url else {}
    timeout = httpx.Timeout(config.read_seconds, connect=config.connect_seconds)
    start = time.perf_counter()
    with watched() as found:
        try:
            async with asyncio.timeout(config.call_seconds):
                response = await _litellm().acompletion(
                    model=model, **body, **where, timeout=timeout, max_retries=0, num_retries=0, stream=False
                )
        except Exception as error:  # litellm's classes differ from provider to provider
            seconds = time.perf_counter() - start
            if found and not isinstance(found[0], Redirected):
                return Reply(None, None, None, None, seconds, str(found[0]))
            if found:
                failure = _redirected(str(found[0]), base_url, config)
            elif isinstance(error, TimeoutError):
                failure = CallFailed(Trouble.BROKE_OFF, f"no answer within {config.call_seconds:g} s")
            else:
                failure = _understood(error, config)
            failure.seconds = seconds
            raise failure from None
    return _reply(response, time.perf_counter() - start)


def _redirected(target: str, base_url: str, config: AskingConfig) -> CallFailed:
    to = redacted(target, config.api_key) or "another one that it does not name"
    advice = ". If models are to be asked there, set EQUIRANK_LLM_BASE_URL to it" if base_url and target else ""
    return CallFailed(Trouble.REDIRECTED, f"its address redirects to {to}, and nothing was sent there{advice}")


def _reply(response: Any, seconds: float) -> Reply:
    try:
        choice = response.choices[0]
        text, finish = choice.message.content, choice.finish_reason
    except (AttributeError, IndexError, TypeError):
        text, finish = None, None
    usage = getattr(response, "usage", None)
    prompt, completion = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    return Reply(
        text if isinstance(text, str) else None,
        finish if isinstance(finish, str) else None,
        prompt if _is_count(prompt) and prompt > 0 else None,
        completion if _is_count(completion) else None,
        seconds,
    )


def _is_count(value: object) -> TypeGuard[int]:
    """Whether it can be a number of tokens: a server may say anything, and 10^30 would not even be stored."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS


def _understood(error: Exception, config: AskingConfig) -> CallFailed:
    name, status = type(error).__name__, getattr(error, "status_code", None)
    # What litellm cannot read it reports with its whole traceback, and with it the paths of this machine.
    said = str(error).replace("litellm.", "", 1).partition("Traceback (most recent call last)")[0]
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    retry_after = parse_retry_after(headers.get("retry-after"))
    reason = redacted(said, config.api_key) or name
    if name in {"ContextWindowExceededError", "ContentPolicyViolationError"}:
        return CallFailed(Trouble.QUESTION_REFUSED, reason)
    if status == 429:
        return CallFailed(Trouble.TURNED_AWAY, reason, retry_after)
    if name == "Timeout" or status == 408:
        return CallFailed(Trouble.BROKE_OFF, f"no answer in time ({reason})", retry_after)
    if status in {401, 402, 403, 404}:
        return CallFailed(Trouble.MODEL_REFUSED, reason)
    if isinstance(status, int) and 400 <= status < 500:
        return CallFailed(Trouble.FORM_REFUSED, reason)
    if isinstance(status, int) and status >= 500 and headers:
        # The server itself answered with an error: nothing was generated.
        return CallFailed(Trouble.TURNED_AWAY, reason, retry_after)
    return CallFailed(Trouble.BROKE_OFF, reason, retry_after)
