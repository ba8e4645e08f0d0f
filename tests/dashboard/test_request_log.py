"""Tokens of private links do not get into the request log."""

from __future__ import annotations

import logging

import pytest

from dashboard.request_log import WithoutTokens, hide_tokens, without_tokens


@pytest.mark.parametrize(
    ("address", "logged"),
    [
        ("/run?run=abc&token=s3cret", "/run?run=abc&token=***"),
        ("/api/v1/runs/abc?token=s3cret&limit=1", "/api/v1/runs/abc?token=***&limit=1"),
        ("/queries?q_token=s3cret&q_run=a", "/queries?q_token=***&q_run=a"),
        ("/leaderboard?search=token", "/leaderboard?search=token"),
    ],
)
def test_tokens_are_blotted_out(address: str, logged: str) -> None:
    assert without_tokens(address) == logged


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_the_servers_log_is_filtered_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    hide_tokens()
    hide_tokens()
    log = logging.getLogger("uvicorn.access")
    kept = Kept()
    # A server that ran in this process may have set the logger up its own way.
    monkeypatch.setattr(log, "handlers", [kept])
    monkeypatch.setattr(log, "disabled", False)
    caplog.set_level(logging.INFO, logger="uvicorn.access")
    log.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:1", "GET", "/run?token=s3cret", "1.1", 200)
    # Streamlit's server, once it ran in this process, takes whole query strings out.
    assert len(kept.lines) == 1
    assert kept.lines[0].startswith('127.0.0.1:1 - "GET /run?')
    assert "s3cret" not in kept.lines[0]
    assert sum(isinstance(item, WithoutTokens) for item in log.filters) == 1
