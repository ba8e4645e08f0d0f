"""Where people open the site: what the operator says, else where it was last started on this machine."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from store.settings import Settings

_NOTE = "served_at"
_EVERYWHERE = {"0.0.0.0", "::", "", "127.0.0.1", "::1"}


def public_address(settings: Settings) -> str:
    """The site's address without a slash at its end, for permalinks that are printed or passed on.

    ``EQUIRANK_PUBLIC_URL`` where it is set. Else the address that ``equirank serve`` last listened on with this home,
    so that another command of the same machine prints links that lead there; else the default port.
    """
    if "public_url" in settings.model_fields_set:
        return settings.public_url
    if "port" in settings.model_fields_set:
        # The server's own process: it is told its port.
        return local_address(settings.host, settings.port)
    with suppress(OSError, ValueError):
        noted = (settings.home / _NOTE).read_text(encoding="utf-8").strip()
        if urlsplit(noted).scheme in {"http", "https"} and urlsplit(noted).netloc:
            return noted
    return settings.public_url


def local_address(host: str, port: int) -> str:
    """``http://localhost:8600``; a server that listens on every address is opened by this one."""
    shown = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def note_address(settings: Settings, host: str, port: int) -> None:
    """Remember where the site is being started; a home that cannot be written keeps the default."""
    with suppress(OSError):
        (settings.home / _NOTE).write_text(local_address(host, port) + "\n", encoding="utf-8")
