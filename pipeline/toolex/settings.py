"""Every choice of an expansion: judges, retrievers, rules and bounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from pipeline.errors import UsageError
from pipeline.llm.prompts import load_prompt
from pipeline.retrieval.contract import Preset

#: Prompt file of each stage, in order.
DECOMPOSE_PROMPT = "toolex_decompose"
VERIFY_PROMPT = "toolex_verify"
AUDIT_PROMPT = "toolex_audit"

#: The least and the most that each bound may be; more would only cost time and money.
BOUNDS = {
    "depth": (1, 1_000),
    "cap": (1, 10_000),
    "decompose_retries": (0, 20),
    "decompose_tokens": (1, 1_000_000),
    "verdict_tokens": (1, 1_000_000),
}


class Stage(StrEnum):
    """The three stages; also the purpose that their calls are metered under."""

    DECOMPOSE = "decompose"
    VERIFY = "verify"
    AUDIT = "audit"


class VerifyRule(StrEnum):
    """What makes a candidate valid: both answers (the paper's text), or the operation alone (its prompt)."""

    BOTH = "both"
    FUNCTION_ONLY = "function_only"


class AuditRule(StrEnum):
    """What makes a combination valid: both answers (the paper's text), or coverage alone (its prompt)."""

    BOTH = "both"
    COVERAGE = "coverage"


class RepeatedTool(StrEnum):
    """A choice of one tool for two sub-queries: no candidate, or the smaller set that it is."""

    DROP = "drop"
    COLLAPSE = "collapse"


@dataclass(frozen=True)
class PoolMember:
    """One retriever that candidates come from.

    Attributes:
        model: registry key, or whatever ``resolve_model`` takes.
        preset: ``card`` or ``paper``.
    """

    model: str
    preset: Preset = Preset.CARD


@dataclass(frozen=True)
class ToolexSettings:
    """The settings of one run; the defaults are the paper's where it states them.

    Attributes:
        decompose_judge, verify_judge, audit_judge: language models, ``provider/model``.
        pool: the retrievers whose results are candidates.
        depth: results that each retriever gives a sub-query (K).
        verify: see ``VerifyRule``.
        audit: see ``AuditRule``.
        repeated_tool: see ``RepeatedTool``.
        cap: combinations of a query that are audited at most; C* needs no audit and does not count.
        decompose_retries: further draws after a decomposition that is no bijection.
        retry_temperature: of the further draws; the first is greedy.
        decompose_tokens, verdict_tokens: the longest answer of stage 1, and of stages 2 and 3.
    """

    decompose_judge: str = "deepseek/deepseek-v3.2"
    verify_judge: str = "openai/gpt-4o-mini"
    audit_judge: str = "anthropic/claude-sonnet-5"
    pool: tuple[PoolMember, ...] = (PoolMember("qwen3-emb-4b"),)
    depth: int = 20
    verify: VerifyRule = VerifyRule.BOTH
    audit: AuditRule = AuditRule.BOTH
    repeated_tool: RepeatedTool = RepeatedTool.DROP
    cap: int = 100
    decompose_retries: int = 3
    retry_temperature: float = 0.7
    decompose_tokens: int = 2048
    verdict_tokens: int = 512

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            UsageError: an unknown rule, no judge, no retriever, one named twice, or a bound outside of ``BOUNDS``.
        """
        for name, rules in (("verify", VerifyRule), ("audit", AuditRule), ("repeated_tool", RepeatedTool)):
            value = getattr(self, name)
            if value not in list(rules):
                raise UsageError(f"The setting {name} is {value!r}; choose {' or '.join(rules)}.")
            object.__setattr__(self, name, rules(value))
        for stage in Stage:
            provider, slash, model = self.judge(stage).partition("/")
            if not provider or not slash or not model:
                raise UsageError(
                    f"The judge of the stage {stage} is {self.judge(stage)!r}; name it provider/model, such as "
                    "openai/gpt-4o-mini."
                )
        if not self.pool:
            raise UsageError("Name at least one retriever that candidates come from.")
        if len({member.model for member in self.pool}) < len(self.pool):
            raise UsageError("A retriever is named twice among those that candidates come from; name each once.")
        for name, (least, most) in BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise UsageError(
                    f"The setting {name} is {getattr(self, name):,}; give a number from {least} to {most:,}."
                )

    def judge(self, stage: Stage) -> str:
        """The language model of a stage."""
        return {
            Stage.DECOMPOSE: self.decompose_judge,
            Stage.VERIFY: self.verify_judge,
            Stage.AUDIT: self.audit_judge,
        }[stage]

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON can hold them; see ``settings_from_json``."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values

    @property
    def hash(self) -> str:
        """sha256 hex of every setting and the version of every prompt: what decides the outcome beside the input."""
        content = json.dumps({"settings": asdict(self), "prompts": prompt_references()}, sort_keys=True)
        return hashlib.sha256(f"equirank toolex 1\n{content}".encode()).hexdigest()

    @property
    def sentence(self) -> str:
        """The settings in words, for the description of the benchmark they made."""
        pool = " + ".join(member.model for member in self.pool)
        return (
            f"decomposed by {self.decompose_judge}, verified by {self.verify_judge}, audited by {self.audit_judge}; "
            f"candidates: top {self.depth} of {pool}; verify = {self.verify}, audit = {self.audit}, repeated_tool = "
            f"{self.repeated_tool}, at most {self.cap} combinations a query"
        )


def settings_from_json(values: Mapping[str, Any]) -> ToolexSettings:
    """The settings that ``as_json`` wrote.

    Raises:
        UsageError: a setting is unknown or means nothing.
    """
    unknown = sorted(values.keys() - {field.name for field in fields(ToolexSettings)})
    if unknown:
        raise UsageError(f"Unknown ToolEX settings: {', '.join(unknown)}.")
    pool = tuple(PoolMember(member["model"], Preset(member["preset"])) for member in values.get("pool", ()))
    return ToolexSettings(**{**values, **({"pool": pool} if pool else {})})


def prompt_references() -> dict[str, str]:
    """``name@version`` of each stage's prompt."""
    names = {Stage.DECOMPOSE: DECOMPOSE_PROMPT, Stage.VERIFY: VERIFY_PROMPT, Stage.AUDIT: AUDIT_PROMPT}
    return {str(stage): load_prompt(name).reference for stage, name in names.items()}
