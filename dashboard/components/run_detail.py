"""Everything about one run: what it is, its figures old and new by domain, and what it can be reproduced from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from dashboard.components import permalinks, viewport
from dashboard.components.board_table import ROW_HEIGHT
from dashboard.components.downloads import download_menu
from dashboard.components.numbers import NONE, day, decimals_of, figure_text, points, size, whole
from dashboard.components.run_statistics import show_statistics
from dashboard.components.untrusted import plain, web_address
from dashboard.current_site import the_site
from pipeline.formats.figures import significance_note
from pipeline.formats.flag_words import flag_words
from pipeline.formats.method_labels import method_label, method_words
from store.access import benchmarks, retrievers, runs
from store.records import BenchmarkRecord, RetrieverRecord, RunRecord

METRICS = ("NDCG", "Recall", "Comp")


@dataclass(frozen=True)
class RunPage:
    """A run with everything that is shown beside it.

    Attributes:
        summaries: all figures, see ``store.access.runs.summaries``.
        versions: published runs of the same leaderboard row, current one first.
        base: name of the retriever it was fine-tuned from, if known.
    """

    run: RunRecord
    benchmark: BenchmarkRecord
    retriever: RetrieverRecord
    summaries: pl.DataFrame
    versions: tuple[RunRecord, ...]
    base: str | None


def read_run(run_id: str, *, token: str | None = None, person: str | None = None) -> RunPage:
    """The run as this reader may see it.

    Raises:
        NotFound: there is none, or not for this reader.
    """
    with the_site().database.reading() as session:
        run = runs.get_shown(session, run_id, token=token, person=person)
        retriever = retrievers.get_by_id(session, run.retriever_id)
        known = retrievers.list_retrievers(session)
        base = known.filter(pl.col("key") == retriever.base_key)["name"].to_list() if retriever.base_key else []
        return RunPage(
            run=run,
            benchmark=benchmarks.get_by_id(session, run.benchmark_version_id),
            retriever=retriever,
            summaries=runs.summaries(session, run_id),
            versions=tuple(runs.versions(session, run_id)),
            base=base[0] if base else retriever.base_key,
        )


def old_new_table(summaries: pl.DataFrame, k: int, domains: Sequence[str], headline: str) -> pl.DataFrame:
    """Old, new and lift of every metric at one K: the averages first, then the domains; all text, ×100.

    Args:
        summaries: columns view, metric, k, average, domain, value, n and maybe printed.
        k: cutoff.
        domains: in the benchmark's order.
        headline: the average that ranks the board; it comes first.
    """
    if "printed" not in summaries.columns:
        summaries = summaries.with_columns(printed=pl.lit(None, pl.String))
    here = summaries.filter(pl.col("k") == k)
    cells = {
        (r["metric"], r["average"], r["domain"] or "", r["view"]): (r["value"], r["printed"], r["n"])
        for r in here.iter_rows(named=True)
    }
    found = {(average, domain) for _, average, domain, _ in cells}
    averages = sorted({"macro", "micro"}, key=lambda average: average != headline)
    extra = sorted(domain for average, domain in found if average == "domain" and domain not in domains)
    scopes = [(a, "") for a in averages] + [("domain", d) for d in [*domains, *extra]]
    rows = []
    for average, domain in scopes:
        if (average, domain) not in found:
            continue
        row: dict[str, str] = {"over": domain or f"all ({average})"}
        counts: list[int] = []
        for metric in METRICS:
            old, old_printed, old_n = cells.get((metric, average, domain, "old"), (None, None, None))
            new, new_printed, new_n = cells.get((metric, average, domain, "new"), (None, None, None))
            lift = None if old is None or new is None else new - old
            row[f"{metric}@{k} old"] = figure_text(old, old_printed)
            row[f"{metric}@{k} new"] = figure_text(new, new_printed)
            row[f"{metric} lift"] = points(lift, decimals_of(old_printed, new_printed), signed=True)
            counts += [n for n in (old_n, new_n) if n is not None]
        row["queries"] = whole(counts[0]) if counts else NONE
        rows.append(row)
    return pl.DataFrame(rows)


def rounding_note(figures: pl.DataFrame) -> str:
    """Why a lift of ``old_new_table`` may differ from what its figures give; empty where there is no lift."""
    lifts = [text for name in figures.columns if name.endswith(" lift") for text in figures[name] if text != NONE]
    return "Differences are of unrounded figures." if lifts else ""


_FIGURE = re.compile(r"[+\u2212<]?\$?[\d\u202f.]+( \[[^\]]+\])?( / [\d.]+)?( %)?[*†]?|\u2014|")


def text_table(
    frame: pl.DataFrame,
    *,
    key: str | None = None,
    label: str | None = None,
    most_rows: int | None = None,
    order: Sequence[str] | None = None,
    widths: Mapping[str, int] | None = None,
) -> None:
    """A table of texts, columns of figures to the right; nothing in it is read as markup.

    Args:
        frame: all text.
        key: of the element.
        label: accessible name.
        most_rows: how many rows show before the table scrolls; None shows all.
        order: the columns' order on the page, where it is not the frame's.
        widths: pixels of columns that would be clipped otherwise.
    """
    config = {
        name: st.column_config.TextColumn(
            name,
            alignment="right" if all(_FIGURE.fullmatch(text or "") for text in frame[name]) else "left",
            width=(widths or {}).get(name),
        )
        for name in frame.columns
    }
    height: Any = "content" if most_rows is None or frame.height <= most_rows else ROW_HEIGHT * (most_rows + 1) + 2
    st.dataframe(
        frame, hide_index=True, column_config=config, lazy=False, key=key, height=height, column_order=order, alt=label
    )


def facts_table(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values, two columns of plain text; empty values are left out."""
    rows = [(name, plain(value)) for name, value in facts if value and value != NONE]
    frame = pl.DataFrame(rows, schema=["", " "], orient="row")
    st.table(frame, border="horizontal", hide_header=True, hide_index=True)


