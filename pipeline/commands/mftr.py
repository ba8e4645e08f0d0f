"""Verbs about multi-field retrieval: ``mftr standardize|rewrite|train|score|ablate|import|texts``.

They work on a benchmark folder without a database, with the files of the published shapes; language models need the
database, which keeps their answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands import mftr_texts, output
from pipeline.commands.options import BenchmarkName, Encoding, Quiet, ReportFormat, ScoreFormat, cutoffs
from pipeline.commands.retrieval import stages
from pipeline.mftr.settings import DEFAULT_PRESET

if TYPE_CHECKING:
    import polars as pl

    from pipeline.benchmark import Benchmark
    from pipeline.jobs.fields.files import ReadTexts
    from pipeline.jobs.site import Site
    from pipeline.mftr.learned_parameters import LearnedFolds
    from pipeline.retrieval.contract import Contract
    from pipeline.retrieval.models import ModelSpec
    from pipeline.run import Run
    from pipeline.scoring.compiled import CompiledBenchmark

Model = Annotated[
    str, typer.Option("--model", "-m", metavar="M", help="Registry key, alias, hub id[@commit] or folder.")
]
MftrPreset = Annotated[
    str, typer.Option("--mftr", metavar="paper|v2", help="As published, or with our changes to scales and penalties.")
]
Standardized = Annotated[
    Path | None,
    typer.Option("--standardized", metavar="F", help="Standardized documents; without, rules make them."),
]
Rewritten = Annotated[
    Path | None, typer.Option("--rewritten", metavar="F", help="Rewritten queries; without, queries go as they are.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(
        help="Retrieve with four fields a tool: standardize, rewrite, train, score, ablate.", no_args_is_help=True
    )
    mftr_texts.register(group)
    group.command("train")(train)
    group.command("score")(score)
    group.command("ablate")(ablate)
    app.add_typer(group, name="mftr")


def train(
    benchmark: BenchmarkName,
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="F", help="Write the weights here, as JSON.")],
    preset: Encoding = "card",
    mftr: MftrPreset = DEFAULT_PRESET,
    standardized: Standardized = None,
    rewritten: Rewritten = None,
    rewritten_out: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write the queries here with the fold that each belongs to, for `mftr score`."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Learn the weights of the fields in folds over a benchmark's own labels; write them in the published shape."""
    from pipeline.jobs.fields.files import write_folds
    from pipeline.jobs.fields.folder import learn_here
    from pipeline.mftr.learned_parameters import write_learned
    from pipeline.mftr.settings import preset as mftr_preset

    output.require_place(out)
    output.require_place(rewritten_out, "--rewritten-out")
    settings = mftr_preset(mftr)
    work = _Work(benchmark, model, preset, standardized, rewritten)
    with stages(quiet) as progress:
        learned = learn_here(
            work.content, work.read.texts, work.model, work.contract, settings, cache=work.cache, progress=progress
        )
    name = f"{work.model.entry.key}__{preset}"
    with output.writing(out):
        write_learned({work.content.info.slug: {name: learned.folds}}, out)
    typer.echo(f"wrote {out}: {len(learned.folds)} folds of {name}; {_shares(learned)}")
    if rewritten_out is not None:
        write_folds(rewritten_out, work.content, work.read, learned)
        typer.echo(f"wrote {rewritten_out}: {len(learned.fold_of):,} queries with their folds")
    work.print_notes()


