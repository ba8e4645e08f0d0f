"""Naming the judges of an expansion: one language model a stage, and whether its key is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.annotation_words import STAGES
from dashboard.components.untrusted import plain
from pipeline.errors import JudgeError
from pipeline.llm.providers import COMPATIBLE, KEY_VARIABLES, has_key, provider_of
from pipeline.toolex.settings import Stage, ToolexSettings

PREFIX = "an_"


@dataclass(frozen=True)
class KeyState:
    """What asking a model needs here.

    Attributes:
        ready: whether it can be asked live.
        words: why, in a sentence without a full stop; it names variables, never what is in them.
        usable: whether the name is one at all; a batch file needs no more.
    """

    ready: bool
    words: str
    usable: bool = True


def key_state(model: str, base_url: str) -> KeyState:
    """Look at the environment; nothing is asked.

    Args:
        model: ``provider/model``.
        base_url: of the server that takes the place of OpenAI-compatible providers; "" for none.
    """
    try:
        provider = provider_of(model)
    except JudgeError as error:
        return KeyState(False, str(error), usable=False)
    if base_url and provider in COMPATIBLE:
        return KeyState(True, "asked at the server of EQUIRANK_LLM_BASE_URL")
    names = KEY_VARIABLES.get(provider, ())
    if not names:
        return KeyState(True, f"no key is known that {provider} needs")
    if has_key(provider):
        return KeyState(True, f"its key is set ({' or '.join(names)})")
    return KeyState(False, f"needs a key: set {names[0]} in the environment of the site and its worker")


def choose_judges(base_url: str, kind: str) -> tuple[dict[str, Any], dict[str, KeyState]]:
    """Draw a field a stage.

    Args:
        base_url: see ``key_state``.
        kind: what the benchmark retrieves: ``tool`` or ``skill``.

    Returns:
        Arguments of ``ToolexSettings``; and what each judge needs, by its name.
    """
    usual = ToolexSettings()
    said: dict[str, Any] = {}
    states: dict[str, KeyState] = {}
    for stage in Stage:
        title, does = STAGES[stage]
        with st.container(gap="xxsmall"):
            given = permalinks.text(
                f"{title} judge", PREFIX + stage.value, placeholder=usual.judge(stage),
                help=f"It {does.format(kind=kind)}. Write provider/model as litellm names it; empty takes the paper's.",
            )  # fmt: skip
            model = given.strip() or usual.judge(stage)
            state = key_state(model, base_url)
            if state.usable:
                icon = ":material/check:" if state.ready else ":material/key_off:"
                st.caption(f"{icon} {plain(model)}: {plain(state.words)}")
            else:
                st.caption(f":material/error: {plain(state.words)}")
        said[f"{stage.value}_judge"] = model
        states[model] = state
    return said, states
