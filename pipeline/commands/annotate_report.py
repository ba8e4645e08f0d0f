"""The verb ``annotate report``: what an expansion found, how its judges decided, and whom its pool favours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import annotate_made, output
from pipeline.commands.options import BenchmarkName

if TYPE_CHECKING:
    import polars as pl

    from pipeline.jobs.site import Site
    from store.access.annotations import AnnotationRecord
    from store.records import BenchmarkRecord

#: Ids and failures that are listed; ``--format json`` has all.
_SHOWN = 10
#: Ranks that are shown together, first and last.
_RANKS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, 50), (51, 100))
_RESCORE = "`equirank runs rescore`"
_NO_RUN = f"no public run is on this version: {_RESCORE} brings some"
_ITEMS = "verified items of a sub-query are its labelled tool and the extra ones"


class ReportStyle(StrEnum):
    """How the report is written."""

    TABLE = "table"
    JSON = "json"
    MD = "md"


@dataclass(frozen=True)
class _Section:
    """A table under a title, with what is to be known of it.

    Attributes:
        rows: the figures as they are, for JSON.
        shown: the same as people read them; None where there are none.
    """

    key: str
    title: str
    rows: Any
    shown: pl.DataFrame | None
    note: str = ""


def report(
    benchmark: BenchmarkName,
    k: Annotated[int, typer.Option("--k", min=1, help="Cutoff of the scores.")] = 10,
    format: Annotated[ReportStyle, typer.Option("--format", help="How to write it.")] = ReportStyle.TABLE,
) -> None:
    """Report on an expanded benchmark: Table 1, judges, failures, pool bias, lift by document length."""
    from pipeline.errors import UsageError
    from pipeline.jobs.annotations.reading import expansion_of
    from pipeline.jobs.first_start import prepared_site
    from store.access import benchmarks

    site = prepared_site()
    with site.database.reading() as session:
        version = benchmarks.get(session, benchmark)
    if version.has_content and k not in version.ks:
        raise UsageError(f"--k: runs of {version.name} are scored at {', '.join(map(str, version.ks))}")
    made = expansion_of(site, version.id)
    sections = _labels(site, version)
    if made is not None:
        sections += _expansion(site, made, k)
    sections += _lengths(site, version, k)
    if format is ReportStyle.JSON:
        told: dict[str, Any] = {"benchmark": {"slug": version.slug, "version": version.version}}
        told["benchmark"] |= {"hash": version.content_hash, "parents": list(version.parents)}
        told["expansion"] = None if made is None else _expansion_json(site, made)
        output.print_json(told | {section.key: section.rows for section in sections})
        return
    _print(version, made, sections, markdown=format is ReportStyle.MD)


def _expansion_json(site: Site, made: AnnotationRecord) -> dict[str, Any]:
    return {"id": made.id, "settings": dict(made.settings), "spent": annotate_made.spent_json(site, made.id)}


def _print(
    version: BenchmarkRecord, made: AnnotationRecord | None, sections: Sequence[_Section], *, markdown: bool
) -> None:
    from pipeline.formats.tables import TableFormat, escape_markdown, write_table
    from pipeline.toolex.settings import settings_from_json

    def text(words: str) -> str:
        # Our command stays code; ids and models are strangers' words.
        return escape_markdown(words).replace(escape_markdown(_RESCORE), _RESCORE) if markdown else words

    typer.echo(("# " if markdown else "") + text(version.name))
    if made is None:
        typer.echo("\n" + text("no expansion here made this version: who found and judged what is not known"))
    else:
        typer.echo("\n" + text(settings_from_json(made.settings).sentence))
    for section in sections:
        typer.echo("\n" + ("## " if markdown else "") + text(section.title) + ("\n" if markdown else ""))
        if section.shown is not None and section.shown.height:
            style = TableFormat.MARKDOWN if markdown else TableFormat.PLAIN
            typer.echo(write_table(section.shown, style), nl=False)
        if section.note:
            apart = markdown and section.shown is not None and section.shown.height
            typer.echo(("\n" if apart else "") + text(section.note))


def _labels(site: Site, version: BenchmarkRecord) -> list[_Section]:
    """What the labels themselves say."""
    from pipeline.jobs.annotations import reading

    table = reading.table1(site, version.id)
    rates = reading.acceptance(site, version.id)
    audits = reading.audits(site, version.id)
    judged = _by_ranks(rates)
    decided = audits.select("judge", "audited", "covered", "consistent", "accepted", rate=_points("rate"))
    percent = "rates in per cent"
    return [
        _Section("statistics", "Table 1", table.to_dicts(), annotate_made.statistics_table(table), _ITEMS),
        _Section("acceptance", "Verified candidates by judge and rank", rates.to_dicts(), judged, percent),
        _Section("audits", "Audited combinations by judge", audits.to_dicts(), decided, percent),
    ]


def _by_ranks(rates: pl.DataFrame) -> pl.DataFrame:
    """Acceptance with the deeper ranks in groups, as people read it."""
    import polars as pl

    first = pl.col("rank").replace_strict(
        {rank: start for start, stop in _RANKS for rank in range(start, stop + 1)}, default=_RANKS[-1][1] + 1
    )
    words = {start: str(start) if start == stop else f"{start}–{stop}" for start, stop in _RANKS}
    start = pl.when(pl.col("rank").is_null()).then(0).otherwise(first)
    return (
        rates.group_by("judge", start=start.cast(pl.Int64))
        .agg(pl.col("judged", "accepted", "unanswered").sum())
        .sort("judge", "start")
        .with_columns(rate=pl.col("accepted") / pl.col("judged"))
        .select(
            "judge",
            rank=pl.col("start").replace_strict({0: "all", **words}, default=f"from {_RANKS[-1][1] + 1}"),
            judged="judged", accepted="accepted", unanswered="unanswered", rate=_points("rate"),
        )
    )  # fmt: skip


def _expansion(site: Site, made: AnnotationRecord, k: int) -> list[_Section]:
    """What only the expansion knows."""
    import polars as pl

    from pipeline.formats.messages import listing
    from pipeline.jobs.annotations import reading

    failed = reading.failures(site, made.id)
    counts = annotate_made.failure_counts(failed)
    listed = failed.head(_SHOWN).select(
        "stage", "query_id", tools=pl.col("tool_ids").list.join(" + "), failure="failure"
    )
    more = failed.height - listed.height
    said = ", ".join(f"{count:,} at {stage}" for stage, count in counts.items())
    states = reading.states(site, made.id, ("query_id", "truncated", "decomposition_failed"))
    cut = states.filter("truncated")["query_id"].to_list()
    undivided = states.filter("decomposition_failed")["query_id"].to_list()
    told = [f"{len(cut):,} cut off at the cap" + (f": {listing(cut, _SHOWN)}" if cut else "")]
    whose = "query" if len(undivided) == 1 else "queries"
    told += [
        f"{len(undivided):,} {whose} without a decomposition"
        + (f", with C* alone: {listing(undivided, _SHOWN)}" if undivided else "")
    ]
    bias = reading.pool_bias(site, made.id)
    alone = "" if bias.only_one is None else f"; {100 * bias.only_one:.1f} % were found by one retriever only"
    members = bias.members.select(
        "member", "found", share=_points("share"), only="only", only_share=_points("only_share"),
        precision=_points("precision"),
    )  # fmt: skip
    without = reading.leave_one_out(site, made.id, k=k)
    names = _run_names(site, made)
    changes = without.select(
        "member", pl.col("run").replace_strict(names, default=pl.col("run")), new=_points("new"),
        without=_points("without"), change=_points("change"),
    )  # fmt: skip
    return [
        _Section(
            "failures",
            "Questions without a valid answer",
            {"counts": counts, "rows": failed.to_dicts()},
            listed,
            said + (f"; {more:,} more are in --format json" if more > 0 else ""),
        ),
        _Section("queries", "Queries", {"truncated": cut, "decomposition_failed": undivided}, None, "; ".join(told)),
        _Section(
            "pool_bias",
            "Who found the accepted equivalents",
            {"equivalents": bias.equivalents, "only_one": bias.only_one, "members": bias.members.to_dicts()},
            members,
            f"{bias.equivalents:,} accepted equivalents{alone}; shares in per cent, precision of all judged results",
        ),
        _Section(
            "leave_one_out",
            f"NDCG@{k} of every public run without one retriever's own finds",
            without.to_dicts(),
            changes,
            "points" if changes.height else _NO_RUN,
        ),
    ]


def _lengths(site: Site, version: BenchmarkRecord, k: int) -> list[_Section]:
    """Lift and gains by length of the labelled documents."""
    import polars as pl

    from pipeline.errors import ModelError
    from pipeline.jobs.annotations import quartiles, reading
    from pipeline.scoring.fine_tuning_pairs import fine_tuning_pairs
    from store.access import leaderboard

    runs = {run.id: run for run in reading.board_runs(site, version.id)}
    scores = {run.id: run.per_query_artifact for run in runs.values() if run.per_query_artifact}
    with site.database.reading() as session:
        board = leaderboard.leaderboard(session, version.id)
    pairs = [pair for pair in fine_tuning_pairs(board).iter_rows() if pair[0] in scores and pair[1] in scores]
    named = _names(board)
    try:
        lifts = quartiles.lift_by_length(site, version.id, scores, k=k)
        gains = quartiles.gain_by_length(
            site, version.id, {tuned: (scores[base], scores[tuned]) for base, tuned, _ in pairs}, k=k
        )
    except ModelError as error:
        return [_Section("lift_by_length", "Lift by document length", [], None, str(error))]

    def shown(frame: pl.DataFrame) -> pl.DataFrame:
        lengths = (pl.col(name).round(0).cast(pl.Int64) for name in ("shortest", "longest"))
        return frame.select(
            "quartile", "queries", *lengths, *(_points(run).alias(named.get(run, run)) for run in frame.columns[4:])
        )

    found = [
        _Section(
            "lift_by_length",
            f"Lift in NDCG@{k} by quartile of the labelled documents' tokens",
            lifts.to_dicts(),
            shown(lifts),
            "points" if scores else _NO_RUN,
        )
    ]
    if pairs:
        title = f"Gain of fine-tuned retrievers in new NDCG@{k} by quartile"
        found.append(_Section("gain_by_length", title, gains.to_dicts(), shown(gains), "points"))
    return found


def _run_names(site: Site, made: AnnotationRecord) -> dict[str, str]:
    from store.access import leaderboard

    with site.database.reading() as session:
        return _names(leaderboard.leaderboard(session, made.made_version_id or 0))


def _names(board: pl.DataFrame) -> dict[str, str]:
    """Run id → retriever and method, with the id where two would read alike."""
    from pipeline.formats.method_labels import method_label

    columns = board.select("run_id", "retriever", "method", "contract")
    names = {
        run: f"{retriever}, {method_label(method, label)}" for run, retriever, method, label in columns.iter_rows()
    }
    seen = list(names.values())
    return {run: name if seen.count(name) == 1 else f"{name} ({run})" for run, name in names.items()}


def _points(column: str) -> pl.Expr:
    """A fraction in hundredths as text, with a real minus sign."""
    import polars as pl

    return pl.col(column).map_elements(output.points, return_dtype=pl.String)
