"""From what a user names to a model that may be used: a registry entry, a hub id, a local folder or an endpoint."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import ModelError
from pipeline.formats.messages import quote
from pipeline.retrieval import bm25
from pipeline.retrieval.contract import Contract, Dtype, Pooling, Preset
from pipeline.retrieval.registry import (
    COMMIT,
    HUB_ID,
    UNPINNED,
    Encoding,
    Registry,
    RetrieverEntry,
    Source,
    default_registry,
)

ENDPOINT_PREFIX = "litellm/"
_ENDPOINT = re.compile(r"litellm/[A-Za-z0-9][A-Za-z0-9._:@/-]{0,190}")


@dataclass(frozen=True)
class Permissions:
    """What the operator allows; nothing by default.

    Attributes:
        unpinned: models without a full commit, whose weights may change under their name.
        remote_code: Python code that comes with a model.
        pickle: weights that exist only as pickle files.
        local_folders: models in folders of this machine.
        endpoints: embeddings endpoints, which see every text and may cost money.
    """

    unpinned: bool = False
    remote_code: bool = False
    pickle: bool = False
    local_folders: bool = True
    endpoints: bool = True


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """A model that may be used, with the operator's permissions.

    Attributes:
        entry: its registry entry, or one made for a user's model.
        permissions: what the operator allows.
        dtype: computes in another number format than the preset says (bfloat16 is about 2.5 times as fast on CPUs
            that have it).
        endpoint_url: base address of an endpoint; "" leaves it to litellm's own settings.
    """

    entry: RetrieverEntry
    permissions: Permissions = Permissions()
    dtype: Dtype | None = None
    endpoint_url: str = ""

    def contract(self, preset: Preset | str = Preset.CARD, *, instruction: bool = False) -> Contract:
        """How it encodes.

        Args:
            preset: ``card`` or ``paper``.
            instruction: whether queries come with their instruction.

        Raises:
            ModelError: there is no such preset.
        """
        if preset not in list(Preset):
            raise ModelError(f"Unknown preset {quote(preset)}; choose card or paper.")
        entry, encoding = self.entry, self.entry.encoding(Preset(preset))
        with_instruction = encoding.query_with_instruction if instruction else encoding.query
        if not entry.dense:
            return Contract(
                model=entry.key,
                revision=entry.revision,
                query_format=with_instruction,
                bare_query_format=encoding.query,
                document_format=encoding.document,
                lexical=bm25.DESCRIPTION,
            )
        local = entry.source is not Source.ENDPOINT
        return Contract(
            model=entry.hf_id or entry.name,
            revision=entry.revision,
            query_format=with_instruction,
            bare_query_format=encoding.query,
            document_format=encoding.document,
            pooling=encoding.pooling,
            normalise=encoding.normalise,
            similarity=encoding.similarity,
            dtype=(self.dtype or encoding.dtype) if local else None,
            max_tokens=encoding.max_tokens,
            prompt_pooled=encoding.prompt_pooled,
        )


def resolve_model(
    name: str,
    *,
    permissions: Permissions = Permissions(),
    registry: Registry | None = None,
    dtype: Dtype | None = None,
    endpoint_url: str = "",
) -> ModelSpec:
    """Find a model and check that it may be used; nothing is downloaded or loaded.

    Args:
        name: a registry key, alias or hub id, optionally ``@commit``; ``owner/name[@commit]`` on the hub;
            ``litellm/provider/model``; or a folder (with a ``/`` or ``.`` in front, or ``~``).
        permissions: what the operator allows.
        registry: default EquiRank's own.
        dtype: see ``ModelSpec``.
        endpoint_url: see ``ModelSpec``.

    Raises:
        ModelError: the model is unknown or not allowed; the message says what to do.
    """
    known = registry or default_registry()
    if name.startswith(ENDPOINT_PREFIX):
        entry = _endpoint(name, permissions, endpoint_url)
    elif name.startswith(("/", "./", "../", "~")):
        entry = _folder(name, permissions)
    else:
        entry = _named(name, known)
    if not entry.pinned and not permissions.unpinned:
        raise ModelError(
            f"{entry.name} has no recorded commit, so its weights may change under its name. Name one "
            f"({entry.hf_id}@<40 hex digits>), or let the operator allow unpinned models."
        )
    if entry.remote_code and not permissions.remote_code:
        raise ModelError(
            f"{entry.name} runs Python code from its repository ({entry.hf_id or entry.folder}), which the operator "
            "has not allowed."
        )
    if entry.pickle and not permissions.pickle:
        raise ModelError(
            f"The weights of {entry.name} exist only as pickle files, which can run code when they are read; the "
            "operator has not allowed them."
        )
    return ModelSpec(entry, permissions, dtype if entry.dense else None, endpoint_url)


def _named(name: str, registry: Registry) -> RetrieverEntry:
    plain, at, commit = name.partition("@")
    entry = registry.find(plain)
    if at and not COMMIT.fullmatch(commit):
        raise ModelError(f"The revision in {quote(name)} must be a full commit: 40 hex digits.")
    if entry is not None:
        if not at or commit == entry.revision:
            return entry
        if entry.source is Source.BM25:
            raise ModelError(f"{entry.name} has no revisions; leave {quote('@' + commit)} out.")
        # Another commit: neither the packaged weights nor their checksums are of it.
        changes = {"revision": commit, "source": Source.HUB, "package": "", "weights_sha256": {}}
        return RetrieverEntry.model_validate({**entry.model_dump(), **changes})
    if "/" not in plain:
        raise ModelError(
            f"Unknown model {quote(name)}. {registry.nearest(plain)} A model of the Hugging Face hub is named "
            "owner/name@commit, a folder starts with / or ./, an endpoint with litellm/."
        )
    if not HUB_ID.fullmatch(plain):
        raise ModelError(f"{quote(plain)} is not the name of a model on the hub (owner/name).")
    as_configured = Encoding(pooling=Pooling.MODEL)
    return RetrieverEntry(
        key=_slug(plain),
        name=plain,
        source=Source.HUB,
        hf_id=plain,
        revision=commit or UNPINNED,
        card=as_configured,
        paper=as_configured,
    )


def _endpoint(name: str, permissions: Permissions, url: str) -> RetrieverEntry:
    if not permissions.endpoints:
        raise ModelError(f"{name} is an embeddings endpoint, which the operator has not allowed.")
    if not _ENDPOINT.fullmatch(name):
        raise ModelError(f"{quote(name)} does not name an endpoint; write litellm/provider/model.")
    # An endpoint has no commit: its name and address are all that is known of what answers.
    fingerprint = hashlib.sha256(f"{name}\n{url}".encode()).hexdigest()
    return RetrieverEntry(
        key=_slug(name),
        name=name.removeprefix(ENDPOINT_PREFIX),
        source=Source.ENDPOINT,
        revision=f"endpoint {fingerprint[:16]}",
        notes="An endpoint cannot be pinned: what answers under this name may change.",
    )


def _folder(name: str, permissions: Permissions) -> RetrieverEntry:
    if not permissions.local_folders:
        raise ModelError(f"{quote(name)} is a folder of this machine, which the operator has not allowed as a model.")
    folder = Path(name).expanduser()
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise ModelError(f"There is no model in the folder {folder}: it has neither modules.json nor config.json.")
    as_configured = Encoding(pooling=Pooling.MODEL)
    return RetrieverEntry(
        key=_slug(folder.resolve().name),
        name=folder.resolve().name,
        source=Source.FOLDER,
        folder=str(folder.resolve()),
        revision=folder_hash(folder),
        remote_code=bool(custom_code(folder)),
        pickle=only_pickled(folder),
        card=as_configured,
        paper=as_configured,
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:80] or "model"


def folder_hash(folder: Path) -> str:
    """sha256 over the names and contents of every file of a model folder (its revision)."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        digest.update(f"{path.relative_to(folder).as_posix()}\n{file_sha256(path)}\n".encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """sha256 hex of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def custom_code(folder: Path) -> list[str]:
    """What in a model folder asks for Python code from outside the installed libraries.

    sentence-transformers runs such code from a local folder without being asked to trust it, so we look ourselves.
    """
    found: list[str] = []
    modules = folder / "modules.json"
    if modules.is_file():
        types = [str(module.get("type")) for module in _json(modules)]
        found += [name for name in types if not name.startswith("sentence_transformers.")]
    for name in ("config.json", "tokenizer_config.json", "processor_config.json"):
        for file in (folder / name, *sorted(folder.glob(f"*/{name}"))):
            if file.is_file():
                found += [str(value) for value in _json(file).get("auto_map", {}).values()]
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}") from error


