"""The SQL table of API tokens, and what they allow."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlmodel import Field

from store.models import Table, _json, new_run_id, utc_now


class Scope(StrEnum):
    """What an API token allows: storing private runs, or also putting them on the leaderboard."""

    SUBMIT = "submit"
    PUBLISH = "publish"


class ApiToken(Table, table=True):
    """A bearer token of the API; the token itself is shown once and never stored.

    Attributes:
        id: how lists and ``revoke`` name it; no secret.
        secret_hash: sha256 of the token. It holds 256 random bits, so a slow hash would add nothing.
        label: what it is for, in its owner's words.
        person: whose submissions it makes.
        scopes: words of ``Scope``.
        expires_at: null for never.
        last_used_at: the last request that it opened.
    """

    __tablename__ = "api_token"

    id: str = Field(default_factory=new_run_id, primary_key=True)
    secret_hash: str = Field(unique=True)
    label: str
    person: str = "local"
    scopes: list[str] = Field(default_factory=list, sa_column=_json())
    created_at: datetime = Field(default_factory=utc_now)
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
