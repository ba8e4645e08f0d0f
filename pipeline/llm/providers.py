"""Providers by the first part of a model's name, and the keys that they need, which come from the environment only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pipeline.errors import JudgeError

#: The variable that litellm reads each provider's key from; one of several suffices.
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
}
#: Providers that an OpenAI-compatible base address stands in for.
COMPATIBLE = frozenset({"openai", "hosted_vllm", "openai_like", "custom_openai"})
#: Providers that take ``top_k``; others refuse a request that has it.
TAKES_TOP_K = frozenset({"anthropic", "cohere", "gemini", "hosted_vllm", "ollama", "ollama_chat", "vertex_ai"})

_NAME = re.compile(r"[a-z][a-z0-9_]*/[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,190}")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"(sk-[A-Za-z0-9_*.-]{3,}|AIza[A-Za-z0-9_-]{10,}|(?<=[Bb]earer )\S+|"
    r"(?<=://)[^/@\s]+(?=@)|(?<=[?&]key=)[^&\s]+|(?<=api_key=)[^&\s,)]+)"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+")


def provider_of(model: str) -> str:
    """The provider of ``provider/model``.

    Raises:
        JudgeError: the name has another shape.
    """
    if not _NAME.fullmatch(model):
        raise JudgeError(
            f"{model[:200]!r} does not name a language model: write provider/model as litellm does, such as "
            "openai/gpt-4o-mini, anthropic/claude-sonnet-5 or hosted_vllm/NAME"
        )
    return model.split("/", 1)[0]


def has_key(provider: str) -> bool:
    """Whether the environment has this provider's key."""
    return any(os.environ.get(name, "").strip() for name in KEY_VARIABLES.get(provider, ()))


def providers_with_keys() -> tuple[str, ...]:
    """Known providers whose key is in the environment, sorted."""
    return tuple(sorted(provider for provider in KEY_VARIABLES if has_key(provider)))


def require_key(model: str) -> None:
    """Check before the first call.

    Raises:
        JudgeError: the provider needs a key that the environment does not have.
    """
    provider = provider_of(model)
    if provider in KEY_VARIABLES and not has_key(provider):
        also = (
            ", or set EQUIRANK_LLM_BASE_URL to an OpenAI-compatible server of your own"
            if provider in COMPATIBLE
            else ""
        )
        raise JudgeError(f"{model} needs a key: set {KEY_VARIABLES[provider][0]} in the environment{also}")


def redacted(text: str, *secrets: str, longest: int = 300) -> str:
    """Text of a provider for a message or a row: one line, cut, and without anything that is or looks like a key."""
    known = {value for name, value in os.environ.items() if _SECRET_NAME.search(name) and len(value) >= 6}
    for secret in sorted((known | set(secrets)) - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    line = _CONTROL.sub(" ", _SECRET_TEXT.sub("***", text)).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"
