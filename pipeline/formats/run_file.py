"""Read a run file of any accepted format against a benchmark, and say how it was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import RunFileError
from pipeline.formats.byte_source import ByteSource
from pipeline.formats.limits import Limits
from pipeline.formats.messages import quote
from pipeline.formats.policy import Judgement, judge
from pipeline.formats.problems import ProblemLog, Refusal, in_file_order
from pipeline.formats.reading import Reading
from pipeline.formats.rows import RowCollector
from pipeline.formats.sniff import HEAD, Shape, is_compressed_twice, refuse_foreign, text_shape
from pipeline.formats.text_blocks import BYTE_ORDER_MARK
from pipeline.formats.trec import read_trec
from pipeline.formats.unknown_ids import other_benchmark
from pipeline.run import Order, Problem, RunReading, RunReport, RunTarget, Verdict

#: Plain bytes read on after a refusal, to see whether a compressed file breaks a limit as well.
_EXHAUST = 128 << 20


def read_run(
    source: Path | BinaryIO,
    target: RunTarget,
    *,
    order: Order | None = None,
    part: str | None = None,
    limits: Limits | None = None,
    identify: Callable[[Sequence[str]], str | None] | None = None,
    progress: Callable[[float], None] | None = None,
) -> RunReading:
    """Read, validate and rank a run file; every fault of the content becomes a problem of the report.

    Args:
        source: a path, or a binary stream at its start (read to its end, not closed).
        target: the benchmark's ids and one-to-one labels.
        order: what the submitter declares to be the order of a list.
        part: ``SUBSET/SPLIT`` of an MTEB file.
        limits: bounds on the file.
        identify: given some query ids, the name of the benchmark they belong to, or None.
        progress: called with the fraction read, 0 to 1.

    Returns:
        The report, and the run unless it is refused.

    Raises:
        RunFileError: the file cannot be opened or read from disk.
    """
    limits = limits or Limits()
    collector = RowCollector(target, limits)
    reading: Reading | None = None
    stopped: Refusal | None = None
    try:
        opened = ByteSource(source, limits, progress)
    except Refusal as refusal:
        return _refused(None, [Problem(str(refusal), refusal.line)], 1)
    except OSError as error:
        raise RunFileError(f"cannot read {source}: {error.strerror or error}") from None
    try:
        reading = _read(opened, target, collector, part)
    except Refusal as refusal:
        stopped = _or_limit(opened, refusal)
    except OSError as error:
        raise RunFileError(f"cannot read {source}: {error.strerror or error}") from None
    finally:
        opened.close()
    return _conclude(collector, reading, stopped, target, order, limits, identify)


def _read(opened: ByteSource, target: RunTarget, collector: RowCollector, part: str | None) -> Reading:
    """Choose the reader by content and let it fill the collector."""
    head = opened.peek(HEAD)
    if not head:
        raise Refusal("the file is empty: there are no rows")
    if opened.compression and is_compressed_twice(head):
        raise Refusal("the file is compressed twice: compress it once")
    if head.startswith(b"PAR1"):
        if opened.compression:
            raise Refusal(f"this is a Parquet file inside {opened.compression}: upload the Parquet file itself")
        from pipeline.formats.parquet import read_parquet

        collector.format = str(Shape.PARQUET)
        return read_parquet(opened, target, collector)
    refuse_foreign(head)
    shape = text_shape(head.removeprefix(BYTE_ORDER_MARK), len(head) < HEAD)
    collector.format = str(shape)
    if part is not None and shape is not Shape.JSON:
        raise Refusal(f"part {quote(part)} was named, but a {shape} file has no parts: leave the option out")
    if shape is Shape.TREC:
        return read_trec(opened, target, collector)
    if shape is Shape.JSON:
        from pipeline.formats.json_runs import read_json

        return read_json(opened, target, collector, part)
    if shape is Shape.JSONL:
        from pipeline.formats.jsonl import read_jsonl

        return read_jsonl(opened, target, collector)
    from pipeline.formats.delimited import read_delimited

    return read_delimited(opened, target, collector, "," if shape is Shape.CSV else "\t")


def _or_limit(opened: ByteSource, refusal: Refusal) -> Refusal:
    """The refusal, or the limit that a compressed file exceeds besides: that is the better reason."""
    if opened.compression:
        try:
            opened.exhaust(_EXHAUST)
        except Refusal as limit:
            return limit
    return refusal


def _conclude(
    collector: RowCollector,
    reading: Reading | None,
    stopped: Refusal | None,
    target: RunTarget,
    order: Order | None,
    limits: Limits,
    identify: Callable[[Sequence[str]], str | None] | None,
) -> RunReading:
    log = collector.problems
    ids = ProblemLog()
    elsewhere = other_benchmark(collector.unknown_queries, collector.known_query_rows, target.name, identify)
    if elsewhere is not None:
        ids.add(elsewhere, count=max(1, collector.unknown_queries.distinct))
    else:
        collector.unknown_queries.report(ids)
        collector.unknown_tools.report(ids)
    problems, count = log.kept + ids.kept, log.count + ids.count
    reading = reading or Reading(collector.format or "")
    if stopped is not None:
        text = f"line {stopped.line}: {stopped}" if stopped.line is not None else str(stopped)
        return _refused(reading, [*problems, Problem(text, stopped.line)], count + 1)
    noted = replace(reading, normalised=list(reading.normalised), notes=list(reading.notes))
    rows = collector.finish()
    judgement = Judgement(ProblemLog())
    if len(rows):
        judgement = judge(rows, target, reading, order, limits)
        problems, count = problems + judgement.problems.kept, count + judgement.problems.count
    elif not count:
        problems, count = [Problem("the file has no rows: it is empty but for comments, headers or empty lists")], 1
    if count:
        return _refused(replace(noted, counts=reading.counts), problems, count)
    verdict = Verdict.NORMALISE if reading.normalised else Verdict.ACCEPT
    report = RunReport(
        verdict,
        reading.format,
        notes=(*reading.normalised, *reading.notes),
        flags=tuple(judgement.flags),
        counts=reading.counts,
        prefill=reading.prefill,
    )
    return RunReading(report, judgement.run)


def _refused(reading: Reading | None, problems: list[Problem], count: int) -> RunReading:
    reading = reading or Reading("")
    report = RunReport(
        Verdict.REFUSE,
        reading.format or None,
        in_file_order(problems),
        count,
        (*reading.normalised, *reading.notes),
        counts=reading.counts,
        prefill=reading.prefill,
    )
    return RunReading(report, None)
