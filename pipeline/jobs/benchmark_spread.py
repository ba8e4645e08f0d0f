"""Distributions of stored benchmarks: made with the import where that is quick, else by a job, and kept beside it."""

from __future__ import annotations

import polars as pl

from pipeline.benchmark import Benchmark
from pipeline.jobs.site import Site
from store.access import benchmarks
from store.records import BenchmarkRecord

#: Under this name a version's artifacts hold its distributions; with another tokenizer or meaning, raise the number.
DISTRIBUTIONS_NAME = "distributions-1"
#: Counting tokens takes a second for a few megabytes; an import does not wait for more.
_QUICK_BYTES = 2_000_000


def distributions_artifact(site: Site, benchmark: Benchmark) -> dict[str, str]:
    """The artifact of a benchmark's distributions by its name, made now; nothing where that would take long."""
    size = benchmark.tools["documentation"].str.len_bytes().sum() or 0
    if size > _QUICK_BYTES:
        return {}
    return {DISTRIBUTIONS_NAME: site.artifacts.put_frame(_distributions(benchmark))}


def distributions_of_version(site: Site, version_id: int) -> bool:
    """Compute and keep the distributions of a stored version; False when they are there.

    Raises:
        NotFound: there is no such version.
        BenchmarkError: it has no content.
        ArtifactMissing, ArtifactDamaged: its content is not whole.
    """
    from pipeline.jobs.benchmark_library import load_benchmark

    with site.database.reading() as session:
        record = benchmarks.get_by_id(session, version_id)
    if DISTRIBUTIONS_NAME in record.artifacts:
        return False
    digest = site.artifacts.put_frame(_distributions(load_benchmark(site, version_id)))
    with site.database.session() as session:
        benchmarks.add_artifact(session, version_id, DISTRIBUTIONS_NAME, digest, artifacts=site.artifacts)
    return True


def known_distributions(site: Site, record: BenchmarkRecord) -> pl.DataFrame | None:
    """The distributions of a version, see ``benchmark_distributions``; None until a job has made them.

    Raises:
        ArtifactMissing, ArtifactDamaged: they are not whole.
    """
    digest = record.artifacts.get(DISTRIBUTIONS_NAME)
    return None if digest is None else site.artifacts.get_frame(digest)


def _distributions(benchmark: Benchmark) -> pl.DataFrame:
    from pipeline.retrieval.document_tokens import count_tokens
    from pipeline.scoring.benchmark_distributions import benchmark_distributions

    texts = benchmark.tools["documentation"].fill_null("").to_list()
    return benchmark_distributions(benchmark, count_tokens(texts).tolist())
