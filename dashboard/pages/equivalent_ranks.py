"""Equivalent ranks: how high runs rank the label, the best equivalent and a random item, and the queries behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import streamlit as st

from dashboard import query_reading, reading
from dashboard.charts import four_way_bars as bars
from dashboard.charts import rank_cdf as curves
from dashboard.components import permalinks, viewport
from dashboard.components.benchmark_choice import choose_version, first_with_queries
from dashboard.components.downloads import download_menu
from dashboard.components.empty import empty_board, no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.figure import draw_chart
from dashboard.components.numbers import NONE, points, whole
from dashboard.components.printed_ranks import show_printed_ranks
from dashboard.components.query_deciders import deciders
from dashboard.components.query_links import run_parameters
from dashboard.components.run_choice import choose_runs
from dashboard.components.run_detail import text_table
from dashboard.components.theme import ground
from dashboard.components.untrusted import plain
from dashboard.query_reading import Content, ReadRun
from pipeline.benchmark import Judgement
from pipeline.scoring.compiled import EquivalentsBasis
from pipeline.scoring.equivalent_ranks import (
    CURVE_RANKS,
    Found,
    RankCurves,
    Target,
    four_way_split,
    queries_at,
    rank_curves,
    rank_table,
)
from store.records import BenchmarkRecord

PREFIX = "er_"
KS = (1, 5, 10, 20)
EVERYWHERE = "all domains"
PAGE_ROWS = 15

_SPLIT = {
    Found.ONLY_EQUIVALENT: "only an equivalent in the top {k}",
    Found.BOTH: "both in the top {k}",
    Found.ONLY_TRUTH: "only the ground truth in the top {k}",
    Found.NEITHER: "neither in the top {k}",
}
_CURVES = {
    Target.TRUTH: "ground truth at rank r or better",
    Target.EQUIVALENT: "best equivalent at rank r or better",
    Target.NEGATIVE: "random {kind} at rank r or better",
}


@dataclass(frozen=True, eq=False)
class RunRanks:
    """One run's ranks.

    Attributes:
        table: see ``equivalent_ranks.rank_table``.
    """

    run: ReadRun
    table: pl.DataFrame
    curves: RankCurves
    split: pl.DataFrame


def ranks_of(version: Content, run: ReadRun, domain: str | None, k: int) -> RunRanks:
    """Curves and split of one run."""
    table = rank_table(
        query_reading.per_query(run), version.compiled, query_reading.negatives(version, run), domain=domain, k=k
    )
    return RunRanks(run, table, rank_curves(table), four_way_split(table))


def finding(found: RunRanks, k: int) -> str:
    """What the curves say of one run, in our Markdown."""
    shares = dict(found.split.select("found", "fraction").iter_rows())
    only, both, truth = (shares[key.value] or 0.0 for key in (Found.ONLY_EQUIVALENT, Found.BOTH, Found.ONLY_TRUTH))
    name = plain(found.run.name)
    if only == 0:
        return (
            f"**In no query is an equivalent in the top {k} of {name} without the ground truth.** Of "
            f"{whole(found.table.height)} queries with an equivalent, {points(both + truth)} % have the ground truth "
            f"there and {points(both)} % both."
        )
    return (
        f"**For {points(only)} % of these queries only an equivalent is in the top {k} of {name}: one label counts "
        f"them as failures.** The best equivalent is there for {points(only + both)} %, the ground truth for "
        f"{points(truth + both)} %."
    )


def basis_line(version: Content, kind: str, queries: int, domain: str | None) -> str:
    """Which queries take part, and what an equivalent is here."""
    where = "" if domain is None else f" of {plain(domain)}"
    basis = (
        f"{kind}s outside the ground truth that were found valid for a need of the query{_by(version, domain)}"
        if version.compiled.equivalents_basis is EquivalentsBasis.VERIFIED
        else f"{kind}s of valid combinations outside the ground truth, as this benchmark has no verdicts on single ones"
    )
    return f"{whole(queries)} queries{where} with at least one equivalent. Equivalents: {basis}."


def _by(version: Content, domain: str | None) -> str:
    """`` by judges and people``: who found the equivalents of these queries valid."""
    valid = version.benchmark.equivalents.filter(pl.col("verdict") == Judgement.VALID.value)
    if domain is not None:
        asked = version.benchmark.queries.filter(pl.col("domain") == domain)
        valid = valid.join(asked.select("query_id"), on="query_id", how="semi")
    who = deciders(valid)
    return f" by {who}" if who else ""


def controls(record: BenchmarkRecord, *, narrow: bool) -> tuple[list[ReadRun], str | None, int]:
    """Runs, domain and K."""
    width = "stretch" if narrow else 420
    runs = choose_runs(record, PREFIX + "run", at_first=2, label_visibility="collapsed", width=width)
    domains = [domain.name for domain in record.domains]
    domain = EVERYWHERE
    if len(domains) > 1:
        domain = permalinks.select(
            "Domain", [EVERYWHERE, *domains], PREFIX + "domain", EVERYWHERE, label_visibility="collapsed", width=150
        )
    else:
        permalinks.only_choice("Domain", PREFIX + "domain", EVERYWHERE)
    k = permalinks.select(
        "Cutoff K", list(KS), PREFIX + "k", 10, format_func=lambda cutoff: f"@{cutoff}", label_visibility="collapsed",
        width=84,
    )  # fmt: skip
    return runs, None if domain == EVERYWHERE else domain, int(k)


def draw_curves(found: Sequence[RunRanks], k: int, kind: str, *, narrow: bool) -> None:
    """The curves, why one is missing, their data."""
    panels = [curves.Panel(one.run.name, one.run.family, one.curves.curves) for one in found]
    draw_chart(
        curves.rank_cdf(panels, k, ground(), kind=kind, narrow=narrow), config=curves.CONFIG, key="er_curves",
        alt=f"Share of queries whose best rank is at most r, for ground truth, best equivalent and a random {kind}",
    )  # fmt: skip
    notes = [f"A random {kind} is drawn, one a query, from the run's own first 100 results that answer nothing."]
    missing: dict[str, list[str]] = {}
    for one in found:
        if one.curves.why_no_negative:
            missing.setdefault(one.curves.why_no_negative, []).append(one.run.name)
        elif one.curves.negatives < one.curves.queries:
            notes.append(
                f"{plain(one.run.name)} is at least 100 deep for {whole(one.curves.negatives)} of "
                f"{whole(one.curves.queries)} queries; its random {kind}s are of these"
                + (
                    ", too few to set beside the other curves."
                    if 2 * one.curves.negatives < one.curves.queries
                    else "."
                )
            )
    for reason, names in missing.items():
        notes.append(f"No curve of a random {kind} for {plain(', '.join(names))}: {reason[:1].lower()}{reason[1:]}")
    if len(missing) and sum(map(len, missing.values())) == len(found):
        notes = notes[1:]
    st.caption(" ".join(notes))
    data = curve_data(found)
    with st.expander("Data of these curves"):
        text_table(curve_texts(data, kind))
        download_menu(
            key="er_curve_data", name="equirank-rank-curves", data=lambda: data, table=lambda: curve_texts(data, kind)
        )


def curve_data(found: Sequence[RunRanks]) -> pl.DataFrame:
    """Every point of every curve: run_id, run, target, rank, queries, n, fraction."""
    return pl.concat(
        [
            one.curves.curves.select(
                pl.lit(one.run.id).alias("run_id"), pl.lit(one.run.name).alias("run"), pl.all()
            )
            for one in found
        ]
    )  # fmt: skip


def curve_texts(data: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The points as texts, one row a rank of a run."""
    rows, said = [], curves.names(kind)
    for (run, rank), part in data.group_by("run", "rank", maintain_order=True):
        shares = dict(part.select("target", "fraction").iter_rows())
        counts = dict(part.select("target", "queries").iter_rows())
        row = {"Run": str(run), "Rank at most": str(rank)}
        for target in Target:
            row[f"{said[target.value].capitalize()}, %"] = points(shares.get(target.value))
        row["Queries with an equivalent by then"] = whole(counts.get(Target.EQUIVALENT.value))
        rows.append(row)
    return pl.DataFrame(rows)


