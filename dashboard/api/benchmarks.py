"""``GET /benchmarks`` and ``/benchmarks/{benchmark}``."""

from __future__ import annotations

from pydantic import Field

from dashboard.api.media import TABULAR, Format, row_schema
from dashboard.api.parameters import Formatted, Paged, Word
from dashboard.api.resource import Document, File, Found, Page, Read
from dashboard.current_site import the_site
from pipeline.jobs.benchmark_library import record_json
from pipeline.jobs.citations import benchmark_address, benchmark_bibtex
from store.access import benchmarks, freshness


class OneBenchmark(Formatted):
    """Which benchmark version."""

    benchmark: Word = Field(description="`slug@version`; `slug` alone means the newest version.")


def _all(said: Paged) -> Found:
    with the_site().database.reading() as session:
        stamp = freshness.library_stamp(session)

    def make(chosen: Format) -> Page:
        del chosen
        with the_site().database.reading() as session:
            found = benchmarks.list_versions(session).drop("id")
        return Page(found.slice(said.offset, said.limit), found.height)

    return Found(stamp, make, "equirank-benchmarks")


def _one(said: OneBenchmark) -> Found:
    with the_site().database.reading() as session:
        version = benchmarks.get(session, said.benchmark)
        stamp = freshness.library_stamp(session)

    def make(chosen: Format) -> Document | File:
        if chosen is Format.BIBTEX:
            return File(benchmark_bibtex(version, benchmark_address(the_site(), version)))
        with the_site().database.reading() as session:
            rows = benchmarks.list_versions(session, version.slug)
        value = record_json(version) | {
            "name": version.name,
            "ks": list(version.ks),
            "is_demo": version.is_demo,
            "citation": version.citation,
            "created": version.created_at,
        }
        return Document(value, rows.filter(rows["name"] == version.name).drop("id"))

    return Found(f"{stamp}|{version.name}|{version.content_hash}", make, f"equirank-benchmark-{version.slug}")


def _rows() -> dict[str, object]:
    return {
        "type": "object",
        "required": ["total", "items"],
        "properties": {
            "total": {"type": "integer"},
            "limit": {"type": "integer"},
            "offset": {"type": "integer"},
            "items": {"type": "array", "items": row_schema({k: v for k, v in benchmarks.LISTING.items() if k != "id"})},
        },
    }


READS = (
    Read("/benchmarks", "All benchmark versions, with counts and how many runs each has", Paged, _all, _rows()),
    Read(
        "/benchmarks/{benchmark}",
        "One benchmark version: sources, licence, hash, counts and statistics",
        OneBenchmark,
        _one,
        {
            "type": "object",
            "required": ["name", "slug", "version", "kind", "hash", "headline"],
            "properties": {
                "name": {"type": "string"},
                "slug": {"type": "string"},
                "version": {"type": "string"},
                "kind": {"enum": ["tool", "skill"]},
                "hash": {"type": ["string", "null"], "description": "Of the content; null with figures only."},
                "headline": {"enum": ["macro", "micro"]},
                "ks": {"type": "array", "items": {"type": "integer"}},
            },
        },
        (*TABULAR, Format.BIBTEX),
    ),
)