def headline_sentence(page: RunPage, k: int) -> str:
    """The run's main figure in one sentence; empty where it is not known."""
    average = page.benchmark.headline
    found = {
        row["view"]: row["value"]
        for row in page.summaries.iter_rows(named=True)
        if (row["metric"], row["k"], row["average"]) == ("NDCG", k, average)
    }
    old, new = found.get("old"), found.get("new")
    if old is None:
        return ""
    if new is None:
        return f"NDCG@{k} {points(old)} against one label a query ({average} average)."
    lift = points(new - old, signed=True)
    return f"**NDCG@{k}: {points(old)} → {points(new)}**, lift {lift} ({average} average)."


#: The level of a run in words.
LEVELS = {"query": "whole queries", "sub-query": "sub-queries that know the needs behind the query"}


def facts_of(page: RunPage) -> list[tuple[str, str]]:
    """What is known of a run, in words."""
    run, retriever = page.run, page.retriever
    fine_tuned = {True: "fine-tuned", False: "base model", None: ""}[retriever.fine_tuned]
    if retriever.fine_tuned and page.base:
        fine_tuned += f" from {page.base}"
    weights = {True: "open", False: "closed", None: ""}[retriever.open_weights]
    answered = ""
    if run.queries_total and run.queries_answered is not None:
        answered = f"{whole(run.queries_answered)} of {whole(run.queries_total)}"
        if run.missing:
            answered += f"; the {whole(run.missing)} missing count as 0"
    reported = run.provenance == "reported"
    return [
        ("Benchmark", page.benchmark.name),
        ("Method", method_words(run.method, run.contract or "").replace("(card", "(as its model card says", 1)),
        ("Asked with", LEVELS.get(run.level, run.level)),
        ("Family", retriever.family),
        ("Size", size(retriever.parameters)),
        ("Training", fine_tuned),
        ("Weights", weights),
        ("Trained on this benchmark", run.trained_on_benchmark),
        ("Source", f"printed in {run.place}; no ranking lies behind it" if reported else run.provenance),
        ("State", "" if run.state == "published" else run.state + (", private" if run.visibility == "private" else "")),
        ("Queries answered", answered),
        ("Flags", ", ".join(flag_words(run.flags))),
        ("Licence", run.licence or retriever.licence),
        ("Published", "" if reported else day(run.published_at)),
        ("Depth", NONE if run.depth is None else whole(run.depth)),
        ("Scorer version", run.scorer_version or ""),
        ("Run id", run.id),
    ]


def hashes_of(run: RunRecord) -> list[tuple[str, str]]:
    """What the figures can be reproduced from, in full: they need the whole width."""
    return [
        ("Benchmark hash", run.benchmark_hash or ""),
        ("Ranking hash", run.ranking_hash or ""),
        ("File hash", run.raw_artifact or ""),
    ]


def links_of(page: RunPage) -> list[tuple[str, str]]:
    """Addresses that may become links: (label, address)."""
    found = [("the run's page", page.run.link), ("the retriever's page", page.retriever.link)]
    return [(label, safe) for label, address in found if (safe := web_address(address)) is not None]


def run_title(page: RunPage) -> str:
    """The retriever's name, the method where it is not the usual one, and the level where that is sub-queries."""
    method = method_label(page.run.method, page.run.contract or "")
    by_level = page.run.level == "sub-query"
    usual = {method_label("full-doc", "")} | ({method_label("sub-query", "")} if by_level else set())
    parts = [page.retriever.name, *([] if method in usual else [method]), *(["sub-queries"] if by_level else [])]
    return " · ".join(parts)


def remarks_of(page: RunPage, k: int) -> list[str]:
    """Notes on the run and on its figures at this K; a note on several figures is said once."""
    figures = page.summaries.filter((pl.col("k") == k) & (pl.col("note").fill_null("") != ""))
    noted: dict[str, list[tuple[str, str, str]]] = {}
    for row in figures.iter_rows(named=True):
        noted.setdefault(row["note"], []).append((row["metric"], row["view"], row["domain"] or row["average"]))
    said = [f"{listed_figures(found, k)}: {note}" for note, found in noted.items()]
    return list(dict.fromkeys([*page.run.notes, *said]))


