"""A run file in a request's body: taken in under the limits, into a file that goes away with the request."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import BinaryIO, cast

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from dashboard.api.problems import ApiProblem

#: Fields beside the file, and their longest values.
_MOST_FIELDS = 20
_LONGEST_FIELD = 8 << 10
#: What the boundaries, headers and fields of a multipart body may add to the file.
_ENVELOPE = 256 << 10
_IN_MEMORY = 1 << 20


@dataclass(frozen=True)
class Upload:
    """What arrived.

    Attributes:
        file: at its start; closing it removes it.
        name: as the client calls it; a label, never a path.
        fields: of a multipart body, in order.
    """

    file: BinaryIO
    name: str
    fields: tuple[tuple[str, str], ...]


@contextlib.asynccontextmanager
async def received(request: Request, limit: int) -> AsyncGenerator[Upload]:
    """The run file of a request: the part ``file`` of a multipart body, or a whole body of another kind.

    Args:
        request: its body has not been read.
        limit: bytes that the file may have.

    Raises:
        ApiProblem: 413 over the limit (as early as that is known), 400 for a body that is not well formed, 415 for
            a form that cannot hold a file, 422 for no file.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        raise ApiProblem(415, "send the run file as the body itself, or as the part `file` of multipart/form-data")
    multipart = kind == "multipart/form-data"
    most = limit + (_ENVELOPE if multipart else 0)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(limit)
    async with contextlib.AsyncExitStack() as stack:
        try:
            if multipart:
                upload = await _form(request, limit, most, stack)
            else:
                upload = await _body(request, most, limit, stack)
        except ClientDisconnect:
            raise ApiProblem(400, "the connection ended before the file did; nothing is stored") from None
        yield upload


async def _body(request: Request, most: int, limit: int, stack: contextlib.AsyncExitStack) -> Upload:
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    stack.callback(file.close)
    taken = 0
    async for chunk in _bounded(request, most, limit):
        taken += len(chunk)
        if taken > _IN_MEMORY:
            await run_in_threadpool(file.write, chunk)
        else:
            file.write(chunk)
    if not taken:
        raise ApiProblem(422, "there is no run file in the body; nothing is stored")
    await run_in_threadpool(file.seek, 0)
    return Upload(cast(BinaryIO, file), "run", ())


async def _form(request: Request, limit: int, most: int, stack: contextlib.AsyncExitStack) -> Upload:
    parser = MultiPartParser(
        request.headers,
        _bounded(request, most, limit),
        max_files=1,
        max_fields=_MOST_FIELDS,
        max_part_size=_LONGEST_FIELD,
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        said = getattr(error, "message", "") or "it is not well formed"
        raise ApiProblem(400, f"the multipart body cannot be read: {said}") from None
    stack.push_async_callback(form.close)
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise ApiProblem(422, "there is no part `file` with a file name in the form; nothing is stored")
    if (file.size or 0) > limit:
        raise _too_large(limit)
    if not file.size:
        raise ApiProblem(422, "the part `file` is empty; nothing is stored")
    fields = tuple((name, value) for name, value in form.multi_items() if isinstance(value, str))
    if any(name != "file" for name, value in form.multi_items() if isinstance(value, UploadFile)):
        raise ApiProblem(400, "only the part `file` may be a file")
    await file.seek(0)
    return Upload(file.file, file.filename or "run", fields)


async def _bounded(request: Request, most: int, limit: int) -> AsyncGenerator[bytes]:
    taken = 0
    async for chunk in request.stream():
        taken += len(chunk)
        if taken > most:
            raise _too_large(limit)
        yield chunk


def _too_large(limit: int) -> ApiProblem:
    return ApiProblem(
        413,
        f"the run file is larger than {limit >> 20} MiB (EQUIRANK_LIMIT_UPLOAD_MB): nothing is stored; "
        "compress it with gzip or zstd, or keep fewer results a query",
        headers={"Connection": "close"},
    )
