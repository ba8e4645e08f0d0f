"""Retrievers: those of the registry, and those that a submitter named."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Any

import polars as pl
from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.errors import InvalidRecord, NotFound
from store.models import Retriever, Run, State, Submission, Visibility
from store.records import RetrieverRecord, record

_FIELDS = (
    "name", "family", "parameters", "dimension", "fine_tuned", "base_key", "open_weights", "licence", "link", "notes",
)  # fmt: skip

_NAME_LENGTH = 200


def upsert(session: Session, retriever: Retriever) -> RetrieverRecord:
    """Store a registry entry, or update the stored one with the same key."""
    retriever.name_folded = folded(retriever.name)
    stored = _by_key(session, retriever.key)
    if stored is None:
        try:
            with session.begin_nested():
                session.add(retriever)
            return record(RetrieverRecord, retriever)
        except IntegrityError:
            stored = _by_key(session, retriever.key)
            if stored is None:
                raise InvalidRecord(f"the retriever {retriever.key!r} cannot be stored") from None
    for name in (*_FIELDS, "name_folded"):
        setattr(stored, name, getattr(retriever, name))
    session.flush()
    return record(RetrieverRecord, stored)


def ensure_for_name(session: Session, name: str, *, link: str = "", licence: str = "") -> RetrieverRecord:
    """The retriever that a submitter calls ``name``: a stored one with that key or name, else a new one.

    Names are compared without regard to case and runs of spaces. A new retriever's key is derived from its name;
    where another retriever has that key already (``My Model`` and ``my_model``), ``-2``, ``-3``, … is appended.

    Raises:
        InvalidRecord: the name is empty, too long or has control characters.
    """
    shown = " ".join(name.split())
    if not shown or len(shown) > _NAME_LENGTH or has_unseen(shown):
        raise InvalidRecord(
            f"the name of a retriever is 1 to {_NAME_LENGTH} characters without control or invisible characters"
        )
    derived = key_for(shown)
    # Another process may store the same name or key at the same moment: look again after every refusal.
    for number in range(1, 1000):
        found = _by_key(session, shown) or _by_folded_name(session, folded(shown))
        if found is not None:
            return record(RetrieverRecord, found)
        key = derived if number == 1 else f"{derived}-{number}"
        if _by_key(session, key) is not None:
            continue
        row = Retriever(key=key, name=shown, name_folded=folded(shown), link=link, licence=licence)
        try:
            with session.begin_nested():
                session.add(row)
            return record(RetrieverRecord, row)
        except IntegrityError:
            continue
    raise InvalidRecord(f"no free key for the retriever {shown!r}: choose another name")


def get(session: Session, key: str) -> RetrieverRecord:
    """The retriever with this key.

    Raises:
        NotFound: there is none.
    """
    row = _by_key(session, key)
    if row is None:
        raise NotFound(f"no retriever has the key {key!r}")
    return record(RetrieverRecord, row)


def get_by_id(session: Session, retriever_id: int) -> RetrieverRecord:
    """The retriever with this id.

    Raises:
        NotFound: there is none.
    """
    row = session.get(Retriever, retriever_id)
    if row is None:
        raise NotFound(f"no retriever has the id {retriever_id}")
    return record(RetrieverRecord, row)


def get_public(session: Session, key: str, *, described: Collection[str] = ()) -> RetrieverRecord:
    """The retriever with this key as anybody may see it: one with a published public run, or a described one.

    The name of any other was given with a run that is private, withdrawn or not published yet.

    Args:
        session: of ``Database.reading`` or ``session``.
        key: of the retriever.
        described: keys that are known to everybody (the registry's).

    Raises:
        NotFound: there is none that everybody may see; the two cannot be told apart.
    """
    row = _by_key(session, key)
    if row is None or (row.key not in described and row.id not in set(session.scalars(_with_public_runs()))):
        raise NotFound(f"no retriever has the key {key!r}")
    return record(RetrieverRecord, row)


def tuned_from(session: Session, key: str, *, described: Collection[str] = ()) -> list[RetrieverRecord]:
    """The retrievers that were fine-tuned from this one and that anybody may see, by name; see ``get_public``."""
    seen = or_(col(Retriever.key).in_(list(described)), col(Retriever.id).in_(_with_public_runs()))
    rows = session.scalars(select(Retriever).where(col(Retriever.base_key) == key, col(Retriever.key) != key, seen))
    found = [record(RetrieverRecord, row) for row in rows]
    return sorted(found, key=lambda item: (item.name.casefold(), item.key))


def _with_public_runs() -> Any:
    return select(col(Run.retriever_id)).where(
        col(Run.state) == State.PUBLISHED.value, col(Run.visibility) == Visibility.PUBLIC.value
    )


def list_retrievers(session: Session) -> pl.DataFrame:
    """All retrievers by name; columns as the fields of ``RetrieverRecord``."""
    rows = [record(RetrieverRecord, row) for row in session.scalars(select(Retriever))]
    rows.sort(key=lambda item: (item.name.casefold(), item.key))
    return pl.DataFrame([tuple(vars(item).values()) for item in rows], schema=_LISTING, orient="row")


def suggested_names(session: Session, person: str) -> list[str]:
    """Names to offer to somebody who submits a run: described retrievers, published ones and their own.

    A name that only other people's private or withdrawn runs bear is not among them.
    """
    public = _with_public_runs()
    own = (
        select(col(Run.retriever_id))
        .join(Submission, col(Submission.run_id) == col(Run.id))
        .where(col(Submission.person) == person)
    )
    described = or_(col(Retriever.family) != "", col(Retriever.parameters).is_not(None))
    query = select(col(Retriever.name)).where(or_(described, col(Retriever.id).in_(public), col(Retriever.id).in_(own)))
    return sorted(set(session.scalars(query)), key=lambda name: (name.casefold(), name))


_LISTING: dict[str, pl.DataType] = {
    "id": pl.Int64(),
    "key": pl.String(),
    "name": pl.String(),
    "family": pl.String(),
    "parameters": pl.Int64(),
    "dimension": pl.Int64(),
    "fine_tuned": pl.Boolean(),
    "base_key": pl.String(),
    "open_weights": pl.Boolean(),
    "licence": pl.String(),
    "link": pl.String(),
    "notes": pl.String(),
    "created_at": pl.Datetime("us", "UTC"),
}


def folded(name: str) -> str:
    """The name without regard to case and runs of spaces, for comparison only."""
    return " ".join(name.casefold().split())


def key_for(name: str) -> str:
    """A key from a name: lower-case ASCII letters, digits, dots and hyphens."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9.]+", "-", ascii_name).strip("-.")[:80] or "retriever"


def _by_key(session: Session, key: str) -> Retriever | None:
    return session.scalars(select(Retriever).where(col(Retriever.key) == key)).first()


def _by_folded_name(session: Session, name: str) -> Retriever | None:
    query = select(Retriever).where(col(Retriever.name_folded) == name).order_by(col(Retriever.id)).limit(1)
    return session.scalars(query).first()
