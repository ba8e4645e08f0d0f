"""Reasons to refuse a file, collected in file order."""

from __future__ import annotations

from pipeline.run import Problem

#: Problems shown of a refused file; the others are counted.
SHOWN = 20


class Refusal(Exception):
    """Reading stops here: the file is of a kind, or in a state, that cannot be read on."""

    def __init__(self, message: str, line: int | None = None) -> None:
        """Keep what becomes the last ``Problem`` of the report."""
        super().__init__(message)
        self.line = line


class ProblemLog:
    """Problems in the order found: the first twenty in words, all of them counted."""

    def __init__(self) -> None:
        """Start empty."""
        self.kept: list[Problem] = []
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether another problem would only be counted, so that wording it is wasted work."""
        return len(self.kept) >= SHOWN

    def add(self, message: str, line: int | None = None, count: int = 1) -> None:
        """Add a problem; the message is prefixed with its line."""
        self.count += count
        if not self.full:
            self.kept.append(Problem(f"line {line}: {message}" if line is not None else message, line))

    def absorb(self, other: ProblemLog) -> None:
        """Append another log's problems."""
        self.kept += other.kept[: SHOWN - len(self.kept)]
        self.count += other.count

    def add_unworded(self, count: int) -> None:
        """Count problems without words."""
        self.count += count


def in_file_order(problems: list[Problem]) -> tuple[Problem, ...]:
    """The first twenty by line; what concerns the whole file comes first."""
    return tuple(sorted(problems, key=lambda problem: problem.line or 0)[:SHOWN])
