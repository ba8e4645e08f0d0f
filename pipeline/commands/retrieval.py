"""The verb ``retrieve``: rank a benchmark's tools with a model."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import BenchmarkName, Quiet, ReportFormat

if TYPE_CHECKING:
    from pipeline.jobs.evaluation_request import EvaluationRequest
    from pipeline.retrieval.progress import Progress


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command()(retrieve)


def retrieve(
    benchmark: BenchmarkName,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", metavar="M", help="Registry key, alias, hub id[@commit], folder or litellm/provider/model."
        ),
    ],
    method: Annotated[
        str,
        typer.Option("--method", metavar="full-doc|sub-query|adapter|mftr|…", help="What is matched with what."),
    ] = "full-doc",
    preset: Annotated[
        str, typer.Option("--preset", metavar="card|paper", help="Encode as the model card or as the papers did.")
    ] = "card",
    instruction: Annotated[
        bool,
        typer.Option("--instruction/--no-instruction", help="Give queries the instruction they have."),
    ] = False,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Results kept for a query.")] = 100,
    positives: Annotated[
        str,
        typer.Option("--positives", metavar="ground_truth|equivalents", help="What the adapter learns to be right."),
    ] = "ground_truth",
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="float32|float16|bfloat16", help="Compute in another number format.")
    ] = "",
    endpoint_url: Annotated[str, typer.Option("--endpoint-url", help="Address of an embeddings endpoint.")] = "",
    mftr: Annotated[
        str, typer.Option("--mftr", metavar="paper|v2", help="Preset of MFTR and its variants (default: paper).")
    ] = "",
    method_preset: Annotated[
        str, typer.Option("--method-preset", metavar="NAME", help="Preset of another method that has some.")
    ] = "",
    standardizer: Annotated[
        str,
        typer.Option("--standardizer", metavar="rule-based|llm|ID", help="Who puts documents into fields."),
    ] = "",
    rewriter: Annotated[
        str, typer.Option("--rewriter", metavar="original|llm|ID", help="Who rewrites queries; original: nobody.")
    ] = "",
    weights: Annotated[
        str, typer.Option("--weights", metavar="ID", help="Imported weights instead of learned ones.")
    ] = "",
    llm: Annotated[
        str, typer.Option("--llm", metavar="MODEL", help="Language model as provider/model (default: gpt-4o-mini).")
    ] = "",
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="USD", min=0, help="The most that language models may cost.")
    ] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Put the run on the leaderboard at once.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="RUN", help="Write a TREC file here and store nothing.")
    ] = None,
    format: Annotated[ReportFormat, typer.Option(help="How to print the result.")] = ReportFormat.TABLE,
    quiet: Quiet = False,
) -> None:
    """Rank a benchmark's tools with a model, here and now.

    With --out the run goes to a file and no database is needed for a benchmark folder. Without, it is stored as a
    measured run, private unless --publish; asking for the same again returns that run.
    """
    from pipeline.errors import UsageError
    from pipeline.jobs.evaluation_request import EvaluationRequest

    if mftr and method_preset:
        raise UsageError("--mftr and --method-preset name the same thing: give one of them")
    _refuse_idle(method, positives, llm, budget, (standardizer, rewriter))
    request = EvaluationRequest(
        benchmark=benchmark,
        model=model,
        method=method,
        preset=preset,
        instruction=instruction,
        depth=depth,
        positives=positives,
        dtype=dtype,
        endpoint_url=endpoint_url,
        method_preset=mftr or method_preset,
        standardizer=standardizer,
        rewriter=rewriter,
        weights=weights,
        llm=llm,
        budget=budget,
        publish=publish,
    )
    if out is not None:
        _to_file(request, out, format, quiet)
    else:
        _to_store(request, format, quiet)


def _refuse_idle(method: str, positives: str, llm: str, budget: float | None, texts: tuple[str, str]) -> None:
    """Refuse options that the method would pass over: their user expects another run than the one that came."""
    from pipeline.errors import UsageError
    from pipeline.jobs.fields.methods import LLM, FieldMethod

    if positives != "ground_truth" and method != "adapter":
        raise UsageError(f"the positives mean nothing to the method {method}: they are the adapter's")
    found = FieldMethod(method) if method in list(FieldMethod) else None
    asks = found is not None and (found.needs.asks or LLM in texts)
    if not asks and (llm or budget is not None):
        how = "; --standardizer llm and --rewriter llm ask one" if found is not None else ""
        raise UsageError(f"no language model is asked here, so --llm and --budget mean nothing: leave them out{how}")


def _to_file(request: EvaluationRequest, out: Path, format: ReportFormat, quiet: bool) -> None:
    from pipeline.formats.run_writer import write_trec
    from pipeline.jobs.benchmark_library import Library
    from pipeline.jobs.measuring import retrieve_benchmark

    output.require_place(out)
    library = Library()
    content = library.benchmark(request.benchmark)
    with stages(quiet) as progress:
        found, tag = retrieve_benchmark(library.limits_site, content, request, progress=progress)
    with output.writing(out):
        write_trec(found.run, found.target, out, tag)
    if format is ReportFormat.JSON:
        output.print_json(
            {
                "file": str(out),
                "ranking_hash": found.run.ranking_hash,
                "contract_hash": found.contract_hash,
                "efficiency": found.efficiency.as_json(),
                "notes": list(found.notes),
            }
        )
        return
    typer.echo(f"wrote {out}: {len(found.run.tools):,} rows for {found.run.queries_answered:,} queries")
    for note in found.notes:
        typer.echo(f"note: {note}")


def _to_store(request: EvaluationRequest, format: ReportFormat, quiet: bool) -> None:
    from pipeline.errors import UsageError
    from pipeline.jobs.evaluation_request import resolve_request
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.measuring import measure, measured_run
    from pipeline.jobs.run_records import run_headline
    from pipeline.jobs.submission import permalink, publish_run

    if Path(request.benchmark).expanduser().is_dir():
        raise UsageError(
            "a run is stored for a stored benchmark: import the folder with `equirank benchmark import`, "
            "or write a file with --out"
        )
    site = prepared_site()
    evaluation = resolve_request(site, request)
    known = measured_run(site, evaluation.run_key) is not None
    with stages(quiet) as progress:
        run_id = measure(site, evaluation, progress=progress)
    if request.publish:
        publish_run(site, run_id)  # it may have been there before, and private
    link = permalink(site, run_id)
    if format is ReportFormat.JSON:
        output.print_json({"run_id": run_id, "permalink": link})
        return
    typer.echo(f"{'measured before as' if known else 'measured as'} {run_id}\n{link}")
    for line in run_headline(site, run_id):
        typer.echo(line)


@contextmanager
def stages(quiet: bool) -> Generator[Callable[[Progress], None] | None]:
    """The stage, its count and the time that is left, on standard error; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    shown = 0.0

    def show(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown < 0.2 and progress.done < progress.total:
            return
        shown = time.monotonic()
        left = "" if progress.remaining_s is None else f", about {progress.remaining_s:.0f} s left"
        typer.echo(f"\r\033[K{progress.stage}: {progress.done:,} of {progress.total:,}{left}", nl=False, err=True)

    try:
        yield show
    finally:
        typer.echo("\r\033[K", nl=False, err=True)
