"""Bearer tokens of the API: shown once, kept as a hash, revocable, with scopes."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlmodel import Session, col

from store.errors import InvalidRecord, NotFound
from store.models import utc_now
from store.records import TokenRecord, record
from store.token_models import ApiToken, Scope

#: What every token starts with, so that secret scanners and people recognise one.
PREFIX = "equirank_"
_LONGEST = 200
#: The last use is noted at most once in this time: a busy client must not write a row with every request.
_NOTE_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class NewToken:
    """A token at the only moment that it can be read."""

    secret: str
    token: TokenRecord


def create(
    session: Session,
    label: str,
    *,
    person: str = "local",
    scopes: Collection[Scope] = (Scope.SUBMIT, Scope.PUBLISH),
    lifetime: timedelta | None = None,
) -> NewToken:
    """Make a token; what opens the API is in the answer and nowhere else.

    Args:
        session: of ``Database.session``.
        label: what it is for.
        person: whose submissions it makes.
        scopes: what it allows.
        lifetime: None for a token that does not expire.

    Raises:
        InvalidRecord: the label or person is empty, too long or has control characters; no scope; no lifetime.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    if not scopes:
        raise InvalidRecord(f"a token needs a scope: {', '.join(Scope)}")
    if lifetime is not None and lifetime <= timedelta(0):
        raise InvalidRecord("a token must live for some time")
    now = utc_now()
    row = ApiToken(
        secret_hash=_digest(secret),
        label=_text("label", label),
        person=_text("person", person),
        scopes=sorted({Scope(scope).value for scope in scopes}),
        created_at=now,
        expires_at=None if lifetime is None else now + lifetime,
    )
    session.add(row)
    session.flush()
    return NewToken(secret, record(TokenRecord, row))


def find(session: Session, secret: str) -> TokenRecord | None:
    """The token with this secret if it still opens anything, else None. The look-up is by hash.

    Args:
        session: of ``Database.reading`` or ``session``.
        secret: as the client sent it.
    """
    row = session.scalars(select(ApiToken).where(col(ApiToken.secret_hash) == _digest(secret))).first()
    found = None if row is None else record(TokenRecord, row)
    return found if found is not None and found.state(utc_now()) == "active" else None


def note_use(session: Session, token: TokenRecord, now: datetime | None = None) -> None:
    """Remember that the token was used, to the minute."""
    moment = now or utc_now()
    if token.last_used_at is None or moment - token.last_used_at >= _NOTE_EVERY:
        session.execute(update(ApiToken).where(col(ApiToken.id) == token.id).values(last_used_at=moment))


def revoke(session: Session, token_id: str) -> TokenRecord:
    """Close a token for good; a revoked one stays as it is.

    Raises:
        NotFound: there is no such token.
    """
    row = session.get(ApiToken, token_id, with_for_update=True)
    if row is None:
        raise NotFound(f"no token has the id {token_id!r}: `equirank token list` names them")
    if row.revoked_at is None:
        row.revoked_at = utc_now()
    session.flush()
    return record(TokenRecord, row)


def list_tokens(session: Session) -> list[TokenRecord]:
    """All tokens, newest first, without their secrets."""
    query = select(ApiToken).order_by(col(ApiToken.created_at).desc(), col(ApiToken.id))
    return [record(TokenRecord, row) for row in session.scalars(query)]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _text(what: str, value: str) -> str:
    shown = " ".join(value.split())
    if not shown or len(shown) > _LONGEST or any(unicodedata.category(sign) in {"Cc", "Cf", "Cs"} for sign in shown):
        raise InvalidRecord(f"the {what} of a token is 1 to {_LONGEST} characters without control characters")
    return shown
