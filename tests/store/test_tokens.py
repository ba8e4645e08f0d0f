from __future__ import annotations

from datetime import timedelta

import pytest
from sqlmodel import select

from store.access import tokens
from store.errors import InvalidRecord, NotFound
from store.models import utc_now
from store.token_models import ApiToken, Scope


def test_a_token_opens_until_it_is_revoked_and_is_nowhere_in_the_database(database):
    with database.session() as session:
        made = tokens.create(session, "  nightly   runs ", scopes=[Scope.SUBMIT], person="ada")
    assert made.token.label == "nightly runs"
    assert made.token.scopes == ("submit",)
    with database.reading() as session:
        assert tokens.find(session, made.secret) == made.token
        assert tokens.find(session, made.secret[:-1]) is None
        assert tokens.find(session, made.secret + "\udcff") is None
        row = session.scalars(select(ApiToken)).one()
        assert made.secret not in repr(row)
        assert made.secret.removeprefix(tokens.PREFIX) not in repr(row)
    with database.session() as session:
        revoked = tokens.revoke(session, made.token.id)
    assert revoked.state(utc_now()) == "revoked"
    with database.session() as session:
        assert tokens.revoke(session, made.token.id) == revoked
    with database.reading() as session:
        assert tokens.find(session, made.secret) is None
        assert tokens.list_tokens(session) == [revoked]


def test_a_token_expires(database):
    with database.session() as session:
        made = tokens.create(session, "short", lifetime=timedelta(hours=1))
        assert tokens.find(session, made.secret) is not None
        row = session.scalars(select(ApiToken)).one()
        row.expires_at = utc_now() - timedelta(seconds=1)
        session.flush()
        assert tokens.find(session, made.secret) is None
        assert tokens.list_tokens(session)[0].state(utc_now()) == "expired"


def test_the_last_use_is_noted_to_the_minute(database):
    moment = utc_now()
    with database.session() as session:
        made = tokens.create(session, "used").token
        tokens.note_use(session, made, moment)
        used = tokens.list_tokens(session)[0]
        tokens.note_use(session, used, moment + timedelta(seconds=59))
        assert tokens.list_tokens(session)[0].last_used_at == moment
        tokens.note_use(session, used, moment + timedelta(seconds=60))
        assert tokens.list_tokens(session)[0].last_used_at == moment + timedelta(seconds=60)


@pytest.mark.parametrize(
    "said",
    [
        {"label": ""},
        {"label": "a" * 201},
        {"label": "a\x07b"},
        {"label": "a", "person": " "},
        {"label": "a", "scopes": []},
        {"label": "a", "lifetime": timedelta(0)},
    ],
)
def test_what_cannot_be_a_token_is_refused(database, said):
    with pytest.raises(InvalidRecord), database.session() as session:
        tokens.create(session, **said)


def test_revoking_an_unknown_token_names_it(database):
    with pytest.raises(NotFound, match="nothing-here"), database.session() as session:
        tokens.revoke(session, "nothing-here")
