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
from pipeline.commands import retrieval_options as given
from pipeline.commands.options import BenchmarkName, Encoding, Quiet, ReportFormat

if TYPE_CHECKING:
    from pipeline.jobs.evaluation_request import EvaluationRequest
    from pipeline.retrieval.progress import Progress


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command()(retrieve)


def retrieve(
    benchmark: BenchmarkName,
    model: given.Model,
    method: given.MethodName = "full-doc",
    preset: Encoding = "card",
    instruction: given.Instruction = False,
    depth: given.Depth = 100,
    positives: given.Positives = "ground_truth",
    dtype: given.DtypeName = "",
    endpoint_url: given.EndpointUrl = "",
    mftr: given.Mftr = "",
    method_preset: given.MethodPreset = "",
    standardizer: given.Standardizer = "",
    rewriter: given.Rewriter = "",
    weights: given.Weights = "",
    llm: given.Llm = "",
    budget: given.Budget = None,
    retry_failed: given.RetryFailed = False,
    publish: given.Publish = False,
    out: given.Out = None,
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
    _refuse_idle(method, positives, bool(llm or budget is not None or retry_failed), (standardizer, rewriter))
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
        _to_store(request, format, quiet, retry_failed=retry_failed)


def _refuse_idle(method: str, positives: str, asking: bool, texts: tuple[str, str]) -> None:
    """Refuse options that the method would pass over: their user expects another run than the one that came."""
    from pipeline.errors import UsageError
    from pipeline.jobs.fields.methods import LLM, FieldMethod

    if positives != "ground_truth" and method != "adapter":
        raise UsageError(f"the positives mean nothing to the method {method}: they are the adapter's")
    found = FieldMethod(method) if method in list(FieldMethod) else None
    asks = found is not None and (found.needs.asks or LLM in texts)
    if asking and not asks:
        how = "; --standardizer llm and --rewriter llm ask one" if found is not None else ""
        raise UsageError(
            f"no language model is asked here, so --llm, --budget and --retry-failed mean nothing: leave them out{how}"
        )


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


def _to_store(request: EvaluationRequest, format: ReportFormat, quiet: bool, *, retry_failed: bool) -> None:
    from pipeline.errors import UsageError
    from pipeline.jobs.evaluation_request import resolve_request
    from pipeline.jobs.first_start import prepared_site
    from pipeline.jobs.measured_runs import measured_run
    from pipeline.jobs.measuring import measure
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
        run_id = measure(site, evaluation, retry_failed=retry_failed, progress=progress)
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
