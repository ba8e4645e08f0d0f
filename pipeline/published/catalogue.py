"""Papers, benchmarks, retrievers and methods of the published tables."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

from pipeline.benchmark import Average, Kind
from pipeline.published.figures import all_figures
from pipeline.published.files import read_toml
from pipeline.published.records import PublishedBenchmark, PublishedMethod, PublishedPaper, PublishedRetriever


@cache
def papers() -> tuple[PublishedPaper, ...]:
    """Both papers."""
    return tuple(
        PublishedPaper(**{**entry, "authors": tuple(entry["authors"])}) for entry in read_toml("papers.toml")["paper"]
    )


@cache
def benchmarks() -> tuple[PublishedBenchmark, ...]:
    """The benchmarks the papers report on, with their Table 1 statistics."""
    by_key = {paper.key: paper for paper in papers()}
    return tuple(
        PublishedBenchmark(
            **{
                **entry,
                "kind": Kind(entry["kind"]),
                "headline": Average(entry["headline"]),
                "domains": tuple(entry["domains"]),
                "counts": MappingProxyType(entry["counts"]),
                "paper": by_key[entry["paper"]],
                "notes": tuple(entry["notes"]),
                "statistics": tuple(
                    figure
                    for figure in all_figures()
                    if figure.place.endswith("Table 1") and figure.benchmark == entry["slug"]
                ),
            }
        )
        for entry in read_toml("benchmarks.toml")["benchmark"]
    )


@cache
def retrievers() -> tuple[PublishedRetriever, ...]:
    """Every retriever named in a published table."""
    return tuple(
        PublishedRetriever(
            **{
                **entry,
                "printed": tuple(entry["printed"]),
                "trained_on": MappingProxyType(entry.get("trained_on", {})),
            }
        )
        for entry in read_toml("retrievers.toml")["retriever"]
    )


@cache
def methods() -> tuple[PublishedMethod, ...]:
    """Every method named in a published table."""
    return tuple(
        PublishedMethod(**{**entry, "printed": tuple(entry["printed"])})
        for entry in read_toml("methods.toml")["method"]
    )
