"""Models that turn a batch of texts into embeddings: in this process through sentence-transformers, or an endpoint."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.errors import ModelError
from pipeline.formats.messages import quote
from pipeline.retrieval.contract import Contract, Dtype, Pooling, PromptedText
from pipeline.retrieval.models import ModelSpec, model_folder
from pipeline.retrieval.registry import Source

FloatArray = npt.NDArray[np.float32]


class OutOfMemory(Exception):
    """A batch did not fit; a smaller one may."""


class Encoder(Protocol):
    """Encodes batches under one contract."""

    @property
    def device(self) -> str:
        """Where it computes: ``cpu (2 threads)``, ``cuda (NVIDIA …)``, ``endpoint``."""

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one batch: what keeps the device busy and lets a stop take effect within seconds."""

    def encode(self, texts: Sequence[PromptedText]) -> FloatArray:
        """float32 (texts, dimension), finite, of length 1 where the contract normalises.

        Raises:
            OutOfMemory: the batch does not fit.
            ModelError: the answer cannot be used.
        """


def load_encoder(spec: ModelSpec, contract: Contract, device: str | None = None) -> Encoder:
    """Load a dense model.

    Args:
        spec: the model.
        contract: one of its contracts.
        device: a torch device; default the GPU where there is one, else the CPU.

    Raises:
        ModelError: it cannot be loaded; the message says why and what to do.
    """
    if not spec.entry.dense:
        raise ModelError(f"{spec.entry.name} is a lexical model; it has no embeddings.")
    if spec.entry.source is Source.ENDPOINT:
        return EndpointEncoder(spec, contract)
    return LocalEncoder(spec, contract, device)


_shared: dict[tuple[str, str | None], Encoder] = {}
_sharing = threading.Lock()


def shared_encoder(spec: ModelSpec, contract: Contract, device: str | None = None) -> Encoder:
    """As ``load_encoder``, but the one loaded last stays in memory for the next shard of the same work."""
    place = (contract.space, device)
    with _sharing:
        if place not in _shared:
            _shared.clear()
            _shared[place] = load_encoder(spec, contract, device)
        return _shared[place]


class LocalEncoder:
    """A model in this process, made to follow the contract whatever its own configuration says.

    Args:
        spec: the model.
        contract: pooling, normalisation, number format and maximum length come from here.
        device: a torch device; default the GPU where there is one, else the CPU.
    """

    def __init__(self, spec: ModelSpec, contract: Contract, device: str | None = None) -> None:
        import torch

        self._contract = contract
        self._name = spec.entry.name
        self._torch = torch
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._model = _load(spec, contract, self._device)
        # One thread at a time: a model in one process has one set of buffers.
        self._lock = threading.Lock()

    @property
    def device(self) -> str:
        """Where it computes."""
        if self._device.startswith("cuda"):
            return f"cuda ({self._torch.cuda.get_device_name(self._device)})"
        return f"{self._device} ({self._torch.get_num_threads()} threads)"

    @property
    def batch_tokens(self) -> int:
        """About half a second's work of a small model on two CPU cores (more is slower there); far more on a GPU."""
        return 2048 if self._device == "cpu" else 65536

    def encode(self, texts: Sequence[PromptedText]) -> FloatArray:
        """See ``Encoder``."""
        torch = self._torch
        with self._lock:
            try:
                vectors = self._encode(texts)
                if self._contract.normalise:
                    vectors = torch.nn.functional.normalize(vectors, dim=1)
                result: FloatArray = vectors.cpu().numpy()
            except MemoryError as error:
                raise OutOfMemory from error
            except RuntimeError as error:  # torch.OutOfMemoryError is one; the CPU allocator raises a plain one
                if isinstance(error, torch.OutOfMemoryError) or ("alloc" in str(error) and "memory" in str(error)):
                    if self._device.startswith("cuda"):
                        torch.cuda.empty_cache()
                    raise OutOfMemory from error
                raise ModelError(f"{self._name} failed to encode a batch: {_first_line(error)}") from error
        return checked(result, len(texts), self._name, self._contract.dtype)

    def _encode(self, texts: Sequence[PromptedText]) -> Any:
        if self._contract.prompt_pooled:
            return self._tensor([text.whole for text in texts], None)
        rows: list[Any] = [None] * len(texts)
        for prompt in dict.fromkeys(text.prompt for text in texts):
            places = [i for i, text in enumerate(texts) if text.prompt == prompt]
            vectors = self._tensor([texts[i].text for i in places], prompt)
            for place, vector in zip(places, vectors, strict=True):
                rows[place] = vector
        return self._torch.stack(rows)

    def _tensor(self, texts: list[str], prompt: str | None) -> Any:
        # The empty prompt keeps the repository's default prompt out: formats are the contract's business.
        encoded = self._model.encode(
            texts, prompt=prompt or "", batch_size=len(texts), show_progress_bar=False, convert_to_tensor=True
        )
        return encoded.float()


