"""``equirank …``: everything the site can do, from a shell.

Exit codes: 0 done, 1 input refused, 2 usage, 3 environment (model, key, database), 4 budget. A user never
sees a traceback; ``EQUIRANK_TRACEBACK=1`` shows it to whoever debugs the program itself.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from pipeline.commands import (
    annotate,
    benchmarks,
    comparison,
    disputes,
    downstream,
    mftr,
    retrieval,
    runs,
    service,
    terminal,
    tokens,
    validation,
)

#: Verbs that only log, in colours of their own.
_LOGGING = {"serve", "worker"}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}

app = typer.Typer(
    name="equirank",
    help="Score tool and skill retrievers against every valid answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
runs.register(app)
comparison.register(app)
benchmarks.register(app)
retrieval.register(app)
mftr.register(app)
annotate.register(app)
validation.register(app)
disputes.register(app)
downstream.register(app)
service.register(app)
tokens.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"equirank {version('equirank')}")
        raise typer.Exit


@app.callback()
def equirank(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Score tool and skill retrievers against every valid answer."""


def main() -> None:
    """Run the command line; the script ``equirank`` calls this."""
    if not _LOGGING & set(sys.argv[1:2]):
        terminal.protect()
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`equirank … | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("EQUIRANK_TRACEBACK") == "1":
            raise
        code = getattr(error, "exit_code", None)
        if code is None and isinstance(error, OSError) and error.errno in _FULL:
            # A full disk, or output sent to one: no fault of the program. What is buffered must not fail again.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 3
        if code is None and isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            said = repr(str(error.filename or ""))[:60]
            typer.echo(f"error: {said}… is longer than a name of a file can be: give a shorter one", err=True)
            sys.exit(2)
        if code is None:
            typer.echo(
                f"equirank failed unexpectedly ({type(error).__name__}: {error}). This is a fault of the program, "
                "not of your input; set EQUIRANK_TRACEBACK=1 to see where, and report it.",
                err=True,
            )
            sys.exit(70)
        typer.echo(f"error: {error}", err=True)
        sys.exit(code)


if __name__ == "__main__":
    main()
