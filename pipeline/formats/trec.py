"""TREC run files: ``query_id Q0 tool_id rank score tag``, one result a line."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.formats import line_kernel
from pipeline.formats import trec_kernel as kernel
from pipeline.formats.byte_source import ByteSource
from pipeline.formats.decimal_kernel import NUMBER, decide
from pipeline.formats.ir_metadata import read_metadata
from pipeline.formats.messages import character, plural, quote, visible
from pipeline.formats.reading import Reading
from pipeline.formats.rows import Float32, Int32, RowCollector, score_fault
from pipeline.formats.sniff import is_header
from pipeline.formats.text_blocks import Block, TextBlocks
from pipeline.run import RunTarget

#: Events worded a block; more are counted.
_EVENTS = 1 << 14
#: Shortest line with six columns, and its line feed: a bound on the rows of a block.
_SHORTEST = 12
#: Texts below this size are not worth a second thread.
_PARALLEL = 8 << 20
#: Distinct run tags listed.
_TAGS = 20

_PARSE_BLOCK: Any = kernel.parse_block

_COLUMNS = "query_id Q0 tool_id rank score tag"


@dataclass(frozen=True, eq=False)
class _Parsed:
    block: Block
    query: Int32
    tool: Int32
    score: Float32
    rank: Int32
    line: Int32
    lines: int
    returns: int
    undecided: npt.NDArray[np.int64]
    events: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Head:
    """What the first lines say before the kernel runs."""

    tag: bytes
    comment_until: int
    header_line: int
    prefill: dict[str, str]


def read_trec(source: ByteSource, target: RunTarget, collector: RowCollector) -> Reading:
    """Read every line into ``collector``.

    Raises:
        Refusal: a limit is exceeded.
    """
    head_bytes = source.peek(1 << 16)
    text = TextBlocks(source, collector.limits.line_bytes)
    head = _look_at_head(head_bytes)
    reading = Reading("trec", prefill=dict(head.prefill))
    if text.marked:
        reading.normalised.append("a byte order mark at the start was removed")
    if text.old_mac:
        reading.normalised.append("old-Mac line ends (CR) read as line ends")
    tags: dict[str, int] = {head.tag.decode("utf-8", "replace"): 0} if head.tag else {}
    lines = blanks = comments = returns = other_tags = 0
    header_seen = False
    for parsed in _parse(text, head, target, collector.limits.line_bytes, source.size or 0):
        base = lines
        wrong_scores = _decide(parsed)
        _word(parsed, base, wrong_scores, collector, tags)
        if wrong_scores:
            parsed.tool[[row for row, *_ in wrong_scores if row >= 0]] = -1
        collector.add(parsed.query, parsed.tool, parsed.score, parsed.rank, parsed.line + np.int32(base))
        header_seen |= base <= head.header_line < base + parsed.lines
        lines += parsed.lines
        blanks += int(parsed.counts[line_kernel.BLANK])
        comments += int(parsed.counts[line_kernel.COMMENT])
        returns += parsed.returns
        other_tags += int(parsed.counts[kernel.TAG])
        if not parsed.block.ended and (cut := _cut_id(parsed.block, target)):
            comments -= 1
            collector.problems.add(_cut_sentence(cut), lines)
    reading.counts["lines"] = lines
    if returns:
        reading.normalised.append(f"CR LF line ends on {plural(returns, 'line')} read as line ends")
    if blanks:
        reading.normalised.append(f"{plural(blanks, 'blank line')} passed over")
    if comments:
        reading.normalised.append(f"{plural(comments, 'comment line')} passed over")
    if header_seen:
        reading.normalised.append("a header row on the first line passed over")
    if len(tags) > 1:
        named = ", ".join(f"{quote(tag)} (first on line {line})" if line else quote(tag) for tag, line in tags.items())
        first = next((line for line in tags.values() if line), None)
        collector.problems.add(
            f"the file has several run tags, {named};"
            f" {plural(other_tags, 'line differs', 'lines differ')} from the first "
            "tag: submit one run a file"
            + (
                " (the last line has no line end: is it cut short?)"
                if not parsed.block.ended and first == lines
                else ""
            ),
            first,
        )
    elif head.tag:
        reading.prefill.setdefault("tag", visible(head.tag.decode("utf-8", "replace")[:200]))
    return reading


def _look_at_head(head: bytes) -> _Head:
    """The first run tag, a metadata header and a header row, from the first lines of the text."""
    lines = re.split(rb"\r\n|\n|\r", head.removeprefix(b"\xef\xbb\xbf"))
    comment_until, prefill = read_metadata(lines)
    header_line, tag = -1, b""
    for number, line in enumerate(lines):
        columns = line.split()
        if len(columns) != 6 or (number < comment_until and line.lstrip().startswith(b"#")):
            if columns and not columns[0].startswith(b"#"):
                header_line = -2 if header_line == -1 else header_line
            continue
        if header_line == -1:
            if is_header([column.decode("utf-8", "replace") for column in columns]):
                header_line = number
                continue
            header_line = -2
        tag = columns[5]
        break
    return _Head(tag, comment_until, header_line, prefill)


def _cut_id(block: Block, target: RunTarget) -> str:
    """The last line of a text without a final line end, where it is the beginning of an id that begins with ``#``."""
    last = block.buffer[: block.stop].tobytes().rstrip(b"\n").rpartition(b"\n")[2]
    if not last.startswith(b"#") or len(last.split()) != 1 or last[-1:].isspace():
        return ""
    cut = last.decode("utf-8", "replace")
    begun = any(query.startswith(cut) and query != cut for query in target.queries.ids)
    # A whole id is one column of six: the kernel has told it.
    return cut if begun and cut not in target.queries.ids else ""


