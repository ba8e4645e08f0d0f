"""How the command line prints: reports in words, scores as tables, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pipeline.commands.terminal import json_escaped

if TYPE_CHECKING:
    import polars as pl

    from pipeline.run import RunReport

#: The order in which metrics are listed.
_METRICS = {"NDCG": 0, "Recall": 1, "Comp": 2}

_VERDICTS = {
    "accept": "Accepted",
    "normalise": "Accepted after normalising",
    "refuse": "Refused",
}


def require_place(out: Path | None, option: str = "--out") -> None:
    """Refuse a file that could not be written, before the work that it is for.

    Raises:
        UsageError: its folder is missing, or it is a folder itself.
    """
    from pipeline.errors import UsageError

    if out is None:
        return
    if out.is_dir():
        raise UsageError(f"{option}: {str(out)!r} is a folder; name a file")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{option}: there is no folder {str(out.absolute().parent)!r}")


@contextmanager
def writing(out: Path) -> Generator[None]:
    """Say in words why a file cannot be written.

    Raises:
        EnvironmentProblem: it cannot.
    """
    from pipeline.errors import EnvironmentProblem

    try:
        yield
    except OSError as error:
        raise EnvironmentProblem(f"{out} cannot be written: {error.strerror or error}") from None


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json_escaped(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)))


def describe_report(report: RunReport) -> str:
    """A validation report in words, one finding a line."""
    from pipeline.formats.flag_words import flag_words

    counts = report.counts
    what = f" as {report.format}" if report.format else ""
    lines = [f"{_VERDICTS[str(report.verdict)]}{what}"]
    if counts:
        lines.append(
            "  " + ", ".join(_counted(name, value, counts) for name, value in counts.items() if name != _TOTAL)
        )
    lines += [f"  problem: {problem.message}" for problem in report.problems]
    if report.problem_count > len(report.problems):
        lines.append(f"  … and {report.problem_count - len(report.problems):,} more problems")
    lines += [f"  note: {note}" for note in report.notes]
    if report.flags:
        lines.append("  flags: " + ", ".join(flag_words(report.flags)))
    return "\n".join(lines)


#: The queries of the benchmark, told with those of the run.
_TOTAL = "total_queries"


def _counted(name: str, value: int, counts: Mapping[str, int]) -> str:
    """A count of a report in words."""
    if name == "depth":
        return f"longest list {value:,}"
    if name == "queries" and _TOTAL in counts:
        return f"{value:,} of {counts[_TOTAL]:,} queries"
    return f"{value:,} {name.replace('_', ' ')}"


def points(value: float | None) -> str | None:
    """A fraction as points: × 100, one decimal, a real minus sign."""
    return None if value is None else f"{100 * value:.1f}".replace("-", "−")


def score_frame(summary: pl.DataFrame) -> pl.DataFrame:
    """The headline figures as people read them: one row a metric and cutoff, old and new of macro and micro.

    Args:
        summary: ``view, metric, k, average, domain, value, n`` as ``summarise`` returns it.
    """
    import polars as pl

    rows: dict[tuple[int, str, int], dict[str, str | None]] = {}
    for record in summary.filter(pl.col("average").is_in(["macro", "micro"])).iter_rows(named=True):
        metric, k = record["metric"], record["k"]
        row = rows.setdefault((_METRICS.get(metric, len(_METRICS)), metric, k), {"metric": f"{metric}@{k}"})
        row[f"{record['average']} {record['view']}"] = points(record["value"])
    columns = ["metric", "macro old", "macro new", "micro old", "micro new"]
    return pl.DataFrame([rows[key] for key in sorted(rows)], schema=dict.fromkeys(columns, pl.String))


def domain_frame(summary: pl.DataFrame) -> pl.DataFrame:
    """Every domain's figures at the headline cutoff: one row a domain, old and new of every metric.

    Args:
        summary: as for ``score_frame``.
    """
    import polars as pl

    shown = summary.filter(pl.col("average") == "domain")
    cutoffs = shown["k"].unique().to_list()
    k = 10 if 10 in cutoffs else min(cutoffs, default=10)
    rows: dict[str, dict[str, str | int | None]] = {}
    for record in shown.filter(pl.col("k") == k).iter_rows(named=True):
        name = record["domain"] or "(no domain)"
        row = rows.setdefault(name, {"domain": name, "queries": record["n"]})
        row[f"{record['metric']}@{k} {record['view']}"] = points(record["value"])
    columns = {"domain": pl.String, "queries": pl.Int64}
    columns |= {f"{metric}@{k} {view}": pl.String for metric in _METRICS for view in ("old", "new")}
    return pl.DataFrame(list(rows.values()), schema=columns)


def print_fields(record: Mapping[str, Any]) -> None:
    """A record as lines ``name: value``; what is not known is left out, a list has a line an item."""
    for name, value in record.items():
        if value is None or value in ("", [], {}):
            continue
        label = f"{name.replace('_', ' ')}:"
        if isinstance(value, dict):
            typer.echo(label)
            for key, inner in value.items():
                typer.echo(f"  {key.replace('_', ' '):<40} {plain(inner)}")
            continue
        for item in value if isinstance(value, list) else [value]:
            typer.echo(f"{label:<22} {plain(item)}")
            label = ""


def statistics_frame(statistics: Mapping[str, Any]) -> pl.DataFrame:
    """Table 1 as people read it: one row a figure, a column for all queries and one a domain.

    Args:
        statistics: ``{"all": {…}, "domains": {name: {…}}}`` of a benchmark's record.
    """
    import polars as pl

    columns = {"all": statistics.get("all", {}), **statistics.get("domains", {})}
    return pl.DataFrame(
        [
            {"figure": figure.replace("_", " ")} | {name: plain(values.get(figure)) for name, values in columns.items()}
            for figure in columns["all"]
        ]
    )


def plain(value: Any) -> str:
    """A value as text: grouped digits, four significant places for fractions."""
    if value is None or value == "":
        return "—"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


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
