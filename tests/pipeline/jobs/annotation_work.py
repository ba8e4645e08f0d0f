"""Small expansions of the demo benchmarks, asked of a loopback server that knows the labels."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.commands.benchmarks import FileFormat, write_folder
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.jobs import durable
from pipeline.jobs.annotations import requests
from pipeline.jobs.annotations.requests import AnnotationRequest
from pipeline.jobs.benchmark_library import import_into_store, load_benchmark
from pipeline.jobs.first_start import demo_folder
from pipeline.jobs.site import Site, open_site
from pipeline.toolex.candidates import library_pool
from pipeline.toolex.records import Subquery
from pipeline.toolex.settings import PoolMember, ToolexSettings
from store.access.annotations import AnnotationRecord
from store.settings import Settings
from tests.pipeline.toolex.demo_judge import labels_of, stripped

#: All judges go to the loopback server, which takes the place of OpenAI.
JUDGES = {"decompose_judge": "openai/planner", "verify_judge": "openai/verifier", "audit_judge": "openai/auditor"}
LEXICAL = ToolexSettings(pool=(PoolMember("bm25"),), depth=6, **JUDGES)
#: Two bundled retrievers: at this depth they find every label of the demo benchmarks.
BUNDLED = ToolexSettings(pool=(PoolMember("bm25"), PoolMember("minilm")), **JUDGES)
#: Dollars a million tokens, so that a budget in money can be kept.
PRICES = ", ".join(f"{model}=1000/2000" for model in JUDGES.values())


def demo(kind: str) -> Benchmark:
    """A demo benchmark with its labels."""
    return read_benchmark_folder(demo_folder(kind))


def some_queries(benchmark: Benchmark, count: int) -> list[str]:
    """Queries with the most sub-queries first: they have the most to combine."""
    sizes = benchmark.ground_truth.sort(pl.col("tool_ids").list.len(), descending=True, maintain_order=True)
    return sizes["query_id"].head(count).to_list()


def bare(benchmark: Benchmark, query_ids: list[str] | None = None) -> Benchmark:
    """Some queries without everything after ``ground_truth``, under a name of its own."""
    found = stripped(benchmark, query_ids)
    return replace(found, info=replace(found.info, slug="bare"))


def site_with(home: Path, parent: Benchmark, url: str = "http://127.0.0.1:1/v1", **settings: Any) -> Site:
    """A site that holds this benchmark alone and asks the server at ``url``."""
    site = open_site(Settings(home=home, llm_base_url=url, **{"llm_prices": PRICES, **settings}))
    site.database.migrate()
    import_into_store(site, parent)
    return site


def close(site: Site) -> None:
    """Close everything."""
    durable.close_job_client(site)
    site.database.close()


def define(site: Site, settings: ToolexSettings = LEXICAL, version: str = "2", **budget: Any) -> AnnotationRecord:
    """An expansion of the site's benchmark."""
    return requests.define(site, AnnotationRequest("bare@1", version, settings, **budget))


def exported(site: Site, version_id: int, folder: Path) -> dict[str, bytes]:
    """The files of ``equirank benchmark export``."""
    write_folder(load_benchmark(site, version_id), folder, FileFormat.JSONL)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def work_here(site: Site, job_id: str) -> None:
    """Be the worker until a job has ended, in this process."""
    from dbos import DBOS

    from pipeline.jobs import worker_site
    from pipeline.jobs.annotations import workflow

    del workflow  # imported for its workflow
    worker_site.use_site(site)
    try:
        DBOS(config=durable.worker_config(site, durable.EMBEDDED))
        DBOS.listen_queues(["llm"])
        DBOS.launch()
        with suppress(Exception):
            DBOS.retrieve_workflow(job_id).get_result()
    finally:
        DBOS.destroy()


def seen_queries(whole: Benchmark, count: int, settings: ToolexSettings = LEXICAL) -> list[str]:
    """Queries whose every label the pool of the settings can see, those with the most sub-queries first."""
    pool = library_pool(whole, settings.pool, settings.depth)
    columns = ("query_id", "position", "text", "tool_id")
    subqueries = [Subquery(*row) for row in whole.subqueries.select(columns).iter_rows()]
    found = {
        (subquery.query_id, subquery.position, candidate.tool_id)
        for subquery, candidates in zip(subqueries, pool.candidates(subqueries), strict=True)
        for candidate in candidates
    }
    unseen = {query for query, _, _ in labels_of(whole)["equivalents"] - found}
    return [query for query in some_queries(whole, whole.queries.height) if query not in unseen][:count]


def written_labels(whole: Benchmark, query_ids: list[str]) -> dict[str, set[Any]]:
    """What ``labels_of`` says of these queries."""
    return {name: {row for row in rows if row[0] in query_ids} for name, rows in labels_of(whole).items()}
