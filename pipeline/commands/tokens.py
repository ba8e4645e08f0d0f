"""Verbs about the tokens that programs submit with: ``token create|list|revoke``."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from pipeline.commands import output
from pipeline.commands.options import ReportFormat


class TokenScope(StrEnum):
    """What a token allows."""

    SUBMIT = "submit"
    PUBLISH = "publish"


Format = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    group = typer.Typer(help="Make, list and revoke tokens of the API.", no_args_is_help=True)
    group.command("create")(create)
    group.command("list")(list_tokens)
    group.command("revoke")(revoke)
    app.add_typer(group, name="token")


def create(
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What it is for, such as 'nightly runs'.")],
    scope: Annotated[
        list[TokenScope] | None,
        typer.Option(help="submit stores private runs, publish also puts runs on the board (default: both)."),
    ] = None,
    person: Annotated[str, typer.Option(help="Whose submissions it makes.")] = "local",
    days: Annotated[int | None, typer.Option(min=1, max=36500, help="Days until it expires (default: never).")] = None,
    format: Format = ReportFormat.TABLE,
) -> None:
    """Make a token and print it; it cannot be shown again."""
    from pipeline.jobs.first_start import prepared_site
    from store.access import tokens
    from store.token_models import Scope

    with prepared_site().database.session() as session:
        made = tokens.create(
            session,
            label,
            person=person,
            scopes=[Scope(item.value) for item in scope or list(TokenScope)],
            lifetime=None if days is None else timedelta(days=days),
        )
    if format is ReportFormat.JSON:
        output.print_json({"id": made.token.id, "token": made.secret, "scopes": list(made.token.scopes)})
        return
    typer.echo(f"token {made.token.id} ({', '.join(made.token.scopes)}): keep it now, it is not shown again", err=True)
    typer.echo(made.secret)


def list_tokens(format: Format = ReportFormat.TABLE) -> None:
    """List the tokens, without their secrets."""
    import polars as pl

    from pipeline.formats.tables import TableFormat, write_table
    from pipeline.jobs.first_start import prepared_site
    from store.access import tokens
    from store.models import utc_now

    with prepared_site().database.reading() as session:
        found = tokens.list_tokens(session)
    now = utc_now()
    rows = [
        {
            "id": token.id,
            "label": token.label,
            "person": token.person,
            "scopes": list(token.scopes),
            "state": token.state(now),
            "created": token.created_at.isoformat(timespec="seconds"),
            "expires": token.expires_at and token.expires_at.isoformat(timespec="seconds"),
            "last used": token.last_used_at and token.last_used_at.isoformat(timespec="seconds"),
        }
        for token in found
    ]
    if format is ReportFormat.JSON:
        output.print_json([{name.replace(" ", "_"): value for name, value in row.items()} for row in rows])
        return
    if not rows:
        typer.echo("no tokens yet: make one with `equirank token create LABEL`")
        return
    texts = [row | {"scopes": ", ".join(found[i].scopes)} for i, row in enumerate(rows)]
    typer.echo(write_table(pl.DataFrame(texts, infer_schema_length=None), TableFormat.PLAIN), nl=False)


def revoke(token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="The id that list prints.")]) -> None:
    """Close a token for good."""
    from pipeline.jobs.first_start import prepared_site
    from store.access import tokens

    with prepared_site().database.session() as session:
        token = tokens.revoke(session, token_id)
    typer.echo(f"revoked {token.id} ({token.label})")
