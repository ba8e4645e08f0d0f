"""Options that the verbs of ``annotate`` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.commands.options import ReportFormat

if TYPE_CHECKING:
    from pipeline.jobs.annotations.choices import Choices


def _folder(text: str) -> Path:
    """The folder that an option names; an empty one would mean the folder that the command runs in."""
    if not text.strip():
        from pipeline.errors import UsageError

        raise UsageError("--out is empty: name a folder that is not there yet, or leave the option out")
    return Path(text)


NewVersion = Annotated[
    str, typer.Option("--version", metavar="V", help="The version to make; the same one goes on where it stopped.")
]
Judge = Annotated[
    str | None,
    typer.Option("--judge", metavar="MODEL", help="Language model of all three stages, as provider/model."),
]
JudgeDecompose = Annotated[
    str | None, typer.Option("--judge-decompose", metavar="MODEL", help="Who splits queries into sub-queries.")
]
JudgeVerify = Annotated[
    str | None, typer.Option("--judge-verify", metavar="MODEL", help="Who verifies candidates of a sub-query.")
]
JudgeAudit = Annotated[
    str | None, typer.Option("--judge-audit", metavar="MODEL", help="Who audits combinations of a query.")
]
Pool = Annotated[
    list[str] | None,
    typer.Option("--pool", metavar="M", help="A retriever that candidates come from; repeat for several."),
]
PoolPreset = Annotated[
    str | None, typer.Option("--preset", metavar="card|paper", help="How the retrievers encode (default: card).")
]
Depth = Annotated[int | None, typer.Option("--depth", min=1, help="Results of each retriever (default: 20).")]
Verify = Annotated[
    str | None,
    typer.Option("--verify", metavar="both|function_only", help="Must a tool's inputs be supplied (both) or not."),
]
Audit = Annotated[
    str | None,
    typer.Option("--audit", metavar="both|coverage", help="Must dependencies be consistent (both) or not."),
]
Repeated = Annotated[
    str | None,
    typer.Option("--repeated-tool", metavar="drop|collapse", help="What a tool that serves two sub-queries makes."),
]
Cap = Annotated[int | None, typer.Option("--cap", min=1, help="Combinations audited for a query (default: 100).")]
Retries = Annotated[
    int | None,
    typer.Option("--decompose-retries", min=0, help="Draws after a split that does not fit the tools (default: 3)."),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask once more what is recorded as failed, and nothing else again.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", parser=_folder, help="Also write the new version as a benchmark folder."
    ),
]
Format = Annotated[ReportFormat, typer.Option("--format", help="How to print the result.")]


def choices_of(
    judge: str | None,
    decompose: str | None,
    verify_judge: str | None,
    audit_judge: str | None,
    pool: list[str] | None,
    preset: str | None,
    depth: int | None,
    verify: str | None,
    audit: str | None,
    repeated_tool: str | None,
    cap: int | None,
    decompose_retries: int | None,
) -> Choices:
    """What was said of the settings."""
    from pipeline.jobs.annotations.choices import Choices

    return Choices(
        judge, decompose, verify_judge, audit_judge, tuple(pool) if pool else None, preset, depth, verify, audit,
        repeated_tool, cap, decompose_retries,
    )  # fmt: skip
