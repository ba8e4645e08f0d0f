"""A run's reproducibility card: everything that its figures can be made from again, as values and as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.metadata import version as package_version
from typing import Any

from pipeline.jobs.public_address import public_address
from pipeline.jobs.site import Site
from store.access import benchmarks, retrievers, submissions
from store.records import BenchmarkRecord, RetrieverRecord, RunRecord, SubmissionRecord


def run_address(site: Site, run: RunRecord) -> str:
    """The address of a run's page without a private token: cards and citations are passed on."""
    return f"{public_address(site.settings)}/run?run={run.id}"


def run_card(site: Site, run: RunRecord) -> dict[str, Any]:
    """Hashes, versions, contract and command of a run that the caller may see.

    Returns:
        ``run``, ``benchmark``, ``retriever``, ``contract``, ``hashes``, ``versions``, ``reading`` and ``reproduce``
        (what to do, and the command where one does it); unknown values are None.
    """
    with site.database.reading() as session:
        benchmark = benchmarks.get_by_id(session, run.benchmark_version_id)
        retriever = retrievers.get_by_id(session, run.retriever_id)
        submission = submissions.of_run(session, run.id)
    asked = _asked(submission)
    return {
        "run": {
            "id": run.id,
            "address": run_address(site, run),
            "provenance": run.provenance,
            "place": run.place or None,
            "state": run.state,
            "visibility": run.visibility,
            "created": run.created_at.isoformat(timespec="seconds"),
            "published": run.published_at and run.published_at.isoformat(timespec="seconds"),
        },
        "benchmark": {
            "name": benchmark.name,
            "title": benchmark.title,
            "licence": benchmark.licence or None,
            "source": benchmark.source or None,
            "revision": benchmark.revision or None,
            "headline": benchmark.headline,
        },
        "retriever": {
            "name": retriever.name,
            "key": retriever.key,
            "link": run.link or retriever.link or None,
            "licence": run.licence or retriever.licence or None,
            "base": retriever.base_key,
            "trained_on_benchmark": run.trained_on_benchmark,
        },
        "contract": {
            "method": run.method,
            "level": run.level,
            "setting": run.contract or None,
            "hash": run.contract_hash,
            **{name: asked.get(name) for name in _SHOWN if name in asked},
        },
        "hashes": {
            "benchmark": run.benchmark_hash,
            "ranking": run.ranking_hash,
            "run_file": run.raw_artifact,
            "stored_ranking": run.ranking_artifact,
            "scores_by_query": run.per_query_artifact,
        },
        "versions": {
            "scorer": run.scorer_version,
            "statistics": run.statistics_version,
            "site": package_version("equirank"),
        },
        "reading": {
            "order": submission.order if submission else None,
            "part": submission.part if submission else None,
            "depth": run.depth,
            "queries": run.queries_total,
            "answered": run.queries_answered,
            "missing": run.missing,
            "flags": list(run.flags),
            "notes": list(run.notes),
        },
        "efficiency": None if run.efficiency is None else dict(run.efficiency),
        "reproduce": _reproduce(run, benchmark, retriever, submission, asked),
    }


#: What a measured run was asked with; an endpoint's address is the operator's own business.
_SHOWN = (
    "model", "preset", "instruction", "positives", "dtype",
    "method_preset", "standardizer", "rewriter", "weights", "llm",
)  # fmt: skip


def _asked(submission: SubmissionRecord | None) -> Mapping[str, Any]:
    request = submission.report.get("request") if submission else None
    return request if isinstance(request, Mapping) else {}


def _reproduce(
    run: RunRecord,
    benchmark: BenchmarkRecord,
    retriever: RetrieverRecord,
    submission: SubmissionRecord | None,
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    if run.provenance == "reported":
        where = f"The figures are those printed in {run.place}; no ranking lies behind them."
        return {"how": where, "command": None}
    if run.provenance == "measured":
        return {
            "how": "Retrieve again with the same model, contract and benchmark version; "
            "the ranking hash says whether the ranking is the same.",
            "command": _retrieve(run, benchmark, retriever, asked),
        }
    words = ["equirank", "score", "RUN_FILE", "--benchmark", benchmark.name]
    if submission is not None and submission.order:
        words += ["--order", submission.order]
    if submission is not None and submission.part:
        words += ["--part", submission.part]
    words += ["--k", ",".join(map(str, benchmark.ks)), "--format", "json"]
    return {
        "how": "Score the run file again; its sha256 is the hash of the run file here, and the answer's "
        "ranking_hash says whether the ranking is the same.",
        "command": shlex.join(words),
    }


def _retrieve(run: RunRecord, benchmark: BenchmarkRecord, retriever: RetrieverRecord, asked: Mapping[str, Any]) -> str:
    model = str(asked.get("model") or retriever.key)
    words = ["equirank", "retrieve", "--benchmark", benchmark.name, "--model", model]
    words += ["--method", str(asked.get("method") or run.method)]
    preset = asked.get("preset") or (run.contract.split(",")[0].strip() if run.contract else "")
    if preset:
        words += ["--preset", str(preset)]
    if asked.get("instruction") or "with instruction" in run.contract:
        words.append("--instruction")
    if asked.get("depth"):
        words += ["--depth", str(asked["depth"])]
    if str(asked.get("method")) == "adapter" and asked.get("positives"):
        words += ["--positives", str(asked["positives"])]
    if asked.get("dtype"):
        words += ["--dtype", str(asked["dtype"])]
    for name in ("method_preset", "standardizer", "rewriter", "weights", "llm", "budget"):
        if asked.get(name) not in (None, ""):
            words += [f"--{name.replace('_', '-')}", str(asked[name])]
    return shlex.join(words)


def card_text(card: Mapping[str, Any]) -> str:
    """The card as plain text, a line a value; what is unknown is left out."""
    lines = []
    for group, values in card.items():
        known = {name: value for name, value in (values or {}).items() if value not in (None, "", [], {})}
        if not known:
            continue
        lines.append(group.replace("_", " ").capitalize())
        width = max(map(len, known))
        for name, value in known.items():
            shown = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append(f"  {name.replace('_', ' '):<{width}}  {' '.join(shown.split())}")
        lines.append("")
    return "\n".join(lines)
