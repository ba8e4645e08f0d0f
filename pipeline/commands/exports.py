"""Verbs that write what the pages offer to take away: a board's report, a run's card, and BibTeX."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat

StoredName = Annotated[
    str, typer.Option("--benchmark", "-b", metavar="B", help="A stored benchmark as slug or slug@version.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file instead of the terminal.")]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The id that submit printed.")]


class ReportKind(StrEnum):
    """What ``report`` writes."""

    HTML = "html"
    LATEX = "latex"


class ReportView(StrEnum):
    """Which figures a report shows; the words of ``pipeline.formats.board_rows.BoardView``."""

    BOTH = "both"
    OLD = "old"
    NEW = "new"
    LIFT = "lift"


def _only(name: str, what: str) -> Any:
    return typer.Option(name, metavar="WORD", help=f"Only rows of this {what}; may be repeated.")


def report(
    benchmark: StoredName,
    out: Out = None,
    metric: Annotated[str, typer.Option("--metric", help="NDCG, Recall or Comp.")] = "NDCG",
    k: Annotated[int, typer.Option("--k", min=1, max=1000, help="Cutoff.")] = 10,
    average: Annotated[
        str | None,
        typer.Option("--average", metavar="macro|micro|source", help="What the figure is the mean of."),
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Only this domain, or with --average source this source.")
    ] = None,
    view: Annotated[
        ReportView, typer.Option("--view", help="Figures to show; old also ranks by them.")
    ] = ReportView.BOTH,
    search: Annotated[
        str, typer.Option("--search", help="Only rows with this text in name, family, method, setting or place.")
    ] = "",
    family: Annotated[list[str] | None, _only("--family", "family")] = None,
    size: Annotated[list[str] | None, _only("--size", "size, such as “100M to 1B”")] = None,
    training: Annotated[list[str] | None, _only("--training", "training (base, fine-tuned, unknown)")] = None,
    weights: Annotated[list[str] | None, _only("--weights", "kind of weights (open, closed, unknown)")] = None,
    provenance: Annotated[list[str] | None, _only("--provenance", "source (reported, uploaded, measured)")] = None,
    level: Annotated[list[str] | None, _only("--level", "level (query, sub-query)")] = None,
    method: Annotated[list[str] | None, _only("--method", "method, such as full-doc")] = None,
    format: Annotated[
        ReportKind, typer.Option("--format", help="A page in one file, or the papers' table for LaTeX.")
    ] = ReportKind.HTML,
) -> None:
    """Write a board as a self-contained HTML file, or as the papers' old/new table in LaTeX.

    Filters hide rows and move no rank.
    """
    import polars as pl

    from pipeline.errors import UsageError
    from pipeline.formats.board_rows import BoardView, Filters, SortKey, check_words, narrowed, ordered, ranked_for
    from pipeline.jobs.board_report import BoardFigure, board_latex, board_query, board_report
    from pipeline.jobs.boards import read_board
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.public_address import public_address
    from pipeline.scoring.kernel import METRICS
    from store.access import benchmarks
    from store.errors import NotFound

    if metric not in METRICS:
        raise UsageError(f"--metric takes {', '.join(METRICS)}; found {metric!r}")
    if average not in {None, "macro", "micro", "domain", "source"}:
        raise UsageError(f"--average takes macro, micro, domain or source; found {average!r}")
    if domain is not None and average in {"macro", "micro"}:
        raise UsageError(f"a {average} figure belongs to no domain: leave out --average or --domain")
    if domain is None and average in {"domain", "source"}:
        raise UsageError(f"--average {average} needs --domain, the name of one")
    site = prepared_site()
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    chosen = average or ("domain" if domain is not None else version.headline)
    figure = BoardFigure(version, metric, k, chosen, domain, view.value)
    said = {
        "family": family, "size": size, "training": training, "weights": weights, "provenance": provenance,
        "level": level, "method": method,
    }  # fmt: skip
    filters = Filters({column: words for column, words in said.items() if words}, search)
    if format is ReportKind.LATEX and not filters.active:
        _write(board_latex(site, figure), out)
        return
    rows = read_board(site, version.id, metric=metric, k=k, average=chosen, domain=domain)
    rows = rows.filter(pl.col("old").is_not_null() | pl.col("new").is_not_null())
    if rows.is_empty():
        where = "" if domain is None else f" for {domain!r}"
        raise NotFound(f"{version.name} has no run with {metric}@{k} ({chosen}){where}")
    check_words(rows, filters)
    shown = BoardView(view.value)
    rows = ranked_for(rows, shown)
    if shown is BoardView.OLD:
        rows = ordered(rows, SortKey.RANK)
    rows = narrowed(rows, filters)
    if rows.is_empty():
        raise NotFound(f"no row of {version.name} passes these filters: leave one out")
    if format is ReportKind.LATEX:
        _write(board_latex(site, figure, rows["run_id"].to_list()), out)
        return
    _write(board_report(site, figure, rows, public_address(site.settings) + board_query(figure, filters)), out)


def card(
    run_id: RunId,
    format: Annotated[ReportFormat, typer.Option("--format", help="As text or as JSON.")] = ReportFormat.TABLE,
    out: Out = None,
) -> None:
    """Print what a run can be reproduced from: hashes, versions, contract and command."""
    import json

    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.run_card import card_text, run_card
    from store.access import runs

    site = prepared_site()
    with site.database.reading() as session:
        run = runs.get(session, run_id)
    made = run_card(site, run)
    if format is not ReportFormat.JSON:
        _write(card_text(made), out)
    elif out is None:
        output.print_json(made)
    else:
        _write(json.dumps(made, ensure_ascii=False, allow_nan=False, indent=2) + "\n", out)


def cite_run(run_id: RunId, out: Out = None) -> None:
    """Print BibTeX of a run and of the benchmark version that it was scored on."""
    from pipeline.jobs.citations import benchmark_address, run_bibtex
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.run_card import run_address
    from store.access import benchmarks, retrievers, runs

    site = prepared_site()
    with site.database.reading() as session:
        run = runs.get(session, run_id)
        retriever = retrievers.get_by_id(session, run.retriever_id)
        version = benchmarks.get_by_id(session, run.benchmark_version_id)
    cited = run_bibtex(
        run, retriever, version, address=run_address(site, run), benchmark_address=benchmark_address(site, version)
    )
    _write(cited, out)


def cite_benchmark(
    benchmark: Annotated[str, typer.Argument(metavar="B", help="A stored benchmark as slug or slug@version.")],
    out: Out = None,
) -> None:
    """Print BibTeX of a benchmark version: its own citation, and an entry with version and hash."""
    from pipeline.jobs.citations import benchmark_address, benchmark_bibtex
    from pipeline.jobs.first_start import prepared_site
    from store.access import benchmarks

    site = prepared_site()
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    _write(benchmark_bibtex(version, benchmark_address(site, version)), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    from pipeline.errors import EnvironmentProblem

    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(f"{out} cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {out}")