def listed_figures(found: Sequence[tuple[str, str, str]], k: int) -> str:
    """``NDCG@10 new, web``, or ``NDCG, Recall and Comp@10, old and new, web and customized`` for all of them."""
    order = {word: place for place, word in enumerate((*METRICS, "old", "new"))}
    parts = [sorted(set(words), key=lambda word: (order.get(word, 0), word)) for words in zip(*found, strict=True)]
    if len(set(found)) == len(parts[0]) * len(parts[1]) * len(parts[2]):
        metrics, views, overs = (_joined(words) for words in parts)
        return f"{metrics}@{k}{' ' if len(parts[1]) == 1 else ', '}{views}, {overs}"
    return "; ".join(f"{metric}@{k} {view}, {over}" for metric, view, over in dict.fromkeys(found))


def _joined(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def show_run(page: RunPage, *, k: int, key: str) -> None:
    """Draw a run: figures, remarks, facts, links, older runs."""
    domains = [domain.name for domain in page.benchmark.domains]
    figures = old_new_table(page.summaries, k, domains, page.benchmark.headline)
    if figures.height:
        text_table(figures, key=f"{key}_figures", label=f"Figures of {page.retriever.name} at K = {k}")
        marked = significance_note([cell for row in figures.iter_rows() for cell in row if isinstance(cell, str)])
        said = [marked, "" if page.run.provenance == "reported" else rounding_note(figures)]
        if any(said):
            st.caption(" ".join(filter(None, said)))
    show_statistics(page, k=k, key=key)
    remarks = remarks_of(page, k)
    if remarks:
        with st.container(gap="xxsmall"):
            st.markdown("**Remarks**")
            for remark in remarks:
                st.text(remark)
    facts = facts_of(page)
    half = (len([f for f in facts if f[1] and f[1] != NONE]) + 1) // 2
    shown = [f for f in facts if f[1] and f[1] != NONE]
    if viewport.is_narrow():
        # Two columns under each other would leave a gap between them.
        facts_table(shown)
    else:
        left, right = st.columns(2, gap="medium")
        with left:
            facts_table(shown[:half])
        with right:
            facts_table(shown[half:])
    hashes = [(name, value) for name, value in hashes_of(page.run) if value]
    if hashes:
        with st.expander("Hashes"):
            st.code("\n".join(f"{name:<15} {value}" for name, value in hashes), language=None, wrap_lines=True)
    with st.container(horizontal=True):
        for label, address in links_of(page):
            st.link_button(f"Open {label}", address, icon=":material/open_in_new:", key=f"{key}_{label}")
        raw_download(page.run, key=key)
        download_menu(
            key=f"{key}_download",
            name=f"equirank-run-{page.run.id}",
            data=lambda: page.summaries,
            table=lambda: figures,
        )
    if len(page.versions) > 1:
        older = [v for v in page.versions if v.id != page.run.id]
        st.caption(f"{len(older)} other published {'run' if len(older) == 1 else 'runs'} of the same row")
        for version in older:
            st.page_link(
                "pages/run.py", label=f"{day(version.published_at)} · {version.id}", query_params={"run": version.id}
            )


def raw_download(run: RunRecord, *, key: str) -> None:
    """The file as it was submitted, under a name of ours."""
    if run.raw_artifact is None:
        return
    artifacts, digest = the_site().artifacts, run.raw_artifact
    st.download_button(
        "Download the run file",
        data=lambda: artifacts.get_bytes(digest),
        file_name=f"equirank-{run.id}{safe_ending(run.raw_name)}",
        mime="application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}_raw",
    )


_ENDINGS = (
    ".trec.gz", ".trec.zst", ".txt.gz", ".json.gz", ".jsonl.gz", ".csv.gz", ".tsv.gz", ".trec", ".run", ".txt",
    ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".gz", ".zst",
)  # fmt: skip


def safe_ending(name: str | None) -> str:
    """The known ending of a submitted file's name, ``.run`` when it has none; nothing else of the name is used."""
    folded = (name or "").lower()
    return next((ending for ending in _ENDINGS if folded.endswith(ending)), ".run")


def retriever_link(page: RunPage) -> None:
    """A link to everything about the run's retriever, where anybody may see that."""
    from dashboard.retriever_reading import is_public

    if is_public(page.retriever.key):
        st.page_link(
            "pages/retriever.py",
            label=f"Everything about {plain(page.retriever.name)}",
            icon=":material/network_node:",
            query_params={"retriever": page.retriever.key},
        )


def run_address(page: RunPage) -> str:
    """The permalink of the run within the site."""
    token = page.run.private_token if page.run.visibility == "private" else None
    return permalinks.address("run", run=page.run.id, token=token or "")