def _cut_sentence(cut: str) -> str:
    return (
        f"1 column, expected 6 ({_COLUMNS}), and no line end: the file is truncated here, {quote(cut)} is the "
        "beginning of a query's id; write or upload it again"
    )


def _parse(text: TextBlocks, head: _Head, target: RunTarget, line_limit: int, size: int) -> Iterator[_Parsed]:
    """Parsed blocks in order, on two threads when the file is large enough to care."""
    workers = min(4, os.cpu_count() or 1) if size >= _PARALLEL else 1
    blocks = iter(text)
    # The header and the comments of a metadata header lie in the first block: only its lines are numbered.
    first = next(blocks, None)
    if first is None:
        return
    yield _parse_block(first, head, target, line_limit, True)
    if workers == 1:
        for block in blocks:
            yield _parse_block(block, head, target, line_limit, False)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[_Parsed]] = deque()
        for block in blocks:
            waiting.append(pool.submit(_parse_block, block, head, target, line_limit, False))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _parse_block(block: Block, head: _Head, target: RunTarget, line_limit: int, first: bool) -> _Parsed:
    most = block.stop // _SHORTEST + 2
    columns: list[Any] = [np.empty(most, dtype) for dtype in (np.int32, np.int32, np.float32, np.int32, np.int32)]
    undecided = np.empty((most, 3), dtype=np.int64)
    events = np.empty((_EVENTS, kernel.EVENT_COLUMNS), dtype=np.int64)
    counts = kernel.new_counts()
    rows, lines, returns = _PARSE_BLOCK(
        block.buffer,
        0,
        block.stop,
        0,
        head.comment_until if first else -1,
        head.header_line if first else -1,
        line_limit,
        target.queries.blob,
        target.queries.offsets,
        target.queries.slots,
        target.tools.blob,
        target.tools.offsets,
        target.tools.slots,
        np.frombuffer(head.tag or b"\n", dtype=np.uint8),
        *columns,
        undecided,
        events,
        counts,
    )
    query, tool, score, rank, line = (column[:rows].copy() for column in columns)
    return _Parsed(
        block,
        query,
        tool,
        score,
        rank,
        line,
        lines,
        returns,
        undecided[: counts[-2]].copy(),
        events[: counts[-1]].copy(),
        counts,
    )


def _decide(parsed: _Parsed) -> list[tuple[int, int, int, int]]:
    """Settle the scores the kernel left open; returns (row, line, start, end) of those that are not finite."""
    wrong: list[tuple[int, int, int, int]] = []
    for row, start, end in parsed.undecided.tolist():
        outcome, value = decide(parsed.block.buffer[start:end].tobytes())
        if outcome != NUMBER:
            wrong.append((row, int(parsed.line[row]) if row >= 0 else -1 - row, start, end))
        elif row >= 0:
            parsed.score[row] = value
    return wrong


