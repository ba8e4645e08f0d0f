"""How the command line prints: reports in words, scores as tables, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from pipeline.run import RunReport

_VERDICTS = {
    "accept": "Accepted",
    "normalise": "Accepted after normalising",
    "refuse": "Refused",
}


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def describe_report(report: RunReport) -> str:
    """A validation report in words, one finding a line."""
    counts = report.counts
    what = f" as {report.format}" if report.format else ""
    lines = [f"{_VERDICTS[str(report.verdict)]}{what}"]
    if counts:
        lines.append("  " + ", ".join(f"{value:,} {name}" for name, value in counts.items()))
    lines += [f"  problem: {problem.message}" for problem in report.problems]
    if report.problem_count > len(report.problems):
        lines.append(f"  … and {report.problem_count - len(report.problems):,} more problems")
    lines += [f"  note: {note}" for note in report.notes]
    if report.flags:
        lines.append("  flags: " + ", ".join(report.flags))
    return "\n".join(lines)


def points(value: float | None) -> str | None:
    """A fraction as points: × 100, one decimal, a real minus sign."""
    return None if value is None else f"{100 * value:.1f}".replace("-", "−")


def score_frame(summary: pl.DataFrame) -> pl.DataFrame:
    """A summary as people read it: one row a metric and cutoff, old and new a group of queries.

    Args:
        summary: ``view, metric, k, average, domain, value, n`` as ``summarise`` returns it.
    """
    import polars as pl

    rows: dict[tuple[str, int], dict[str, str | None]] = {}
    for record in summary.filter(pl.col("average") != "source").iter_rows(named=True):
        row = rows.setdefault((record["metric"], record["k"]), {"metric": f"{record['metric']}@{record['k']}"})
        group = record["average"] if record["average"] != "domain" else (record["domain"] or "(no domain)")
        row[f"{group} {record['view']}"] = points(record["value"])
    return pl.DataFrame(list(rows.values()), infer_schema_length=None)


@contextmanager
def progress(label: str, quiet: bool) -> Generator[Callable[[float], None] | None]:
    """A percentage on standard error while something long goes on; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    shown = -1

    def show(fraction: float) -> None:
        nonlocal shown
        percent = int(100 * fraction)
        if percent > shown:
            shown = percent
            typer.echo(f"\r{label} {percent:3d} %", nl=False, err=True)

    try:
        yield show
    finally:
        typer.echo("\r\033[K", nl=False, err=True)
