"""Drawing the sample that people review, and the links that open it."""

from __future__ import annotations

import secrets
from urllib.parse import urlencode

import polars as pl

from pipeline.errors import BenchmarkError, UsageError
from pipeline.jobs.benchmark_library import load_benchmark
from pipeline.jobs.site import Site
from pipeline.toolex.sampling import sample_items
from store.access import validation
from store.access.validation import NewSample
from store.records import BenchmarkRecord
from store.validation_models import ValidationItem, ValidationSample

#: More than people ever review; every step of a review looks through the whole sample.
MOST_ITEMS = 5_000
#: What a column of whole numbers holds on every database.
MOST_SEED = (1 << 31) - 1


def new_seed() -> int:
    """A seed for those who do not choose one; it is kept with the sample."""
    return secrets.randbelow(MOST_SEED)


def draw_sample(site: Site, benchmark: BenchmarkRecord, size: int, seed: int, note: str = "") -> NewSample:
    """Draw accepted combinations to review, and store them; see ``pipeline.toolex.sampling.sample_items``.

    Args:
        site: where the benchmark is.
        benchmark: the expanded version.
        size: items wanted; all of them where there are fewer.
        seed: of the draw.
        note: the lead's words.

    Raises:
        UsageError: size or seed is out of range.
        BenchmarkError: the version has no content, or nothing to review.
        InvalidRecord: the note is too long or has invisible characters.
    """
    if not 1 <= size <= MOST_ITEMS:
        raise UsageError(f"a sample has 1 to {MOST_ITEMS:,} items; {size:,} were asked for")
    if not 0 <= seed <= MOST_SEED:
        raise UsageError(f"the seed is a whole number from 0 to {MOST_SEED}; found {seed}")
    drawn = sample_items(load_benchmark(site, benchmark.id), size, seed=seed)
    if drawn.is_empty():
        raise BenchmarkError(
            f"{benchmark.name} has no accepted combination besides the labels it came with: there is nothing to "
            "review. `equirank annotate run` makes a version that has some"
        )
    sample = ValidationSample(benchmark_version_id=benchmark.id, size=size, seed=seed, note=note, lead_hash="")
    rows = [
        # PostgreSQL keeps no NUL, which a judge's words may hold.
        ValidationItem(
            sample_id="",
            place=0,
            **row | {"reason": (row["reason"] or "").replace("\x00", ""), "judge": row["judge"] or ""},
        )
        for row in drawn.with_columns(pl.col("domain").fill_null("")).iter_rows(named=True)
    ]
    with site.database.session() as session:
        return validation.add_sample(session, sample, rows)


def review_address(secret: str) -> str:
    """The way to the review within the site, for whoever's secret this is."""
    return f"/review?{urlencode({'token': secret})}"