def _word(
    parsed: _Parsed,
    base: int,
    wrong_scores: list[tuple[int, int, int, int]],
    collector: RowCollector,
    tags: dict[str, int],
) -> None:
    """Turn the events of a block into problems, in line order."""
    events = parsed.events.tolist() + [[kernel.SCORE_RANGE, line, start, end] for _, line, start, end in wrong_scores]
    events.sort(key=lambda event: event[1])
    told = dict.fromkeys(range(kernel.CODES), 0)
    buffer = parsed.block.buffer
    for code, line, start, end in events:
        told[code] += 1
        number = base + line + 1
        if code == kernel.UNKNOWN_QUERY:
            collector.unknown_queries.add(_text(buffer, start, end), number)
        elif code == kernel.UNKNOWN_TOOL:
            collector.unknown_tools.add(_text(buffer, start, end), number)
        elif code == kernel.TAG:
            if len(tags) < _TAGS:
                tags.setdefault(_text(buffer, start, end), number)
        elif collector.problems.full:
            collector.problems.add_unworded(1)
        else:
            last_open = not parsed.block.ended and line == parsed.lines - 1
            collector.problems.add(_sentence(buffer, code, start, end, last_open, base, line), number)
    counts = parsed.counts
    collector.unknown_queries.add_unnamed(int(counts[kernel.UNKNOWN_QUERY]) - told[kernel.UNKNOWN_QUERY])
    collector.unknown_tools.add_unnamed(int(counts[kernel.UNKNOWN_TOOL]) - told[kernel.UNKNOWN_TOOL])
    told[kernel.SCORE_RANGE] -= len(wrong_scores)
    for code in range(line_kernel.COLUMNS, kernel.LONG + 1):
        collector.problems.add_unworded(int(counts[code]) - told[code])


def _text(buffer: npt.NDArray[np.uint8], start: int, end: int) -> str:
    return buffer[start : min(end, start + 4096)].tobytes().decode("utf-8", "backslashreplace")


def _sentence(
    buffer: npt.NDArray[np.uint8], code: int, start: int, end: int, last_open: bool, base: int, line: int
) -> str:
    """What is wrong with one line, the offending text and the fix."""
    text = _text(buffer, start, end)
    if code == line_kernel.COLUMNS:
        found = len(text.split()) if end - start <= 4096 else 0
        columns = plural(found, "column") if found else "the wrong number of columns"
        if last_open:
            return (
                f"{columns}, expected 6 ({_COLUMNS}), and no line end: the file is truncated here, {quote(text)}; "
                "write or upload it again"
            )
        fix = "an id or tag must not hold spaces" if found > 6 else "write every column"
        if found == 1 and ";" in text:
            fix = "separate columns with spaces or tabs, or with commas as in CSV"
        return f"{columns}, expected 6 ({_COLUMNS}): {quote(text)}; {fix}"
    if code == kernel.SCORE:
        return score_fault(text)
    if code == kernel.SCORE_RANGE:
        return score_fault(text, too_large=True)
    if code == kernel.RANK:
        return f"rank {quote(text)} is not a whole number (at most nine digits): write 1, 2, 3, …"
    if code == kernel.LONG:
        return f"{end - start:,} bytes, longer than the limit for a line: is this a run file?"
    begin = start
    while begin > 0 and buffer[begin - 1] != 10:
        begin -= 1
    place = f"at byte {start - begin + 1} of the line"
    if code == line_kernel.UTF8:
        shown = quote(_text(buffer, max(begin, start - 30), start + 20).split("\n")[0])
        return f"byte 0x{buffer[start]:02X} {place} is not valid UTF-8: {shown}; save the file as UTF-8"
    shown = quote(_text(buffer, max(begin, start - 30), end).replace("\ufffd", ""))
    if code == line_kernel.SPACE:
        return f"{character(ord(text))} {place}, after {shown}: separate columns with spaces or tabs only"
    return f"the control character {character(ord(text))} {place}, after {shown}: remove it"