def score(
    benchmark: BenchmarkName,
    model: Model,
    preset: Encoding = "card",
    mftr: MftrPreset = DEFAULT_PRESET,
    standardized: Standardized = None,
    rewritten: Rewritten = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="F", help="Weights in the published shape; without, they are learned."),
    ] = None,
    weights_of: Annotated[
        str, typer.Option(metavar="DATASET/MODEL", help="Which weights of the file, where it is not clear.")
    ] = "",
    printed_sign: Annotated[
        bool,
        typer.Option("--printed-sign", help="Compute the penalty with the sign as printed, an erratum."),
    ] = False,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Results kept for a query.")] = 100,
    k: Annotated[str, typer.Option("--k", help="Cutoffs, separated by commas.")] = "1,5,10,20",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Write the ranking as TREC.")] = None,
    format: Annotated[ScoreFormat, typer.Option(help="How to print the scores.")] = ScoreFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Rank by multi-field retrieval and score, as fractions with four decimals; stores nothing."""
    from dataclasses import replace

    from pipeline.formats.run_writer import write_trec
    from pipeline.jobs.fields.files import read_weights
    from pipeline.jobs.fields.folder import score_here
    from pipeline.mftr.settings import Penalty
    from pipeline.mftr.settings import preset as mftr_preset

    output.require_place(out)
    ks = cutoffs(k)
    settings = mftr_preset(mftr)
    if printed_sign:
        settings = replace(settings, penalty=Penalty.PRINTED_SIGN)
    work = _Work(benchmark, model, preset, standardized, rewritten)
    given = None if weights is None else read_weights(weights, work.content, work.model.entry, weights_of)
    with stages(quiet) as progress:
        found = score_here(
            work.content, work.read.texts, work.model, work.contract, settings, given,
            depth=depth, cache=work.cache, progress=progress,
        )  # fmt: skip
    if out is not None:
        with output.writing(out):
            write_trec(found.run, found.target, out, f"{work.model.entry.key}-mftr-{mftr}-{preset}")
    summary = _summary(work.compiled, found.run, ks)
    if format is ScoreFormat.JSON:
        from pipeline.scoring.averages import scores_json

        output.print_json(
            {
                "benchmark": {"name": work.compiled.name, "hash": work.compiled.content_hash},
                "method": {"name": "mftr", "preset": mftr, "model": work.model.entry.key, "encoding": preset},
                "scores": scores_json(summary),
                "weight_shares": found.learned.shares,
                "efficiency": found.efficiency,
                "notes": [*work.read.notes, *found.notes],
                "file": None if out is None else str(out),
            }
        )
        return
    _print_table(_fractions(summary), format)
    if format is ScoreFormat.TABLE:
        typer.echo(
            f"\n{work.compiled.name}: means over {len(found.target.queries):,} queries, under one label a query (old) "
            f"and under every valid combination (new); {work.model.entry.name}, MFTR {mftr}, encoded as {preset}"
        )
        typer.echo(_shares(found.learned))
        if out is not None:
            typer.echo(f"wrote {out}")
        work.print_notes(found.notes)


def ablate(
    benchmark: BenchmarkName,
    model: Model,
    preset: Encoding = "card",
    mftr: MftrPreset = DEFAULT_PRESET,
    standardized: Standardized = None,
    rewritten: Rewritten = None,
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="variants|fields|masking",
            help="The rows of Table 3; each field alone (Figure 4); raw documents without one field (Figure 1).",
        ),
    ] = "variants",
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this variant; repeat for several.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="F", help="Write the table as CSV.")] = None,
    format: Annotated[ScoreFormat, typer.Option(help="How to print the table.")] = ScoreFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Compare the parts of multi-field retrieval on one benchmark and model; stores nothing."""
    from polars import selectors as cs

    from pipeline.errors import UsageError
    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.fields.ablations import ablation_frame

    if of not in ("variants", "fields", "masking"):
        raise UsageError(f"--of takes variants, fields or masking; found {of!r}")
    output.require_place(out)
    work = _Work(benchmark, model, preset, standardized, rewritten)
    with stages(quiet) as progress:
        frame = ablation_frame(
            of, work.content, work.compiled, work.read, work.model, preset, mftr, only=tuple(only or ()),
            cache=work.cache, progress=progress,
        )  # fmt: skip
    if out is not None:
        with output.writing(out):
            out.write_text(write_table(frame, TableFormat.CSV), encoding="utf-8")
    if format is ScoreFormat.JSON:
        output.print_json({"benchmark": work.compiled.name, "of": of, "rows": frame.to_dicts()})
        return
    _print_table(frame.with_columns(cs.float().round(4)), format)
    if format is ScoreFormat.TABLE:
        if of == "fields":
            typer.echo("queries: those for which the field tells tools apart; — : for none, so nothing to rank by")
        work.print_notes()


class _Work:
    """What the verbs start from: the benchmark, the model and the texts in fields."""

    def __init__(
        self, benchmark: str, model: str, preset: str, standardized: Path | None, rewritten: Path | None
    ) -> None:
        from pipeline.jobs.benchmark_library import Library
        from pipeline.jobs.evaluation_request import EvaluationRequest, resolve_options
        from pipeline.jobs.fields.files import read_texts
        from pipeline.jobs.measuring import embedding_cache

        library = Library()
        self.site: Site = library.limits_site
        request = EvaluationRequest(benchmark, model, preset=preset)
        self.model: ModelSpec
        self.contract: Contract
        self.model, _, self.contract = resolve_options(self.site.settings, request)
        self.content: Benchmark = library.benchmark(benchmark)
        self.compiled: CompiledBenchmark = library.compiled(benchmark)
        self.read: ReadTexts = read_texts(self.content, standardized, rewritten)
        self.cache = embedding_cache(self.site)

    def print_notes(self, more: tuple[str, ...] = ()) -> None:
        for note in (*self.read.notes, *more):
            typer.echo(f"note: {note}")


def _summary(compiled: CompiledBenchmark, run: Run, ks: tuple[int, ...]) -> pl.DataFrame:
    from pipeline.scoring.averages import summarise
    from pipeline.scoring.scores import score_run

    return summarise(score_run(compiled, run, ks), compiled)


def _fractions(summary: pl.DataFrame) -> pl.DataFrame:
    """Means over queries with four decimals: one row a metric and cutoff."""
    import polars as pl

    means = summary.filter(pl.col("average") == "micro")
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for record in means.iter_rows(named=True):
        metric, k = record["metric"], record["k"]
        row = rows.setdefault((metric, k), {"metric": f"{metric}@{k}"})
        row[record["view"]] = None if record["value"] is None else f"{record['value']:.4f}"
    order = {"NDCG": 0, "Recall": 1, "Comp": 2}
    keys = sorted(rows, key=lambda key: (order.get(key[0], 3), key[1]))
    return pl.DataFrame([rows[key] for key in keys], schema=dict.fromkeys(("metric", "old", "new"), pl.String))


def _print_table(frame: pl.DataFrame, format: ScoreFormat | ReportFormat) -> None:
    from pipeline.formats.tables import TableFormat, write_table

    if str(format) != TableFormat.CSV:
        frame = frame.rename({column: _heading(column) for column in frame.columns})
    typer.echo(write_table(frame, TableFormat(str(format))), nl=False)


def _heading(column: str) -> str:
    """``ndcg_10_old`` as ``NDCG@10 old``; other columns in words."""
    metric, _, rest = column.partition("_")
    name = {"ndcg": "NDCG", "recall": "Recall"}.get(metric)
    if name is None:
        return column.replace("_", " ")
    return f"{name}@{rest.replace('_', ' ')}"


def _shares(learned: LearnedFolds) -> str:
    from pipeline.mftr.schema import Field

    shares = learned.shares
    if shares is None:
        return "weight shares: none, since a weight is negative"
    parts = ", ".join(f"{field} {100 * share:.1f} %" for field, share in zip(Field, shares, strict=True))
    return f"weight shares: {parts}"
