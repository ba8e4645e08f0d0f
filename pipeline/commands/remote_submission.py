"""Submitting a run file to another EquiRank site over its API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

from pipeline.errors import EnvironmentProblem, EquiRankError, RunFileError, UsageError
from pipeline.run import Problem, RunReport, Verdict

if TYPE_CHECKING:
    import httpx

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
#: Seconds to connect, to send a part of the file, and to wait while the server reads and scores it.
_CONNECT, _WRITE, _READ = 15.0, 60.0, 900.0


@dataclass(frozen=True)
class Answer:
    """What the server made of the file.

    Attributes:
        report: how it was read.
        run_id, permalink: of the stored run; None when the file was refused.
        visibility: ``public`` or ``private``.
    """

    report: RunReport
    run_id: str | None = None
    permalink: str | None = None
    visibility: str | None = None


def submissions_address(server: str) -> str:
    """Where to send runs to a site.

    Args:
        server: the address that people open.

    Raises:
        UsageError: it is no http(s) address.
    """
    try:
        parts = urlsplit(server.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(f"--server takes the address of a site, such as https://board.example; found {server!r}")
    base = server.strip().rstrip("/").removesuffix("/api/v1")
    return f"{base}/api/v1/submissions"


def is_in_clear(server: str) -> bool:
    """Whether a token would travel unencrypted to another machine."""
    parts = urlsplit(server)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def token_from(variable: str) -> str:
    """The token, from the environment: on the command line it would be seen in the list of processes.

    Raises:
        EnvironmentProblem: the variable is not set, or holds no token.
    """
    token = os.environ.get(variable, "").strip()
    if not token:
        raise EnvironmentProblem(
            f"the variable {variable} is not set: put the token there that the site's operator gave you "
            "(`equirank token create` makes one), or name another variable with --token-env"
        )
    if not token.isascii() or any(sign.isspace() for sign in token):
        raise EnvironmentProblem(f"the variable {variable} holds no token: it has spaces or letters outside ASCII")
    return token


def submit_remotely(
    server: str,
    token: str,
    run: Path,
    fields: Mapping[str, str],
    *,
    progress: Callable[[float], None] | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Answer:
    """Send a run file, a part at a time, and read the answer.

    Args:
        server: the site's address.
        token: what opens its API.
        run: the file.
        fields: what is said of the run, in the words of the API; empty ones are left out.
        progress: called with the fraction sent.
        transport: in the place of the network (tests).

    Raises:
        RunFileError: there is no such file, or it is over a limit.
        UsageError: the server does not know what was said.
        EnvironmentProblem: the server cannot be reached, does not take the token, or is no EquiRank site.
    """
    import httpx

    address = submissions_address(server)
    if not run.is_file():
        raise RunFileError(f"{str(run)!r} {'is a folder' if run.is_dir() else 'does not exist'}: give one run file")
    said = {name: value for name, value in fields.items() if value}
    timeout = httpx.Timeout(_READ, connect=_CONNECT, write=_WRITE)
    try:
        with run.open("rb") as file, httpx.Client(timeout=timeout, transport=transport) as client:
            watched = cast(IO[bytes], _Watched(file, run.stat().st_size, progress))
            # Redirects are not followed: the token is for this address only.
            answer = client.post(
                address,
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
                data=said,
                files={"file": (run.name, watched, "application/octet-stream")},
            )
    except httpx.TimeoutException:
        raise EnvironmentProblem(
            f"{server} did not answer in time; whether the run was stored is not known: look at the site, then repeat"
        ) from None
    except httpx.HTTPError as error:
        raise EnvironmentProblem(f"{server} cannot be reached ({error}): check the address and the network") from None
    except OSError as error:
        raise RunFileError(f"{str(run)!r} cannot be read ({error.strerror})") from None
    return _understood(server, answer)


class _Watched:
    """A file that tells how far it was read."""

    def __init__(self, file: BinaryIO, size: int, progress: Callable[[float], None] | None) -> None:
        self.file, self.size, self.progress, self.done = file, size, progress, 0

    def read(self, size: int = -1) -> bytes:
        part = self.file.read(size)
        self.done += len(part)
        if self.progress is not None and self.size:
            self.progress(min(1.0, self.done / self.size))
        return part

    def seek(self, offset: int, whence: int = 0) -> int:
        self.done = 0
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def fileno(self) -> int:
        return self.file.fileno()


def _understood(server: str, answer: httpx.Response) -> Answer:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    status = answer.status_code
    if status == 201 and isinstance(body.get("run_id"), str):
        link = str(body.get("permalink") or "")
        return Answer(_report(body.get("report")), body["run_id"], link, str(body.get("visibility") or ""))
    if status == 422 and isinstance(body.get("report"), dict):
        return Answer(_report(body["report"]))
    raise _failure(server, status, str(body.get("detail") or ""), answer.headers.get("location", ""))


def _failure(server: str, status: int, detail: str, location: str) -> EquiRankError:
    if 300 <= status < 400:
        return UsageError(f"{server} leads elsewhere ({location or 'it does not say where'}): give that address")
    if not detail:
        return EnvironmentProblem(f"{server} answered {status}, and not as an EquiRank site does: check --server")
    said = f"{server} says: {detail}"
    if status == 400:
        return UsageError(said)
    if status in {401, 403, 429} or status >= 500:
        return EnvironmentProblem(said)
    return RunFileError(said)


def _report(value: Any) -> RunReport:
    """The report of another site, of a version that may say more or less than this one."""
    said = value if isinstance(value, dict) else {}
    problems = tuple(
        Problem(str(item.get("message", "")), item.get("line") if isinstance(item.get("line"), int) else None)
        for item in said.get("problems") or ()
        if isinstance(item, dict)
    )
    verdict = str(said.get("verdict"))
    known = verdict in list(Verdict)
    counts = said.get("counts")
    return RunReport(
        verdict=Verdict(verdict) if known else Verdict.REFUSE if problems else Verdict.ACCEPT,
        format=said.get("format") if isinstance(said.get("format"), str) else None,
        problems=problems,
        problem_count=int(said.get("problem_count") or len(problems)),
        notes=tuple(map(str, said.get("notes") or ())),
        flags=tuple(map(str, said.get("flags") or ())),
        counts={str(k): v for k, v in counts.items() if isinstance(v, int)} if isinstance(counts, dict) else {},
    )
