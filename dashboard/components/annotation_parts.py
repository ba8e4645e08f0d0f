"""What people do with the labels of one version: validate, dispute, grow, and check them downstream."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import annotation_reading, reading
from dashboard.components.annotation_words import OF
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.dispute_section import dispute_section
from dashboard.components.downstream_section import downstream_section
from dashboard.components.empty import no_benchmarks
from dashboard.components.growth_section import growth_section
from dashboard.components.validation_section import validation_section
from dashboard.current_site import the_site
from pipeline.jobs.site import Site
from store.records import BenchmarkRecord

VALIDATE, DISPUTES, GROW, DOWNSTREAM = "Validate", "Disputes", "Grow", "Downstream"
PARTS: dict[str, Callable[[Site, BenchmarkRecord], None]] = {
    VALIDATE: validation_section,
    DISPUTES: dispute_section,
    GROW: growth_section,
    DOWNSTREAM: downstream_section,
}


def label_part(part: str) -> None:
    """Choose a version and draw one of ``PARTS`` for it."""
    records = [record for record in reading.benchmarks() if record.has_content]
    if not records:
        no_benchmarks()
        return
    record = choose_version(records, OF, first_version(records), label="Benchmark version", width=480)
    if part == DOWNSTREAM:
        st.subheader("Downstream check", anchor=False)
    PARTS[part](the_site(), record)


def first_version(records: list[BenchmarkRecord]) -> str:
    """The version that was made last by an expansion; without one, the newest with several valid answers."""
    made = annotation_reading.made_versions()
    newest = max(records, key=lambda record: (record.id in made, bool(record.equivalents), record.created_at))
    return newest.name
