"""Options of ``retrieve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="M", help="Registry key, alias, hub id[@commit], folder or litellm/provider/model."
    ),
]
MethodName = Annotated[
    str, typer.Option("--method", metavar="full-doc|sub-query|adapter|mftr|…", help="What is matched with what.")
]
Instruction = Annotated[
    bool, typer.Option("--instruction/--no-instruction", help="Give queries the instruction they have.")
]
Depth = Annotated[int, typer.Option("--depth", min=1, help="Results kept for a query.")]
Positives = Annotated[
    str, typer.Option("--positives", metavar="ground_truth|equivalents", help="What the adapter learns to be right.")
]
DtypeName = Annotated[
    str, typer.Option("--dtype", metavar="float32|float16|bfloat16", help="Compute in another number format.")
]
EndpointUrl = Annotated[str, typer.Option("--endpoint-url", help="Address of an embeddings endpoint.")]
Mftr = Annotated[
    str, typer.Option("--mftr", metavar="paper|v2", help="Preset of MFTR and its variants (default: paper).")
]
MethodPreset = Annotated[
    str, typer.Option("--method-preset", metavar="NAME", help="Preset of another method that has some.")
]
Standardizer = Annotated[
    str, typer.Option("--standardizer", metavar="rule-based|llm|ID", help="Who puts documents into fields.")
]
Rewriter = Annotated[
    str, typer.Option("--rewriter", metavar="original|llm|ID", help="Who rewrites queries; original: nobody.")
]
Weights = Annotated[str, typer.Option("--weights", metavar="ID", help="Imported weights instead of learned ones.")]
Llm = Annotated[
    str, typer.Option("--llm", metavar="MODEL", help="Language model as provider/model (default: gpt-4o-mini).")
]
Budget = Annotated[
    float | None, typer.Option("--budget", metavar="USD", min=0, help="The most that language models may cost.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask questions again that are recorded as failed.")]
Publish = Annotated[bool, typer.Option("--publish", help="Put the run on the leaderboard at once.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="RUN", help="Write a TREC file here and store nothing.")
]
