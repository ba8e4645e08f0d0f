"""Rounds of a batch: imported answers are taken, and what is still open is written into the next file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from pipeline.jobs.llm_answers import StoredAnswers, asking_config
from pipeline.jobs.site import Site
from pipeline.llm.batch_export import BatchWriter
from pipeline.llm.batch_import import BatchAnswers
from pipeline.llm.records import Asker, Check, Outcome, Question, Tell
from pipeline.llm.stores import Budget


class BatchRound:
    """An ``Asker`` that takes what imported files answer and writes the rest into a batch file.

    Use it in a ``with`` block.

    Args:
        site: with the answer cache.
        budget: what imported calls are counted under.
        answers: answers files, in the order they were imported.
        path: the batch file.
    """

    def __init__(self, site: Site, budget: Budget, answers: Sequence[Path], path: Path) -> None:
        """Nothing is written yet."""
        store, prices = StoredAnswers(site.database), asking_config(site.settings).prices
        self.imported = [BatchAnswers(store, file, budget, prices) for file in answers]
        self._writer = BatchWriter(store, path)
        self._stack = ExitStack()

    def __enter__(self) -> BatchRound:
        """Make the batch file."""
        self._stack.enter_context(self._writer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every file."""
        self._stack.close()
        for file in self.imported:
            file.close()

    @property
    def parts(self) -> list[Path]:
        """The files that were written, whole once this is left."""
        return self._writer.parts

    @property
    def pending(self) -> int:
        """Questions written."""
        return self._writer.pending

    def finish(self) -> None:
        """End the batch file."""
        self._stack.close()

    def ask(
        self, questions: Sequence[Question], *, check: Check | None = None, tell: Tell | None = None
    ) -> list[Outcome]:
        """See ``Asker``; ``Pending`` for what was written."""
        for file in self.imported:
            file.ask(questions, check=check, tell=tell)
        return self._writer.ask(questions, check=check, tell=tell)


def kept_batch(site: Site, asker: Asker | None) -> list[str]:
    """End the batch file of a round and keep it as artifacts; their hashes."""
    if not isinstance(asker, BatchRound):
        return []
    asker.finish()
    return [site.artifacts.put_file(part) for part in asker.parts]


def import_words(asker: Asker | None) -> list[str]:
    """What became of the imported answers, in sentences.

    A file of an earlier round answers other questions than this one's and is passed over, unless it is the newest.
    """
    said = []
    files = asker.imported if isinstance(asker, BatchRound) else []
    for file in files:
        report = file.report()
        if report.accepted + report.known:
            said.append(f"answers file: {report.accepted:,} new answers, {report.known:,} were known")
        elif file is not files[-1] or not report.missing:
            continue
        else:
            said.append(f"the answers file answers none of the {report.missing:,} questions that are open here")
        said += [f"  line {problem.line}: {problem.message}" for problem in report.problems[:20]]
    return said
