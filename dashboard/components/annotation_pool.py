"""Choosing the retrievers that an expansion's candidates come from."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dashboard.components import permalinks
from dashboard.components.annotation_judges import PREFIX
from dashboard.components.numbers import size
from dashboard.components.run_choice import described_several
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.evaluation_request import permissions
from pipeline.retrieval.availability import Availability, all_availabilities
from pipeline.retrieval.contract import Preset
from pipeline.toolex.settings import PoolMember, ToolexSettings

#: Chosen at first where the paper's retriever does not work here at once.
_USUAL = ("bm25s", "minilm-l6")


@dataclass(frozen=True)
class ChosenPool:
    """Retrievers and depth.

    Attributes:
        members: empty where nothing is chosen.
        refused: why one cannot be used here, in words; "" where all can.
    """

    members: tuple[PoolMember, ...]
    depth: int
    refused: str = ""


def choose_pool(*, gpu: bool) -> ChosenPool:
    """Draw the widgets.

    Args:
        gpu: whether a worker with a GPU is there.
    """
    found = {item.entry.key: item for item in all_availabilities(permissions(the_site().settings), gpu=gpu)}
    paper = ToolexSettings().pool[0].model
    at_first = [paper] if _works(found.get(paper)) else [key for key in _USUAL if _works(found.get(key))]
    with st.container(gap="xsmall"):
        chosen = described_several(
            "Candidates come from", list(found), PREFIX + "pool", at_first,
            describe=lambda key: _described(found[key]), of="0", placeholder="choose retrievers",
            help="What none of them finds is not judged, so it never counts as valid. Several retrievers make "
            "the labels depend less on any one of them.",
        )  # fmt: skip
        if paper in found and paper not in chosen and not _works(found[paper]):
            st.caption(f"The paper takes {plain(found[paper].entry.name)}, which {found[paper].words}.")
        for key in chosen:
            item = found[key]
            if item.allowed and item.needs:
                st.caption(f":material/info: {plain(item.entry.name)} {item.words}.")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        depth = permalinks.number(
            "Results for a sub-query", PREFIX + "depth", 1, the_site().settings.limit_depth, ToolexSettings().depth,
            width=180,
            help="How many each retriever gives. Every one of them is a question to the judge of the second stage.",
        )  # fmt: skip
        preset = permalinks.segments(
            "Encoding", [str(p) for p in Preset], PREFIX + "preset", str(Preset.CARD),
            help="card: as the model card says. paper: as the papers' harness did.",
        )  # fmt: skip
    refused = [found[key] for key in chosen if not found[key].allowed]
    words = "".join(f"{item.entry.name} cannot be used here: {item.refused}\n" for item in refused)
    return ChosenPool(tuple(PoolMember(key, Preset(preset)) for key in chosen), depth, words.strip())


def _works(item: Availability | None) -> bool:
    return item is not None and item.allowed and not item.needs


def _described(item: Availability) -> str:
    parts = [item.entry.name]
    if item.entry.parameters:
        parts.append(size(item.entry.parameters))
    if item.needs or not item.allowed:
        parts.append(item.words)
    return " · ".join(parts)
