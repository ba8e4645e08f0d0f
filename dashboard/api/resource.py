"""A read of the API as an ASGI endpoint: parameters, format, ETag, paging, cross-origin headers and errors.

An answer is made once and kept until its stamp changes; its ETag is the hash of its bytes, so it is strong, and the
same in every process. Compression happens here, because a compressed answer needs an ETag of its own.
"""

from __future__ import annotations

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dashboard.api.media import (
    ENDINGS,
    MEDIA_TYPES,
    TABULAR,
    Format,
    wanted_format,
    without_nan,
    write_json,
    write_rows,
)
from dashboard.api.parameters import Paged, Parameters, read_parameters
from dashboard.api.problems import ApiProblem, problem_of
from dashboard.current_site import the_site

ROOT = "/api/v1"
P = TypeVar("P", bound=Parameters)

_CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link, X-Total-Count, Content-Disposition, Retry-After",
}
_PREFLIGHT = {
    **_CROSS_ORIGIN,
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Accept, If-None-Match",
    "Access-Control-Max-Age": "86400",
}


@dataclass(frozen=True, eq=False)
class Page:
    """Rows of a longer list.

    Attributes:
        rows: those from ``offset`` on, ``limit`` at most.
        total: rows of the whole list.
        about: further members of the JSON document, before the rows.
    """

    rows: pl.DataFrame
    total: int
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Document:
    """One JSON document, and the frame that stands for it in tabular formats."""

    value: Mapping[str, Any]
    rows: pl.DataFrame | None = None


@dataclass(frozen=True)
class File:
    """A finished text."""

    text: str


@dataclass(frozen=True)
class Found:
    """What a request is about, after it was looked up and found to be for this reader.

    Attributes:
        stamp: changes whenever the answer may.
        make: makes the answer in a format.
        name: of a file to save it in; ours, never a user's text.
        private: never to be kept by a shared cache.
    """

    stamp: str
    make: Callable[[Format], Page | Document | File]
    name: str
    private: bool = False


@dataclass(frozen=True)
class Read(Generic[P]):
    """One read, as it is served and as the OpenAPI document describes it.

    Attributes:
        path: below ``/api/v1``, with Starlette's converters.
        parameters: names in the path and in the query.
        find: looks up; raises ``NotFound`` for what is not there or not for this reader.
        schema: JSON schema of the JSON answer.
        formats: offered, the usual one first.
    """

    path: str
    summary: str
    parameters: type[P]
    find: Callable[[P], Found]
    schema: Mapping[str, Any]
    formats: tuple[Format, ...] = TABULAR


@dataclass(frozen=True)
class _Rendered:
    body: bytes
    packed: bytes
    tag: str
    headers: tuple[tuple[str, str], ...]


