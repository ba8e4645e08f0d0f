"""The errors a user can meet: each says what was wrong, what was found, where, and what to do.

The command line and the pages show ``str(error)`` and nothing else; ``exit_code`` is the command line's
contract (1 input refused, 2 usage, 3 environment, 4 budget).
"""

from __future__ import annotations


class EquiRankError(Exception):
    """Root of every error that is shown to a user as it is."""

    exit_code = 1


class RunFileError(EquiRankError):
    """A run file cannot be read at all (a refused file has a report instead)."""


class BenchmarkError(EquiRankError):
    """A benchmark is unknown, incomplete or inconsistent.

    Attributes:
        problems: every problem found, in file order; the message shows the first twenty.
    """

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        """Join the message and the first twenty problems."""
        self.problems = problems
        shown = "".join(f"\n  {problem}" for problem in problems[:20])
        more = f"\n  … and {len(problems) - 20} more" if len(problems) > 20 else ""
        super().__init__(message + shown + more)


class UsageError(EquiRankError):
    """Options that do not fit together."""

    exit_code = 2


class EnvironmentProblem(EquiRankError):
    """Something outside the input is missing: a database, a file, a key."""

    exit_code = 3


class ModelError(EquiRankError):
    """A model is unknown, may not be loaded, or gives answers that cannot be used."""

    exit_code = 3


class JudgeError(EquiRankError):
    """A language model cannot be asked: unknown model, missing key, refused request."""

    exit_code = 3


class BudgetExceeded(EquiRankError):
    """The next call could exceed the budget; everything answered so far is kept and the work can go on."""

    exit_code = 4


class MftrError(EquiRankError):
    """Standardized documents, rewritten queries or learned parameters that cannot be used."""


class OutcomeFileError(EquiRankError):
    """A file of pass or fail per task cannot be used."""