def only_pickled(folder: Path) -> bool:
    """Whether a folder has weights, none of them as safetensors."""
    pickled = any(True for pattern in ("*.bin", "*.pt", "*.pth") for _ in folder.rglob(pattern))
    return pickled and not any(folder.rglob("*.safetensors"))


def model_folder(spec: ModelSpec) -> Path:
    """The folder with the weights: of the package, the user's, or downloaded from the hub at the pinned commit.

    Raises:
        ModelError: it is not there and the hub cannot be reached, it needs code or pickles that are not allowed, or
            the weights are not those of the registry.
    """
    entry = spec.entry
    if entry.source is Source.FOLDER:
        folder = Path(entry.folder)
    else:
        folder = (_package_folder(entry) if entry.source is Source.PACKAGE else None) or _download(spec)
    code = custom_code(folder)
    if code and not (entry.remote_code and spec.permissions.remote_code):
        raise ModelError(
            f"{entry.name} asks to run Python code that comes with it ({', '.join(code[:3])}); the operator has not "
            "allowed that for this model."
        )
    if only_pickled(folder) and not spec.permissions.pickle:
        raise ModelError(
            f"The weights of {entry.name} exist only as pickle files, which can run code when they are read; the "
            "operator has not allowed them."
        )
    for name, expected in entry.weights_sha256.items():
        path = folder / name
        found = file_sha256(path) if path.is_file() else "no such file"
        if found != expected:
            raise ModelError(
                f"The weights of {entry.name} are not those of the registry: {path} has sha256 {found}, expected "
                f"{expected}. Install the package {entry.package} again, or name a commit: {entry.hf_id}@…"
            )
    return folder