def draw_split(found: Sequence[RunRanks], k: int, *, narrow: bool) -> None:
    """The four-way split and its data."""
    st.subheader(f"What is in the top {k}?", anchor=False)
    splits = pl.concat([one.split.with_columns(name=pl.lit(one.run.name)) for one in found])
    draw_chart(
        bars.four_way_bars(splits, ground(), narrow=narrow), config=bars.CONFIG, key="er_split",
        alt=f"Queries by what the top {k} of each run holds",
    )  # fmt: skip
    shown = pl.DataFrame(
        [
            {"Run": one.run.name}
            | {
                _SPLIT[Found(row["found"])].format(k=k).capitalize(): f"{points(row['fraction'])} % ({row['queries']})"
                for row in one.split.iter_rows(named=True)
            }
            for one in found
        ]
    )
    with st.expander("Data of this chart"):
        text_table(shown)


def behind(version: Content, record: BenchmarkRecord, found: Sequence[RunRanks], k: int) -> None:
    """The queries behind one share or one point of a curve; a row opens its query."""
    st.subheader("The queries behind it", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        by_id = {one.run.id: one for one in found}
        one = found[0]
        if len(found) > 1:
            one = by_id[
                permalinks.described_select(
                    "Run", list(by_id), PREFIX + "of", found[0].run.id, describe=lambda run: by_id[run].run.name,
                    width=280,
                )
            ]  # fmt: skip
        choices = {key.value: words.format(k=k) for key, words in _SPLIT.items()}
        choices |= {
            f"{target}_by": words.format(kind=record.kind)
            for target, words in _CURVES.items()
            if target is not Target.NEGATIVE or one.curves.negatives
        }
        shown = permalinks.described_select(
            "Queries with", list(choices), PREFIX + "point", Found.ONLY_EQUIVALENT.value,
            describe=lambda word: choices[word], width=320, missing=None,
        )  # fmt: skip
        if shown.endswith("_by"):
            rank = permalinks.select("r", list(range(1, CURVE_RANKS + 1)), PREFIX + "r", 10, width=84)
            rows = queries_at(one.table, Target(shown.removesuffix("_by")), int(rank))
        else:
            rows = one.table.filter(found=shown).sort("equivalent_rank", "truth_rank", "query_id", nulls_last=True)
    st.caption(f"{whole(rows.height)} of {whole(one.table.height)} queries. Select a row to open its query.")
    if rows.is_empty():
        return
    pages = max(1, -(-rows.height // PAGE_ROWS))
    table = st.container()
    page = permalinks.page_number(pages, PREFIX + "page")
    part = rows.slice((page - 1) * PAGE_ROWS, PAGE_ROWS)
    with table:
        opened = behind_table(version, part, one, record)
    if opened is not None:
        st.switch_page(
            "pages/queries.py",
            query_params=run_parameters(record, [one.run, *(other.run for other in found if other is not one)], "q_")
            | {"q_query": opened, "q_k": str(k)},
        )


def behind_table(version: Content, part: pl.DataFrame, one: RunRanks, record: BenchmarkRecord) -> str | None:
    """One page of the queries; returns the one that was just chosen."""
    texts = part.select("query_id").join(
        version.queries.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
    )

    def ranks(column: str) -> list[str]:
        return [NONE if rank is None else str(rank) for rank in part[column]]

    columns: dict[str, list[str]] = {"Query": [text or query_id for query_id, text in texts.iter_rows()]}
    if len(record.domains) > 1:
        columns["Domain"] = part["domain"].to_list()
    columns |= {"Ground truth at": ranks("truth_rank"), "Best equivalent at": ranks("equivalent_rank")}
    if one.curves.negatives:
        columns[f"Random {record.kind} at"] = ranks("negative_rank")
    shown = pl.DataFrame(columns)
    config = {
        name: st.column_config.TextColumn(
            name, alignment="right" if name.endswith(" at") else "left", width="large" if name == "Query" else None
        )
        for name in shown.columns
    }
    identity = f"er_table_{hash((one.run.id, *part['query_id'])) & 0xFFFFFFFF:x}"
    state = st.dataframe(
        shown, hide_index=True, column_config=config, lazy=False, key=identity, height="content", on_select="rerun",
        selection_mode="single-row", alt="Queries; select a row to open one",
    )  # fmt: skip
    picked = state["selection"]["rows"]
    return str(part["query_id"][picked[0]]) if picked and picked[0] < part.height else None


def page() -> None:
    """Draw the page."""
    st.title("Where do equivalents appear in the ranking?", anchor=False)
    records = reading.benchmarks()
    if not records:
        no_benchmarks()
        return
    narrow = viewport.is_narrow()
    said = st.container()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        record = choose_version(
            records, PREFIX + "benchmark", first_with_queries(records), brief=True, label_visibility="collapsed",
            width="stretch" if narrow else 296,
        )  # fmt: skip
        if record.has_content:
            version = query_reading.content(record)
            runs, domain, k = controls(record, narrow=narrow)
    if not record.has_content:
        show_printed_ranks(record)
        return
    if not query_reading.offered_runs(record, [], None) and not runs:
        empty_board(record)
        return
    if not runs:
        st.info("Choose at least one run to see its curves.")
        return
    found = [ranks_of(version, run, domain, k) for run in runs]
    if found[0].table.is_empty():
        where = "No query" if domain is None else f"No query of {plain(domain)}"
        st.info(f"{where} has an equivalent outside its ground truth: there is nothing to draw.")
        return
    said.markdown(finding(found[0], k))
    st.caption(basis_line(version, record.kind, found[0].table.height, domain))
    draw_curves(found, k, record.kind, narrow=narrow)
    draw_split(found, k, narrow=narrow)
    behind(version, record, found, k)


with shown_errors():
    page()
