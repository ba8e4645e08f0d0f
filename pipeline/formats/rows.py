"""The rows of a run file as arrays over a benchmark's positions, whatever format they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.formats.decimal_kernel import NUMBER, TOO_LARGE, UNDECIDED, decide, parse_decimals
from pipeline.formats.limits import Limits
from pipeline.formats.messages import quote
from pipeline.formats.problems import ProblemLog, Refusal
from pipeline.formats.unknown_ids import UnknownIds
from pipeline.run import RunTarget

Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in file order, all of one length.

    Attributes:
        query: position in the benchmark's queries.
        tool: position in the benchmark's tools.
        score: as read; None for lists and rank-only tables.
        rank: as read, or the place in a list; None where a format has none.
        line: 0-based line (or row) of the file, None where lines mean nothing.
    """

    query: Int32
    tool: Int32
    score: Float32 | None
    rank: Int32 | None
    line: Int32 | None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.query)


class RowCollector:
    """Gathers rows chunk by chunk, with what cannot be taken."""

    def __init__(self, target: RunTarget, limits: Limits) -> None:
        """Start empty."""
        self.target = target
        self.limits = limits
        self.problems = ProblemLog()
        self.unknown_queries = UnknownIds("query", target.queries, target.name, limits.id_bytes)
        self.unknown_tools = UnknownIds("tool", target.tools, target.name, limits.id_bytes)
        self.rows_seen = 0
        self._chunks: list[tuple[Int32, Int32, Float32 | None, Int32 | None, Int32 | None]] = []

    def add(
        self,
        query: Int32,
        tool: Int32,
        score: Float32 | None = None,
        rank: Int32 | None = None,
        line: Int32 | None = None,
    ) -> None:
        """Add rows; those with an unknown id (-1, already noted) are left out, the file is refused anyway.

        Raises:
            Refusal: the file has more rows than the limit.
        """
        self.rows_seen += len(query)
        if self.rows_seen > self.limits.rows:
            raise Refusal(f"the file has more than {self.limits.rows:,} results, the limit: keep fewer results a query")
        unknown = (query < 0) | (tool < 0)
        if unknown.any():
            keep = ~unknown
            query, tool = query[keep], tool[keep]
            score = score[keep] if score is not None else None
            rank = rank[keep] if rank is not None else None
            line = line[keep] if line is not None else None
        self._chunks.append((query, tool, score, rank, line))

    @property
    def known_rows(self) -> int:
        """Rows kept so far."""
        return sum(len(chunk[0]) for chunk in self._chunks)

    def finish(self) -> Rows:
        """All rows; the collector gives up its chunks."""
        chunks, self._chunks = self._chunks, []
        empty = np.empty(0, dtype=np.int32)
        if not chunks:
            return Rows(empty, empty, None, None, None)
        columns: list[npt.NDArray[np.generic] | None] = []
        for column in range(5):
            parts = [chunk[column] for chunk in chunks if chunk[column] is not None]
            columns.append(np.concatenate(parts) if len(parts) == len(chunks) else None)
            for i, chunk in enumerate(chunks):
                changed = list(chunk)
                changed[column] = None
                chunks[i] = tuple(changed)
        return Rows(*columns)


def pack(tokens: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Tokens as one UTF-8 blob with offsets; lone surrogates are kept so that they stay wrong."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded) or b"\0", dtype=np.uint8), offsets


def scores_from_text(tokens: Sequence[str]) -> tuple[Float32, dict[int, str]]:
    """Score tokens as float32.

    Returns:
        values, and for each token that is no finite number its place and what is wrong with it.
    """
    blob, offsets = pack(tokens)
    values = np.empty(len(tokens), dtype=np.float32)
    outcomes = np.empty(len(tokens), dtype=np.uint8)
    wrong: dict[int, str] = {}
    if parse_decimals(blob, offsets, values, outcomes):
        for i in np.flatnonzero(outcomes != NUMBER).tolist():
            outcome = int(outcomes[i])
            if outcome == UNDECIDED:
                outcome, values[i] = decide(tokens[i].encode())
                if outcome == NUMBER:
                    continue
            wrong[i] = score_fault(tokens[i], outcome == TOO_LARGE)
    return values, wrong


def score_fault(token: str, too_large: bool = False) -> str:
    """What is wrong with a score, and the fix."""
    if too_large:
        return f"score {quote(token)} is not finite as a 32-bit float (the largest is about 3.4e38): scale the scores"
    lowered = token.lower().lstrip("+-")
    if lowered in ("nan", "inf", "infinity") or lowered.startswith("nan("):
        return f"score {quote(token)} is not a finite number: leave the result out or give it a number"
    if "," in token:
        return f'score {quote(token)} has a comma: write a decimal point, as in "0.9"'
    if "_" in token:
        return f"score {quote(token)} has an underscore: write plain digits"
    if lowered.startswith("0x"):
        return f"score {quote(token)} is hexadecimal: write it as a decimal number"
    if not token.isascii() and any(c.isdigit() and not c.isascii() for c in token):
        return f"score {quote(token)} has digits other than 0 to 9: write ASCII digits"
    if not token.strip():
        return "the score is empty: write a number"
    return f'score {quote(token)} is not a number: write a decimal such as "0.9" or "1.5e-3"'