def _package_folder(entry: RetrieverEntry) -> Path | None:
    found = importlib.util.find_spec(entry.package)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "model"
    return folder if folder.is_dir() else None


def _download(spec: ModelSpec) -> Path:
    entry = spec.entry
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    revision = entry.revision if entry.pinned else None
    ignored = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf"]
    if not spec.permissions.pickle:
        ignored += ["*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt"]
    if not spec.permissions.remote_code:
        ignored += ["*.py"]
    at = f" at revision {revision}" if revision else ""
    try:
        return Path(snapshot_download(entry.hf_id, revision=revision, ignore_patterns=ignored))
    except GatedRepoError as error:
        raise ModelError(
            f"The model {entry.hf_id} asks for consent on the hub: accept its terms there and set HF_TOKEN."
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ModelError(f"The hub has no model {entry.hf_id}{at}, or it is private.") from error
    except Exception as error:  # every kind of network failure, whose classes change with the client library
        lines = str(error).strip().splitlines() or [type(error).__name__]
        offline = " HF_HUB_OFFLINE is set." if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0") else ""
        package = f", install the package {entry.package.replace('_', '-')}" if entry.package else ""
        raise ModelError(
            f"The model {entry.hf_id}{at} is not on this machine and the hub cannot be reached ({lines[0][:200]})."
            f"{offline} Download it elsewhere and give its folder{package}, or choose minilm-l6 or bm25s, which come "
            "with EquiRank."
        ) from error
