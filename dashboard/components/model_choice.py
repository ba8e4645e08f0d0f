"""Picking a retriever: a registered one with what it needs here, or one of the reader's own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl
import streamlit as st

from dashboard.components import permalinks
from dashboard.components.numbers import NONE, size, whole
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.evaluation_request import permissions
from pipeline.retrieval.availability import Availability, all_availabilities
from pipeline.retrieval.models import ENDPOINT_PREFIX

PREFIX = "ev_"
FIRST = "minilm-l6"


class Origin(StrEnum):
    """Where the model comes from; the words are part of permalinks."""

    REGISTRY = "Registered"
    HUB = "Hub"
    FOLDER = "Folder"
    ENDPOINT = "Endpoint"


@dataclass(frozen=True)
class ChosenModel:
    """What the reader named.

    Attributes:
        name: as ``resolve_model`` takes it; "" while nothing is named.
        endpoint_url: address of an endpoint, where one was given.
        known: the registered retriever, None for an own model.
    """

    name: str
    endpoint_url: str = ""
    known: Availability | None = None


def choose_model(*, gpu: bool) -> ChosenModel:
    """Draw the widgets that name a model.

    Args:
        gpu: whether a worker with a GPU is there.
    """
    settings = the_site().settings
    origins = [Origin.REGISTRY, Origin.HUB]
    if settings.allow_model_folders:
        origins.append(Origin.FOLDER)
    if settings.allow_endpoints:
        origins.append(Origin.ENDPOINT)
    origin = Origin(permalinks.segments("Model", [str(o) for o in origins], PREFIX + "from", str(Origin.REGISTRY)))
    if origin is Origin.REGISTRY:
        return _registered(gpu)
    if origin is Origin.HUB:
        name = permalinks.text(
            "Hub id and commit", PREFIX + "hub", placeholder="owner/name@0123…cdef (40 hex digits)",
            help="A commit says which weights are meant: without one they may change under the same name.",
        )  # fmt: skip
        return ChosenModel(name.strip())
    if origin is Origin.FOLDER:
        name = permalinks.text(
            "Folder on the worker's machine", PREFIX + "folder", placeholder="/models/my-retriever",
            help="A model in the shape of sentence-transformers or transformers, weights as safetensors.",
        )  # fmt: skip
        name = name.strip()
        return ChosenModel(name if not name or name.startswith(("/", "./", "../", "~")) else f"./{name}")
    name = permalinks.text(
        "Endpoint's model", PREFIX + "endpoint", placeholder="provider/model, as litellm names it",
        help="Keys are read from the worker's environment. The endpoint sees every text.",
    )  # fmt: skip
    url = ""
    if settings.endpoint_hosts:
        url = permalinks.text("Address, if it is not the provider's own", PREFIX + "url", placeholder="https://…/v1")
    name = name.strip().removeprefix(ENDPOINT_PREFIX)
    return ChosenModel(ENDPOINT_PREFIX + name if name else "", url.strip())


def _registered(gpu: bool) -> ChosenModel:
    found = all_availabilities(permissions(the_site().settings), gpu=gpu)
    by_key = {item.entry.key: item for item in found}
    key = permalinks.described_select(
        "Retriever",
        list(by_key),
        PREFIX + "model",
        FIRST,
        describe=lambda key: _described(by_key[key]),
        label_visibility="collapsed",
    )
    chosen = by_key[key]
    if chosen.refused:
        st.warning(plain(chosen.refused), icon=":material/block:")
    elif chosen.entry.notes:
        st.caption(plain(chosen.entry.notes))
    if st.button("All retrievers, and what they need", icon=":material/list:", type="tertiary", key="ev_all"):
        _all_retrievers(found)
    return ChosenModel(key, known=chosen)


@st.dialog("Registered retrievers", width="large")
def _all_retrievers(found: list[Availability]) -> None:
    st.caption("Weights that need the hub are downloaded once. What else is needed, the operator allows or provides.")
    text_table(
        pl.DataFrame(
            {
                "Retriever": [item.entry.name for item in found],
                "Here": [item.words for item in found],
                "Size": [size(item.entry.parameters) for item in found],
                "Dimension": [whole(item.entry.dimension) for item in found],
                "Family": [item.entry.family or NONE for item in found],
                "Licence": [item.entry.licence or NONE for item in found],
            }
        ),
        label="Registered retrievers",
    )


def _described(item: Availability) -> str:
    parts = [item.entry.name]
    if item.entry.parameters:
        parts.append(size(item.entry.parameters))
    return " · ".join([*parts, item.words])
