"""Verbs that look at stored runs together: ``compare``, ``statistics`` and ``report``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import exports, output
from pipeline.commands.options import BenchmarkName, OrderOption, PartOption, Quiet, ReportFormat, declared_order

if TYPE_CHECKING:
    import polars as pl

    from pipeline.jobs.comparison import Comparison

_RUN = "Id of a stored run, or a run file."
_SHARE = (
    "artifact share: part of the old gain that is gone once every valid answer counts, (old − new) / old; negative: "
    "the one label hid gain; —: the old gain is near zero, or may be, so there is nothing to take a share of"
)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command()(compare)
    app.command()(statistics)
    app.command()(exports.report)


def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help=f"What gains are measured from. {_RUN}")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help=f"What gains. {_RUN}")],
    benchmark: BenchmarkName,
    metric: Annotated[str, typer.Option("--metric", help="NDCG, Recall or Comp.")] = "NDCG",
    k: Annotated[int, typer.Option("--k", min=1, max=1000, help="Cutoff.")] = 10,
    order: OrderOption = None,
    part: PartOption = None,
    format: Annotated[ReportFormat, typer.Option(help="How to print.")] = ReportFormat.TABLE,
) -> None:
    """Say what RUN_B gains over RUN_A: old and new, interval, p, wins and losses, and how much of it is real."""
    from pipeline.jobs.benchmark_library import Library
    from pipeline.jobs.comparison import compare as compare_runs

    declared = declared_order(order)
    found = compare_runs(Library(), run_a, run_b, benchmark, metric=metric, k=k, order=declared, part=part)
    if format is ReportFormat.JSON:
        output.print_json(found.as_json())
        return
    _print(found)


def _print(found: Comparison) -> None:
    from pipeline.formats.tables import TableFormat, write_table

    typer.echo(f"{found.second} against {found.first} on {found.benchmark}, {found.metric}@{found.k} × 100\n")
    typer.echo(write_table(_gain_frame(found.gains), TableFormat.PLAIN), nl=False)
    if found.outcomes is None:
        typer.echo(f"\n{_SHARE}")
        typer.echo("printed figures: no scores by query lie behind them, so there are no intervals, tests or wins")
        return
    typer.echo("\nqueries")
    rows = found.outcomes.filter(found.outcomes["domain"].is_null()).select("view", "wins", "losses", "ties")
    typer.echo(write_table(rows, TableFormat.PLAIN), nl=False)
    typer.echo("\n[95 % interval]; p: sign-flip test that the gain is zero; Holm: p adjusted over the rows")
    typer.echo(_SHARE)
    typer.echo(
        "p shrink: sign-flip test that the gain under the one label (old) and under every valid answer (new) is equal"
    )


def _gain_frame(gains: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    from pipeline.scoring.gain_table import with_sayable_shares

    rows = []
    for row in with_sayable_shares(gains).iter_rows(named=True):
        cells = {"over": row["domain"] or row["average"], "n": None if row["n"] is None else f"{row['n']:,}"}
        for view in ("old", "new"):
            cells[f"gain {view}"] = _with_interval(row, f"gain_{view}")
            cells[f"p {view}"] = _p(row[f"p_{view}"])
            cells[f"Holm {view}"] = _p(row[f"p_{view}_holm"])
        cells["artifact share"] = "—" if row["share"] is None else f"{100 * row['share']:.1f} %".replace("-", "−")
        cells["p shrink"] = _p(row["p_shrink"])
        cells["Holm shrink"] = _p(row["p_shrink_holm"])
        rows.append(cells)
    return pl.DataFrame(rows, infer_schema_length=None)


def _with_interval(row: dict[str, float | None], name: str) -> str | None:
    value = _signed(row[name])
    if value is None or row[f"{name}_low"] is None:
        return value
    return f"{value} [{_signed(row[f'{name}_low'])}, {_signed(row[f'{name}_high'])}]"


def _signed(value: float | None) -> str | None:
    if value is None:
        return None
    text = f"{100 * value:+.1f}"
    return (text.lstrip("+-") if float(text) == 0 else text).replace("-", "−")


def _p(value: float | None) -> str | None:
    if value is None:
        return None
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def statistics(
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help="Only this stored benchmark.")] = None,
    quiet: Quiet = False,
) -> None:
    """Compute what is missing of intervals, controls, ties, gains and distributions; a worker does so by itself."""
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.statistics import compute, pending
    from store.access import benchmarks

    site = prepared_site()
    version = None
    if benchmark is not None:
        with site.database.reading() as session:
            version = benchmarks.get(session, benchmark).id
    work = pending(site, version)
    failures = compute(site, work, lambda line: None if quiet else typer.echo(line, err=True))
    if failures:
        for failure in failures:
            typer.echo(f"failed: {failure}", err=True)
        raise typer.Exit(3)
    typer.echo(
        f"statistics of {len(work.runs):,} runs, {len(work.boards):,} boards and {len(work.benchmarks):,} benchmarks "
        "computed; nothing is missing"
    )
