"""What people say of an expansion's settings, and back: options, differences, what the retrievers need."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pipeline.errors import UsageError
from pipeline.formats.messages import quote
from pipeline.jobs.evaluation_request import permissions
from pipeline.jobs.site import Site
from pipeline.retrieval.availability import Need, availability
from pipeline.retrieval.contract import Preset
from pipeline.retrieval.models import ModelSpec, resolve_model
from pipeline.toolex.settings import PoolMember, Stage, ToolexSettings

#: Settings that are said as they are.
_PLAIN = ("depth", "verify", "audit", "repeated_tool", "cap", "decompose_retries")
#: What is told of a need; the others are in words already.
_NEEDS = {Need.HUB: "the hub to be downloaded from", Need.GPU: "a GPU (on a processor it takes hours)"}


@dataclass(frozen=True)
class Choices:
    """What was said of the settings; whatever was not stays as it is.

    Attributes:
        judge: of every stage that has none of its own.
        decompose_judge, verify_judge, audit_judge: of one stage.
        pool: retrievers, as ``resolve_model`` takes them.
        preset: how all of them encode, ``card`` or ``paper``.
        depth, verify, audit, repeated_tool, cap, decompose_retries: see ``ToolexSettings``.
    """

    judge: str | None = None
    decompose_judge: str | None = None
    verify_judge: str | None = None
    audit_judge: str | None = None
    pool: tuple[str, ...] | None = None
    preset: str | None = None
    depth: int | None = None
    verify: str | None = None
    audit: str | None = None
    repeated_tool: str | None = None
    cap: int | None = None
    decompose_retries: int | None = None

    def over(self, base: ToolexSettings) -> ToolexSettings:
        """The settings with these choices made.

        Raises:
            UsageError: a choice means nothing.
        """
        if self.preset is not None and self.preset not in list(Preset):
            raise UsageError(f"unknown preset {quote(self.preset)}: choose {', '.join(Preset)}")
        changed: dict[str, Any] = {}
        for name in ("decompose_judge", "verify_judge", "audit_judge"):
            said = getattr(self, name) or self.judge
            if said is not None:
                changed[name] = said
        for name in _PLAIN:
            if getattr(self, name) is not None:
                changed[name] = getattr(self, name)
        if self.pool is not None or self.preset is not None:
            names = self.pool if self.pool is not None else tuple(member.model for member in base.pool)
            known = {member.model: member.preset for member in base.pool}
            changed["pool"] = tuple(
                PoolMember(name, Preset(self.preset) if self.preset else known.get(name, Preset.CARD)) for name in names
            )
        return replace(base, **changed)


def differences(before: ToolexSettings, after: ToolexSettings) -> str:
    """The settings that differ, as ``cap 100, here 50; …`` in words."""

    def words(value: object) -> str:
        return " + ".join(member.model for member in value) if isinstance(value, tuple) else str(value)

    return "; ".join(
        f"{field.name.replace('_', ' ')} {words(getattr(before, field.name))}, here {words(getattr(after, field.name))}"
        for field in fields(ToolexSettings)
        if getattr(before, field.name) != getattr(after, field.name)
    )


def as_options(settings: ToolexSettings) -> list[str]:
    """The options of ``equirank annotate`` that say these settings, the defaults left out."""
    default = ToolexSettings()
    judges = {stage: settings.judge(stage) for stage in Stage}
    words: list[str] = []
    if settings.decompose_judge == settings.verify_judge == settings.audit_judge:
        words += ["--judge", settings.audit_judge]
    else:
        for stage, judge in judges.items():
            if judge != default.judge(stage):
                words += [f"--judge-{stage}", judge]
    if settings.pool != default.pool:
        for member in settings.pool:
            words += ["--pool", member.model]
        presets = {member.preset for member in settings.pool}
        if presets != {Preset.CARD}:
            words += ["--preset", *sorted(presets)]
    for name in _PLAIN:
        if getattr(settings, name) != getattr(default, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(settings, name))]
    return words


def pool_notes(site: Site, settings: ToolexSettings) -> list[str]:
    """What retrievers of the pool need that is not here, in sentences; nothing is loaded.

    Raises:
        ModelError: one is unknown or not allowed.
    """
    said = []
    for model in pool_models(site, settings):
        needs = availability(model.entry, permissions(site.settings), gpu=False).needs
        if needs:
            words = " and ".join(_NEEDS.get(need, str(need)) for need in needs)
            said.append(
                f"candidates come from {model.entry.name}, which needs {words}; "
                "--pool names other retrievers, such as --pool bm25 --pool minilm, which come with EquiRank"
            )
    return said


def pool_models(site: Site, settings: ToolexSettings) -> list[ModelSpec]:
    """The retrievers of the pool, in order; raises as ``pool_notes``."""
    return [resolve_model(member.model, permissions=permissions(site.settings)) for member in settings.pool]