def fast_bfloat16() -> bool:
    """Whether this CPU computes in bfloat16; elsewhere the option works but saves nothing."""
    import torch

    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _load(spec: ModelSpec, contract: Contract, device: str) -> Any:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    entry = spec.entry
    folder = model_folder(spec)
    options: dict[str, Any] = {"dtype": getattr(torch, (contract.dtype or Dtype.FLOAT32).value)}
    if not spec.permissions.pickle:
        options["use_safetensors"] = True
    if entry.code_revision:
        options["code_revision"] = entry.code_revision
    trusted = entry.remote_code and spec.permissions.remote_code
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model = SentenceTransformer(
            str(folder),
            device=device,
            trust_remote_code=trusted,
            local_files_only=not trusted,
            model_kwargs=options,
            processor_kwargs=dict(entry.tokenizer),
        )
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise ModelError(f"{entry.name} does not fit into the memory of {device}.") from error
    except Exception as error:
        raise ModelError(f"{entry.name} cannot be loaded from {folder}: {_first_line(error)}") from error
    modules: list[Any] = [module for module in model if not isinstance(module, Normalize)]
    if contract.pooling is not None and contract.pooling is not Pooling.MODEL:
        places = [i for i, module in enumerate(modules) if isinstance(module, PoolingModule)]
        if len(places) != 1:
            raise ModelError(f"{entry.name} has {len(places)} pooling modules; the contract needs exactly one.")
        width = modules[places[0]].get_embedding_dimension()
        modules[places[0]] = PoolingModule(width, contract.pooling.value, include_prompt=contract.prompt_pooled)
    model = SentenceTransformer(modules=modules, device=device)
    model.eval()
    if contract.max_tokens is not None:
        model.max_seq_length = contract.max_tokens
    found = model.get_embedding_dimension()
    if entry.dimension is not None and found is not None and found != entry.dimension:
        raise ModelError(f"{entry.name} gives {found} dimensions, the registry says {entry.dimension}.")
    return model


class EndpointEncoder:
    """An embeddings endpoint, called through litellm.

    Args:
        spec: its name and address.
        contract: whether embeddings are normalised.
    """

    device = "endpoint"
    batch_tokens = 16384

    def __init__(self, spec: ModelSpec, contract: Contract) -> None:
        # Its table of prices is in the package; without this it asks the internet for a newer one on import.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        try:
            import litellm
        except ImportError as error:
            raise ModelError("Endpoints need the package litellm, which is not installed.") from error
        self._litellm: Any = litellm
        self._model = spec.entry.name
        self._url = spec.endpoint_url or None
        self._dimension = spec.entry.dimension
        self._normalise = contract.normalise

    def encode(self, texts: Sequence[PromptedText]) -> FloatArray:
        """See ``Encoder``; blank texts go as one space, since endpoints refuse empty ones."""
        content = [text.whole or " " for text in texts]
        try:
            answer = self._litellm.embedding(
                model=self._model, input=content, api_base=self._url, timeout=60, num_retries=2, encoding_format="float"
            )
            rows = [item["embedding"] for item in sorted(answer.data, key=lambda item: int(item["index"]))]
        except Exception as error:  # litellm's classes differ from provider to provider
            raise ModelError(
                f"The endpoint {quote(self._model)} did not answer ({type(error).__name__}: {_first_line(error)}). "
                "Check its name, its address and the provider's API key."
            ) from error
        try:
            result = np.array(rows, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise ModelError(
                f"The endpoint {quote(self._model)} returned embeddings that are not rows of numbers of equal length."
            ) from error
        result = checked(result, len(texts), self._model, None)
        if self._dimension is None:
            self._dimension = result.shape[1]
        elif result.shape[1] != self._dimension:
            raise ModelError(
                f"The endpoint {quote(self._model)} returned {result.shape[1]} dimensions where it gave "
                f"{self._dimension} before."
            )
        if self._normalise:
            result /= np.linalg.norm(result, axis=1, keepdims=True)
        return result


def checked(vectors: FloatArray, texts: int, name: str, dtype: Dtype | None) -> FloatArray:
    """The embeddings, when there is one finite non-zero row for each text.

    Raises:
        ModelError: there is not.
    """
    if vectors.ndim != 2 or len(vectors) != texts or vectors.shape[1] == 0:
        raise ModelError(f"{name} returned embeddings of shape {vectors.shape} for {texts} texts.")
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        hint = " float16 may overflow: try bfloat16 or float32." if dtype is Dtype.FLOAT16 else ""
        raise ModelError(f"{name} returned NaN or infinite numbers for {len(wrong)} of {texts} texts.{hint}")
    if not vectors.any(axis=1).all():
        raise ModelError(f"{name} returned an embedding of zeros.")
    return vectors


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
