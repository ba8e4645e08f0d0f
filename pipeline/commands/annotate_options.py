"""Options that the verbs of ``annotate`` share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from pipeline.commands.options import ReportFormat


def _folder(text: str) -> Path:
    """The folder that an option names; an empty one would mean the folder that the command runs in."""
    if not text.strip():
        from pipeline.errors import UsageError

        raise UsageError("--out is empty: name a folder that is not there yet, or leave the option out")
    return Path(text)


NewVersion = Annotated[
    str, typer.Option("--version", metavar="V", help="The version to make; the same one goes on where it stopped.")
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
#: The options that say an expansion's settings, by their name in ``Choices``.
_SETTINGS: dict[str, Any] = {
    "judge": Annotated[
        str | None,
        typer.Option("--judge", metavar="MODEL", help="Language model of all three stages, as provider/model."),
    ],
    "decompose_judge": Annotated[
        str | None, typer.Option("--judge-decompose", metavar="MODEL", help="Who splits queries into sub-queries.")
    ],
    "verify_judge": Annotated[
        str | None, typer.Option("--judge-verify", metavar="MODEL", help="Who verifies candidates of a sub-query.")
    ],
    "audit_judge": Annotated[
        str | None, typer.Option("--judge-audit", metavar="MODEL", help="Who audits combinations of a query.")
    ],
    "pool": Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="M", help="A retriever that candidates come from; repeat for several."),
    ],
    "preset": Annotated[
        str | None, typer.Option("--preset", metavar="card|paper", help="How the retrievers encode (default: card).")
    ],
    "depth": Annotated[int | None, typer.Option("--depth", min=1, help="Results of each retriever (default: 20).")],
    "verify": Annotated[
        str | None,
        typer.Option("--verify", metavar="both|function_only", help="Must a tool's inputs be supplied (both) or not."),
    ],
    "audit": Annotated[
        str | None,
        typer.Option("--audit", metavar="both|coverage", help="Must dependencies be consistent (both) or not."),
    ],
    "repeated_tool": Annotated[
        str | None,
        typer.Option("--repeated-tool", metavar="drop|collapse", help="What a tool that serves two sub-queries makes."),
    ],
    "cap": Annotated[int | None, typer.Option("--cap", min=1, help="Combinations audited for a query (default: 100).")],
    "decompose_retries": Annotated[
        int | None,
        typer.Option(
            "--decompose-retries", min=0, help="Draws after a split that does not fit the tools (default: 3)."
        ),
    ],
}


def takes_choices(verb: Callable[..., None]) -> Callable[..., None]:
    """Let the command line give a verb's parameter ``choices`` as one option a setting."""
    hints = get_type_hints(verb, localns={"Choices": object}, include_extras=True)
    parameters = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name == "choices":
            parameters += [_keyword(name, option, None) for name, option in _SETTINGS.items()]
        else:
            parameters.append(_keyword(parameter.name, hints[parameter.name], parameter.default))

    @functools.wraps(verb)
    def from_options(**said: Any) -> None:
        from pipeline.jobs.annotations.choices import Choices

        chosen = {name: said.pop(name) for name in _SETTINGS}
        chosen["pool"] = tuple(chosen["pool"]) if chosen["pool"] else None
        verb(choices=Choices(**chosen), **said)

    # The command line reads these two.
    from_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    from_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return from_options


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
