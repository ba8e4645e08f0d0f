"""What an expansion made of a benchmark's labels: Table 1 before and after, by domain, and how they are spread."""

from __future__ import annotations

import polars as pl
import streamlit as st

from dashboard import annotation_reading, benchmark_reading
from dashboard.components import viewport
from dashboard.components.annotation_words import LABEL_FIGURES, label_figure, over_all
from dashboard.components.benchmark_spread import counts_chart
from dashboard.components.downloads import download_menu
from dashboard.components.run_detail import text_table
from dashboard.components.untrusted import plain
from pipeline.scoring.benchmark_distributions import Spread, spread_of
from store.records import BenchmarkRecord

#: Pixels of the first column on a phone, so that figures are in sight beside it.
_NARROW = {"Over all queries": 210, "By domain": 210}


def show_labels(parent: BenchmarkRecord, made: BenchmarkRecord) -> None:
    """Draw it.

    Args:
        parent: what was expanded.
        made: the new version.
    """
    st.subheader("Table 1, before and after", anchor=False)
    after = annotation_reading.table_one(made)
    before = annotation_reading.table_one(parent)
    narrow = viewport.is_narrow()
    text_table(
        both_versions(before, after, parent, made), key="an_table1", label="Statistics of both versions",
        widths=_NARROW if narrow else None,
    )  # fmt: skip
    st.caption(f"Verified items of a sub-query are its labelled {made.kind} and the extra ones.")
    domains = after.filter(pl.col("domain").is_not_null())
    if domains.height > 1:
        text_table(
            by_domain(domains, made.kind), key="an_domains", label=f"Statistics of {made.name} by domain",
            widths=_NARROW if narrow else None,
        )  # fmt: skip
        st.caption(f"The new version, {plain(made.name)}, by domain.")
    download_menu(
        key="an_table1_files",
        name=f"equirank-{made.slug}-{made.version}-table-1",
        data=lambda: after,
        table=lambda: both_versions(before, after, parent, made),
    )
    _spread(made)


def both_versions(
    before: pl.DataFrame, after: pl.DataFrame, parent: BenchmarkRecord, made: BenchmarkRecord
) -> pl.DataFrame:
    """A line a statistic over all queries: the parent, the new version."""
    old, new = over_all(before), over_all(after)
    names = [name for name in LABEL_FIGURES if old.get(name) is not None or new.get(name) is not None]
    return pl.DataFrame(
        {
            "Over all queries": [LABEL_FIGURES[name].format(kind=made.kind) for name in names],
            f"version {parent.version}": [label_figure(name, old.get(name)) for name in names],
            f"version {made.version}": [label_figure(name, new.get(name)) for name in names],
        }
    )


def by_domain(domains: pl.DataFrame, kind: str) -> pl.DataFrame:
    """A line a statistic, a column a domain."""
    shown = [name for name in LABEL_FIGURES if name in domains.columns and domains[name].null_count() < domains.height]
    columns = {"By domain": [LABEL_FIGURES[name].format(kind=kind) for name in shown]}
    for row in domains.iter_rows(named=True):
        title = row["domain"] or "no domain"
        columns[title if title not in columns else f"domain {title}"] = [label_figure(n, row[n]) for n in shown]
    return pl.DataFrame(columns)


def _spread(made: BenchmarkRecord) -> None:
    """How many combinations a query has, and equivalents a sub-query."""
    found = benchmark_reading.distributions(made)
    if found is None:
        return
    st.subheader("How they are spread", anchor=False)
    for spread, place in zip((Spread.COMBINATIONS, Spread.EQUIVALENTS), st.columns(2, gap="medium"), strict=True):
        if not spread_of(found, spread).is_empty():
            with place:
                counts_chart(found, spread, made, prefix="an")