class _Kept:
    """Answers by what they were asked for, the least used dropped first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self.entries: OrderedDict[tuple[str, ...], _Rendered] = OrderedDict()
        self.lock = Lock()

    def get(self, key: tuple[str, ...]) -> _Rendered | None:
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
            return self.entries.get(key)

    def put(self, key: tuple[str, ...], made: _Rendered) -> None:
        size = len(made.body) + len(made.packed)
        if size > self.most_bytes // 8:
            return
        with self.lock:
            if key not in self.entries:
                self.entries[key] = made
                self.bytes += size
            while self.bytes > self.most_bytes:
                _, dropped = self.entries.popitem(last=False)
                self.bytes -= len(dropped.body) + len(dropped.packed)


_kept = _Kept(48 << 20)


class Resource(Generic[P]):
    """The endpoint of one ``Read``; an ASGI application, so that it answers every method itself."""

    def __init__(self, read: Read[P]) -> None:
        """Serve this read."""
        self.read = read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer GET, HEAD and OPTIONS."""
        request = Request(scope, receive)
        if request.method == "OPTIONS":
            response = Response(status_code=204, headers={**_PREFLIGHT, "Allow": "GET, HEAD, OPTIONS"})
        elif request.method not in {"GET", "HEAD"}:
            response = ApiProblem(
                405, f"{request.method} is not for this address; GET is", headers={"Allow": "GET, HEAD, OPTIONS"}
            ).answer()
        else:
            response = await run_in_threadpool(self._answer, request)
        for name, value in _CROSS_ORIGIN.items():
            response.headers[name] = value
        if request.method == "HEAD":
            # The length stays that of the answer to GET.
            response.body = b""
        await response(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        try:
            said = read_parameters(self.read.parameters, request.path_params, request.query_params.multi_items())
            named = getattr(said, "format", None)
            chosen = wanted_format(named, ", ".join(request.headers.getlist("accept")), self.read.formats)
            found = self.read.find(said)
            made = self._rendered(said, chosen, found)
        except Exception as error:
            return problem_of(error).answer()
        # Starlette's own compression leaves alone what is compressed already.
        packed = _accepts_gzip(request.headers.get("accept-encoding", ""))
        tag = f'"{made.tag}-gzip"' if packed else f'"{made.tag}"'
        headers = {
            "ETag": tag,
            "Cache-Control": "private, no-cache" if found.private else "public, no-cache",
            "Vary": "Accept, Accept-Encoding",
        }
        if _matches(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        headers |= dict(made.headers)
        if packed:
            headers["Content-Encoding"] = "gzip"
        return Response(made.packed if packed else made.body, 200, headers)

    def _rendered(self, said: P, chosen: Format, found: Found) -> _Rendered:
        key = (the_site().database.url, self.read.path, said.model_dump_json(), chosen.value, found.stamp)
        made = _kept.get(key)
        if made is None:
            made = self._render(said, chosen, found)
            _kept.put(key, made)
        return made

    def _render(self, said: P, chosen: Format, found: Found) -> _Rendered:
        content = found.make(chosen)
        kind = MEDIA_TYPES[chosen][0]
        headers = [("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)]
        if isinstance(content, File):
            body = content.text.encode("utf-8", "replace")
        elif isinstance(content, Document):
            if chosen is Format.JSON or content.rows is None:
                body = write_json(content.value)
            else:
                body = write_rows(content.rows, chosen)
        else:
            body = self._page(said, chosen, content)
            headers.append(("X-Total-Count", str(content.total)))
            links = self._links(said, content.total)
            if links:
                headers.append(("Link", links))
        if chosen is not Format.JSON:
            file = f"{found.name}.{ENDINGS.get(chosen, chosen.value)}"
            headers.append(("Content-Disposition", f'attachment; filename="{file}"'))
        packed = gzip.compress(body, 6, mtime=0)
        tag = hashlib.sha256(repr(headers).encode() + body).hexdigest()[:40]
        return _Rendered(body, packed, tag, tuple(headers))

    def _page(self, said: P, chosen: Format, page: Page) -> bytes:
        if chosen is not Format.JSON:
            return write_rows(page.rows, chosen)
        paging = {"limit": said.limit, "offset": said.offset} if isinstance(said, Paged) else {}
        return write_json({**page.about, "total": page.total, **paging, "items": without_nan(page.rows).to_dicts()})

    def _links(self, said: P, total: int) -> str:
        """Neighbouring pages (RFC 8288), relative to the site, so that no header of the request can steer them."""
        if not isinstance(said, Paged):
            return ""
        last = max(0, (total - 1) // said.limit * said.limit)
        places = {"first": 0, "last": last}
        if said.offset > 0:
            places["prev"] = min(max(0, said.offset - said.limit), last)
        if said.offset + said.limit < total:
            places["next"] = said.offset + said.limit
        return ", ".join(f'<{self._address(said, offset)}>; rel="{name}"' for name, offset in sorted(places.items()))

    def _address(self, said: P, offset: int) -> str:
        values = said.model_dump(mode="json", exclude_defaults=True) | {"offset": offset}
        path = ROOT + self.read.path
        for name in list(values):
            for written in (f"{{{name}}}", f"{{{name}:path}}"):
                if written in path:
                    path = path.replace(written, quote(str(values.pop(name)), safe="@"))
                    break
        query = {name: str(v).lower() if isinstance(v, bool) else v for name, v in values.items() if v is not None}
        return f"{path}?{urlencode(query, doseq=True)}"


def _matches(header: str, tag: str) -> bool:
    """Whether If-None-Match names the answer; the comparison is weak, as RFC 9110 wants it."""
    given = [entry.strip().removeprefix("W/") for entry in header.split(",")]
    return "*" in given or tag in given


def _accepts_gzip(header: str) -> bool:
    for entry in header.lower().split(","):
        name, _, quality = entry.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
