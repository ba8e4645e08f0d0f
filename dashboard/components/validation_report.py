"""The report on a reviewed sample: precision, agreement, faults, and what they mean for the board's new metrics."""

from __future__ import annotations

import json

import polars as pl
import streamlit as st

from dashboard.components.numbers import MINUS, NONE, points, whole
from dashboard.components.run_detail import text_table
from pipeline.jobs.labels.reports import (
    SampleReport,
    corrected_frame,
    csv_text,
    headline,
    items_frame,
    nobody_decides,
    report_frame,
    report_json,
)
from pipeline.jobs.site import Site
from pipeline.toolex.validation import Bounds, Bucket, ValidationReport

_BUCKETS = {bucket: bucket.value.capitalize() for bucket in Bucket}


def show_report(site: Site, report: SampleReport, key: str) -> None:
    """Draw a report with its downloads.

    Args:
        site: whose board is corrected.
        report: closed or not.
        key: prefix of the widgets' keys.
    """
    found = report.overall
    if not found.reviewed:
        st.markdown("Nothing is decided yet: an item is when both reviewers agree, or a third has decided.")
        return
    st.markdown(precision_sentence(report))
    st.markdown(agreement_sentence(found))
    text_table(domains_table(report), key=f"{key}_domains", label="Precision by domain")
    if found.valid < found.decided:
        text_table(taxonomy_table(found), key=f"{key}_faults", label="Why combinations are invalid")
        if any(n % 1 for n in found.taxonomy.values()):
            st.caption("An item for which two reviewers named two kinds of fault counts half in each.")
    corrected = corrected_frame(site, report.benchmark, found, report.cutoff)
    if corrected.height:
        corrected_metrics(corrected, found, key)
    downloads(site, report, corrected, key)


def precision_sentence(report: SampleReport) -> str:
    """The main figure in words, with what is open."""
    found = report.overall
    interval = f"95 % interval {band_text(found.bounds)}"
    if found.to_adjudicate:
        counted = f"{interval}, whichever way they are decided"
    else:
        counted = f"{whole(found.valid)} of {whole(found.decided)} decided; {interval}"
    said = [f"**{headline(report)}** ({counted}).", nobody_decides(report)]
    unreviewed = found.items - found.reviewed
    if unreviewed:
        said.append(f"{whole(unreviewed)} {'item lacks' if unreviewed == 1 else 'items lack'} a review.")
    return " ".join(filter(None, said))


def agreement_sentence(found: ValidationReport) -> str:
    """How far two reviewers agree."""
    kappa = (
        f"Cohen's κ is {kappa_text(found.kappa)}."
        if found.kappa is not None
        else "Cohen's κ is not defined: both always gave the same one verdict."
    )
    return f"The two reviewers of an item agree on {points(found.agreement)} % of {whole(found.reviewed)}. {kappa}"


def band_text(bounds: Bounds) -> str:
    """``85.1 to 95.9``."""
    return NONE if bounds.low is None else f"{points(bounds.low)} to {points(bounds.high)}"


def share_text(bounds: Bounds) -> str:
    """``91.0``; ``88.0 to 94.0`` while disagreements are open."""
    return points(bounds.least) if bounds.least == bounds.most else f"{points(bounds.least)} to {points(bounds.most)}"


def kappa_text(kappa: float | None) -> str:
    """κ with two decimals."""
    return NONE if kappa is None else f"{kappa:.2f}".replace("-", MINUS)


def domains_table(report: SampleReport) -> pl.DataFrame:
    """One row a domain after one for all."""
    rows = [("all", report.overall), *((name or "no domain", found) for name, found in report.domains.items())]
    return pl.DataFrame(
        {
            "Domain": [name for name, _ in rows],
            "Items": [whole(found.items) for _, found in rows],
            "Decided": [whole(found.decided) for _, found in rows],
            "Valid": [whole(found.valid) for _, found in rows],
            "To adjudicate": [whole(found.to_adjudicate) for _, found in rows],
            "Precision": [share_text(found.bounds) for _, found in rows],
            "95 % interval": [band_text(found.bounds) for _, found in rows],
            "Agreement": [points(found.agreement) for _, found in rows],
            "κ": [kappa_text(found.kappa) for _, found in rows],
        }
    )


def taxonomy_table(found: ValidationReport) -> pl.DataFrame:
    """Invalid items by kind of fault."""
    named = [(bucket, n) for bucket, n in found.taxonomy.items() if n]
    invalid = found.decided - found.valid
    return pl.DataFrame(
        {
            "Fault": [_BUCKETS[bucket] for bucket, _ in named],
            "Items": [f"{n:.1f}".removesuffix(".0") for _, n in named],
            "Share": [f"{points(n / invalid)} %" for _, n in named],
        }
    )


def corrected_metrics(corrected: pl.DataFrame, found: ValidationReport, key: str) -> None:
    """The board's new metrics with what the precision leaves of them."""
    st.markdown("**What this means for the board**")
    table = pl.DataFrame(
        {
            "Run": corrected["run"],
            "Metric": [f"{metric}@{k}" for metric, k in corrected.select("metric", "k").iter_rows()],
            "Old": [points(value) for value in corrected["old"]],
            "New": [points(value) for value in corrected["new"]],
            "Corrected": [points(value) for value in corrected["corrected"]],
            "Band": [
                f"{points(low)} to {points(high)}"
                for low, high in corrected.select("corrected_low", "corrected_high").iter_rows()
            ],
        }
    )
    text_table(table, key=f"{key}_corrected", label="Corrected metrics of public runs", most_rows=12)
    said = (
        "Corrected is old + precision × (new − old): the new metric if only the valid share of accepted combinations "
        "counted, the lift being spread evenly over them. The band comes from the precision's interval."
    )
    if found.to_adjudicate:
        said += (
            f" Disagreements without a third reviewer: {whole(found.to_adjudicate)}. Corrected leaves them out, which "
            "biases it upwards; the band reaches from all of them invalid to all valid."
        )
    st.caption(said)


def downloads(site: Site, report: SampleReport, corrected: pl.DataFrame, key: str) -> None:
    """The report as files; single verdicts once the sample is closed."""
    sample = report.sample
    name = f"equirank-validation-{sample.id}"
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Report (JSON)", lambda: json.dumps(report_json(report, corrected), ensure_ascii=False, indent=2).encode(),
            file_name=f"{name}.json", mime="application/json", on_click="ignore", key=f"{key}_json",
        )  # fmt: skip
        st.download_button(
            "Report (CSV)", lambda: csv_text(report_frame(report)).encode(),
            file_name=f"{name}.csv", mime="text/csv", on_click="ignore", key=f"{key}_csv",
        )  # fmt: skip
        if corrected.height:
            st.download_button(
                "Corrected metrics (CSV)", lambda: csv_text(corrected).encode(),
                file_name=f"{name}-corrected.csv", mime="text/csv", on_click="ignore", key=f"{key}_corrected_csv",
            )  # fmt: skip
        if sample.is_closed:
            st.download_button(
                "Every verdict (CSV)", lambda: csv_text(items_frame(site, sample.id)).encode(),
                file_name=f"{name}-items.csv", mime="text/csv", on_click="ignore", key=f"{key}_items_csv",
            )  # fmt: skip
