"""What somebody asks for when they pick a model, checked without loading it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from pipeline.errors import ModelError, UsageError
from pipeline.formats.messages import quote
from pipeline.jobs.benchmark_library import Library
from pipeline.jobs.fields.methods import METHODS, AnyMethod, FieldMethod, FieldOptions
from pipeline.jobs.fields.options import settled_options
from pipeline.jobs.site import Site
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.retrieval.contract import Contract, Dtype, Preset
from pipeline.retrieval.models import ModelSpec, Permissions, resolve_model
from pipeline.retrieval.registry import Source
from pipeline.retrieval.retrieve import Method
from store.access import benchmarks, workers
from store.records import BenchmarkRecord
from store.settings import Settings

#: Job ids start with this.
PREFIX = "evaluate-"


@dataclass(frozen=True)
class EvaluationRequest:
    """Evaluate a model on a benchmark.

    Attributes:
        benchmark: ``slug`` or ``slug@version`` of a stored benchmark.
        model: registry key, alias, hub id, folder or ``litellm/provider/model``.
        method: a key of ``pipeline.jobs.fields.methods.METHODS``: ``full-doc``, ``mftr``, ``easytool``, ….
        preset: ``card`` or ``paper``.
        instruction: whether queries come with their instruction.
        depth: results kept for a query.
        positives: adapter only: ``ground_truth`` or ``equivalents``.
        dtype: ``""`` as the preset says, or ``bfloat16``, ``float16``, ``float32``.
        endpoint_url: address of an embeddings endpoint; "" takes the provider's own.
        method_preset: the method's preset (``pipeline.baselines.methods``), such as MFTR's ``paper`` or ``v2``; ""
            takes the default. Only for methods that have presets; the next three only for those with fields.
        standardizer: who puts tools into fields: ``rule-based`` (also for ""), ``llm`` or the id of stored field texts.
        rewriter: who rewrites queries: ``original`` (also for ""; nobody), ``llm`` or the id of stored field texts.
        weights: id of an imported parameter set; "" learns.
        llm: the language model, ``provider/model``; "" takes the default where one is needed.
        budget: the most that language models may cost, in US dollars, earlier jobs for the same run included; None
            takes the operator's limit.
        batch: write the questions to a batch file and wait for its answers instead of asking.
        publish: put the run on the leaderboard at once; else it is private until it is published.
        person: who asks; "" for the site itself.
    """

    benchmark: str
    model: str
    method: str = "full-doc"
    preset: str = "card"
    instruction: bool = False
    depth: int = 100
    positives: str = "ground_truth"
    dtype: str = ""
    endpoint_url: str = ""
    method_preset: str = ""
    standardizer: str = ""
    rewriter: str = ""
    weights: str = ""
    llm: str = ""
    budget: float | None = None
    batch: bool = False
    publish: bool = False
    person: str = LOCAL_PERSON

    def as_json(self) -> dict[str, Any]:
        """The attributes by name: what a job keeps."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> EvaluationRequest:
        """The request that ``as_json`` wrote."""
        return cls(**values)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A request whose names were found and whose options fit together.

    Attributes:
        request: with the benchmark's version named.
        options: what a ``FieldMethod`` was asked with; None for other methods.
        job_id: the same for every request that would measure the same thing under the same budget.
        run_key: the same for every request that would measure the same thing; the run's id follows from it.
    """

    request: EvaluationRequest
    version: BenchmarkRecord
    model: ModelSpec
    method: AnyMethod
    contract: Contract
    job_id: str
    run_key: str
    options: FieldOptions | None = None

    @property
    def contract_label(self) -> str:
        """How it encodes, as the leaderboard shows it."""
        parts = [self.request.preset]
        if self.request.instruction:
            parts.append("with instruction")
        if self.request.dtype:
            parts.append(self.request.dtype)
        if self.options is not None and self.options.label:
            parts.append(self.options.label)
        return ", ".join(parts)


def permissions(settings: Settings) -> Permissions:
    """What the operator allows of models."""
    return Permissions(
        unpinned=settings.allow_unpinned_models,
        remote_code=settings.allow_remote_code,
        pickle=settings.allow_pickle_models,
        local_folders=settings.allow_model_folders,
        endpoints=settings.allow_endpoints,
    )


def resolve_request(site: Site, request: EvaluationRequest) -> Evaluation:
    """Find the benchmark and the model and check the options; nothing is loaded or downloaded.

    Raises:
        NotFound: the benchmark is not stored.
        BenchmarkError: it has no content, or lacks what the method needs.
        ModelError: the model is unknown or not allowed.
        UsageError: an option has no such value, or options do not fit together.
    """
    with site.database.reading() as session:
        version = benchmarks.get(session, request.benchmark)
    model, method, contract = resolve_options(site.settings, request)
    if not version.has_content or (method is Method.SUB_QUERY and not version.subqueries):
        # These two know the words for what is missing.
        from pipeline.retrieval.retrieve import retrieval_texts

        of = method if isinstance(method, Method) else Method.FULL_DOC
        retrieval_texts(Library(site).benchmark(version.name), contract, of)
    options = None
    if isinstance(method, FieldMethod):
        options = settled_options(site, request, method, version, contract)
    said = {**request.as_json(), "benchmark": version.name}
    if options is not None:
        said |= {"method_preset": options.preset, "standardizer": options.tools, "rewriter": options.queries}
        said |= {"weights": options.weights, "llm": options.llm}
    if options is None or not options.asks:
        said |= {"llm": "", "budget": None, "batch": False}
    settled = EvaluationRequest.from_json(said)
    same: dict[str, Any] = {
        "benchmark": [version.name, version.content_hash, version.headline],
        "contract": contract.hash,
        "method": method.value,
        "depth": request.depth,
        "positives": request.positives if method is Method.ADAPTER else "",
    }
    # Only where there are options: the ids of other requests stay what they were before these methods came.
    if options is not None:
        same["fields"] = options.identity
    run_key = _key(same)
    if options is not None and options.asks:
        same["asking"] = [settled.budget, settled.batch]
    return Evaluation(settled, version, model, method, contract, _key(same), run_key, options)


def _key(same: dict[str, Any]) -> str:
    return PREFIX + hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:32]


def resolve_options(settings: Settings, request: EvaluationRequest) -> tuple[ModelSpec, AnyMethod, Contract]:
    """The model, the method and the contract of a request; raises as ``resolve_request``."""
    if request.method not in METHODS:
        raise UsageError(f"unknown method {quote(request.method)}: choose {', '.join(METHODS)}")
    if request.preset not in list(Preset):
        raise UsageError(f"unknown preset {quote(request.preset)}: choose {', '.join(Preset)}")
    if request.dtype and request.dtype not in list(Dtype):
        raise UsageError(f"unknown number format {quote(request.dtype)}: choose {', '.join(Dtype)}")
    if not 1 <= request.depth <= settings.limit_depth:
        raise UsageError(f"the depth is {request.depth}: choose 1 to {settings.limit_depth} (EQUIRANK_LIMIT_DEPTH)")
    if request.positives not in ("ground_truth", "equivalents"):
        raise UsageError(f"unknown positives {quote(request.positives)}: choose ground_truth or equivalents")
    if request.endpoint_url:
        _check_host(settings, request.endpoint_url)
    method = METHODS[request.method]
    model = resolve_model(
        request.model,
        permissions=permissions(settings),
        dtype=Dtype(request.dtype) if request.dtype else None,
        endpoint_url=request.endpoint_url,
    )
    if method is Method.ADAPTER and not model.entry.dense:
        raise UsageError(f"the adapter works on embeddings and {model.entry.name} has none: choose a dense model")
    if isinstance(method, Method):
        for name in ("method_preset", "standardizer", "rewriter", "weights"):
            if getattr(request, name):
                means = "mean" if name == "weights" else "means"
                raise UsageError(
                    f"the {name.replace('_', ' ')} {means} nothing to the method {method}: leave the option out"
                )
    if isinstance(method, FieldMethod) and method.needs.dense and not model.entry.dense:
        raise UsageError(f"{method} is defined for embeddings and {model.entry.name} has none: choose a dense model")
    return model, method, model.contract(request.preset, instruction=request.instruction)


def _check_host(settings: Settings, url: str) -> None:
    """A server must not call any address that somebody types in."""
    allowed = {host.strip().lower() for host in settings.endpoint_hosts.split(",") if host.strip()}
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or (parts.hostname or "") not in allowed:
        raise ModelError(
            f"the endpoint address {quote(url)} is not allowed: the operator names allowed hosts in "
            "EQUIRANK_ENDPOINT_HOSTS"
        )


def queue_for(site: Site, model: ModelSpec, *, asks: bool = False) -> str:
    """The queue of a job.

    ``llm`` for endpoints and language models, ``gpu`` for dense models where a worker serves it, else ``cpu``.
    """
    if asks or model.entry.source is Source.ENDPOINT:
        return "llm"
    if model.entry.dense:
        with site.database.reading() as session:
            living = workers.alive(session, site.settings.worker_lost_seconds)
        if any("gpu" in worker.queues for worker in living):
            return "gpu"
    return "cpu"
