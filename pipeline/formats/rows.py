"""The rows of a run file as arrays over a benchmark's positions, whatever format they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.formats.decimal_kernel import NUMBER, TOO_LARGE, UNDECIDED, decide, parse_decimals
from pipeline.formats.limits import Limits
from pipeline.formats.messages import quote
from pipeline.formats.problems import ProblemLog, Refusal
from pipeline.formats.unknown_ids import UnknownIds
from pipeline.identifiers import pack
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
        self.known_query_rows = 0
        self.format: str | None = None
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
        self.known_query_rows += int(np.count_nonzero(query >= 0))
        unknown = (query < 0) | (tool < 0)
        if unknown.any():
            keep = ~unknown
            query, tool = query[keep], tool[keep]
            score = score[keep] if score is not None else None
            rank = rank[keep] if rank is not None else None
            line = line[keep] if line is not None else None
        self._chunks.append((query, tool, score, rank, line))

    def find_query(self, query_id: str, line: int | None = None, place: str = "", rows: int = 1) -> int:
        """Position of a query; an unknown one is noted and gives -1."""
        position = int(self.target.queries.find([query_id])[0])
        if position < 0:
            self.unknown_queries.add(query_id, line, place, rows)
        return position

    def find_tools(self, tool_ids: Sequence[str], line: int | None = None, place: str = "") -> Int32:
        """Positions of the tools of one list; unknown ones are noted and give -1."""
        positions = self.target.tools.find(tool_ids)
        for i in np.flatnonzero(positions < 0).tolist():
            self.unknown_tools.add(tool_ids[i], line, place)
        return positions

    def absorb(self, other: RowCollector) -> None:
        """Take over what another collector gathered; it is spent."""
        self.problems.absorb(other.problems)
        self.unknown_queries.absorb(other.unknown_queries)
        self.unknown_tools.absorb(other.unknown_tools)
        self.rows_seen += other.rows_seen
        self.known_query_rows += other.known_query_rows
        self._chunks += other._chunks
        other._chunks = []

    def query_positions(self) -> Int32:
        """Distinct positions of the queries gathered so far."""
        parts = [chunk[0] for chunk in self._chunks]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int32)

    def finish(self) -> Rows:
        """All rows; the collector gives up its chunks, column by column, to keep the peak low."""
        chunks, self._chunks = self._chunks, []
        if not chunks:
            empty = np.empty(0, dtype=np.int32)
            return Rows(empty, empty, None, None, None)
        columns = [list(column) for column in zip(*chunks, strict=True)]
        del chunks
        joined: list[Any] = []
        for column in columns:
            joined.append(None if any(part is None for part in column) else np.concatenate(column))
            column.clear()
        return Rows(*joined)


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


def float32_scores(numbers: Sequence[Any]) -> tuple[Float32, dict[int, str]]:
    """Parsed numbers (int, float, Decimal) as float32.

    Returns:
        values, and for each number that is not finite its place and what is wrong with it.
    """
    doubles = np.empty(len(numbers), dtype=np.float64)
    try:
        doubles[:] = [float(number) for number in numbers]
    except OverflowError:
        for i, number in enumerate(numbers):
            try:
                doubles[i] = float(number)
            except OverflowError:
                doubles[i] = np.inf
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        values = doubles.astype(np.float32)
    finite = np.isfinite(values)
    if finite.all():
        return values, {}
    wrong = {
        i: score_fault(_short(numbers[i]), too_large=bool(not np.isnan(values[i])))
        for i in np.flatnonzero(~finite).tolist()
    }
    return values, wrong


def _short(number: Any) -> str:
    if isinstance(number, int):
        return f"about {'-' if number < 0 else ''}1e{int(number.bit_length() * 0.30103)}"
    return str(number)


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
