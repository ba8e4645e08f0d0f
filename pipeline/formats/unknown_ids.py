"""Ids of a file that the benchmark does not have: the first of them with the nearest known id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.formats.messages import plural, quote
from pipeline.formats.nearest_id import NearestId
from pipeline.formats.problems import ProblemLog
from pipeline.identifiers import IdTable

#: Distinct unknown ids shown.
SHOWN = 5
#: Distinct unknown ids remembered; beyond that they are only counted.
REMEMBERED = 10_000


@dataclass
class _Seen:
    line: int | None
    place: str


class UnknownIds:
    """Unknown query ids, or unknown tool ids, in the order met."""

    def __init__(self, noun: str, table: IdTable, benchmark: str, id_bytes: int) -> None:
        """``noun`` is ``query`` or ``tool``."""
        self.noun = noun
        self.rows = 0
        self._table = table
        self._benchmark = benchmark
        self._id_bytes = id_bytes
        self._seen: dict[str, _Seen] = {}

    def add(self, identifier: str, line: int | None = None, place: str = "", rows: int = 1) -> None:
        """Remember one unknown id, met in ``rows`` rows; ``place`` says where when lines mean nothing."""
        self.rows += rows
        if len(self._seen) < REMEMBERED:
            self._seen.setdefault(identifier, _Seen(line, place))

    def add_unnamed(self, rows: int) -> None:
        """Count rows whose id is not at hand."""
        self.rows += rows

    def absorb(self, other: UnknownIds) -> None:
        """Add another collection's ids after these."""
        self.rows += other.rows
        for identifier, seen in list(other._seen.items())[: REMEMBERED - len(self._seen)]:
            self._seen.setdefault(identifier, seen)

    @property
    def distinct(self) -> int:
        """Distinct ids remembered."""
        return len(self._seen)

    @property
    def first(self) -> list[str]:
        """The ids remembered, in file order."""
        return sorted(self._seen, key=lambda i: self._seen[i].line or 0)

    def report(self, log: ProblemLog) -> None:
        """Put the first five into ``log`` with what they may have meant, and count the others."""
        if not self._seen:
            return
        nearest = NearestId(self._table.ids, self.noun, SHOWN)
        names = self.first
        for identifier in names[:SHOWN]:
            seen = self._seen[identifier]
            where = f" in {seen.place}" if seen.place else ""
            text = f"{self.noun} id {quote(identifier)}{where} is not in {self._benchmark}"
            if len(identifier.encode("utf-8", "surrogatepass")) > self._id_bytes:
                text += f"; it is longer than {self._id_bytes:,} bytes, the limit for an id"
            else:
                text += nearest.hint(identifier)
            log.add(text, seen.line)
        rest = len(names) - SHOWN
        if rest > 0:
            more = "at least " if len(names) >= REMEMBERED else ""
            log.add(
                f"{more}{plural(rest, f'more {self.noun} id')} {'is' if rest == 1 else 'are'} not in {self._benchmark}",
                count=rest,
            )


def other_benchmark(
    queries: UnknownIds,
    known_rows: int,
    benchmark: str,
    identify: Callable[[Sequence[str]], str | None] | None,
) -> str | None:
    """What to say when most of the file's query ids belong elsewhere, None when they do not."""
    if queries.rows <= 2 * known_rows or queries.distinct == 0:
        return None
    sample = queries.first
    name = identify(sample[:200]) if identify is not None else None
    share = "none" if known_rows == 0 else "few"
    text = f"{share} of the query ids in this file are in {benchmark} (the first unknown one is {quote(sample[0])})"
    if name is not None:
        return f"{text}; these ids match benchmark {name}: choose that one"
    return f"{text}; is this a run over another benchmark or version?"
