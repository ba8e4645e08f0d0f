"""The server's request log without secrets: the token of a private run's link is part of its address."""

from __future__ import annotations

import logging
import re

_TOKEN = re.compile(r"((?:^|[?&])[\w.-]*token=)[^&\s\"]+", re.IGNORECASE)


class WithoutTokens(logging.Filter):
    """Blots tokens out of the addresses of logged requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; every record is kept."""
        if isinstance(record.args, tuple):
            record.args = tuple(without_tokens(value) if isinstance(value, str) else value for value in record.args)
        return True


def without_tokens(address: str) -> str:
    """An address with ``token=…`` blotted out."""
    return _TOKEN.sub(r"\1***", address)


def hide_tokens() -> None:
    """Install the filter on uvicorn's request log; repeating it changes nothing."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(item, WithoutTokens) for item in log.filters):
        log.addFilter(WithoutTokens())
