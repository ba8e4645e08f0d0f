"""What litellm's connections may do: no redirect is followed, and no reply is longer than a fixed limit.

A redirect would carry the prompts to an address that nobody chose, once for each hop; a reply without an end, or a
small one that unpacks to a large one, would fill the memory and hold up the loop on which every question is asked.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pipeline.llm.reply_shape import readable

if TYPE_CHECKING:
    import httpx

#: Bytes of one reply, after unpacking. The longest answers have less than a tenth.
LONGEST_REPLY = 8 << 20


class Redirected(Exception):
    """The server names another address; the message is that address, "" where it names none."""


class ReplyUnusable(Exception):
    """The reply cannot be read within the limit; the message says why."""


#: What was found during the call in whose context this is set: litellm wraps exceptions in ones of its own.
_found: ContextVar[list[Redirected | ReplyUnusable]] = ContextVar("found")


@contextmanager
def watched() -> Generator[list[Redirected | ReplyUnusable]]:
    """What is found wrong with the replies to the calls made inside, the first first."""
    found: list[Redirected | ReplyUnusable] = []
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


def guard(litellm: Any) -> None:
    """Put the limits on every asynchronous client that litellm makes from here on.

    Providers of the OpenAI SDK use ``aclient_session``, the others handlers whose clients ``create_client`` makes.
    """
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    handlers: Any = AsyncHTTPHandler
    unguarded = handlers.create_client

    def create_client(self: Any, *args: Any, **kwargs: Any) -> httpx.AsyncClient:
        client: httpx.AsyncClient = unguarded(self, *args, **kwargs)
        client.follow_redirects = False
        hooks = client.event_hooks
        client.event_hooks = {
            "request": [*hooks["request"], _ask_unpacked],
            "response": [*hooks["response"], _limit],
        }
        return client

    handlers.create_client = create_client
    owner = handlers()
    # Kept together: a handler that is collected closes its client.
    litellm.aclient_session = owner.client
    litellm.aclient_session_owner = owner


async def _ask_unpacked(request: httpx.Request) -> None:
    request.headers["accept-encoding"] = "identity"


async def _limit(response: httpx.Response) -> None:
    """Refuse a redirect, and have the body read within the limit; called before any of it is read."""
    if 300 <= response.status_code < 400:
        raise _noted(Redirected(_target(response)))
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    response.stream = _limited(response, encoding)
    # Unpacked by the stream, within the limit, and put into a shape that litellm reads.
    response.headers.pop("content-encoding", None)


def _limited(response: httpx.Response, encoding: str) -> httpx.AsyncByteStream:
    import httpx

    source = response.stream
    assert isinstance(source, httpx.AsyncByteStream)
    inner = source

    class Limited(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield readable(b"".join([piece async for piece in _pieces(inner, encoding)]))

        async def aclose(self) -> None:
            await inner.aclose()

    return Limited()


async def _pieces(source: httpx.AsyncByteStream, encoding: str) -> AsyncIterator[bytes]:
    if encoding not in {"identity", "", "gzip", "x-gzip", "deflate"}:
        raise _noted(ReplyUnusable(f"the reply is packed as {encoding[:20]!r}, which was not asked for"))
    unpacker = None if encoding in {"identity", ""} else zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    length = 0
    async for piece in source:
        if unpacker is not None:
            try:
                piece = unpacker.decompress(piece, LONGEST_REPLY + 1 - length)
            except zlib.error:
                raise _noted(ReplyUnusable(f"the reply says that it is packed as {encoding}, and is not")) from None
        length += len(piece)
        if length > LONGEST_REPLY:
            raise _noted(ReplyUnusable(f"the reply is longer than {LONGEST_REPLY >> 20} MiB"))
        yield piece


def _target(response: httpx.Response) -> str:
    """Where a redirect leads, as a base address: without credentials, query and the path of a chat."""
    import httpx

    location = response.headers.get("location", "")
    if not location:
        return ""
    try:
        url = response.request.url.join(location).copy_with(username=None, password=None, query=None, fragment=None)
    except (httpx.InvalidURL, ValueError):
        return ""
    return str(url).rstrip("/").removesuffix("/chat/completions")


def _noted(problem: Redirected | ReplyUnusable) -> Redirected | ReplyUnusable:
    found = _found.get(None)
    if found is not None:
        found.append(problem)
    return problem
