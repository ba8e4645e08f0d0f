"""The compiled reader of TREC lines: one pass over a block of bytes, ids looked up on the way.

A line of plain printable ASCII with six columns takes the fast road. Everything else (blank, comment, wrong
columns, bytes beyond ASCII, control characters) goes through ``examine_line``, which says what it is. Lines that
cannot be taken are recorded as events; Python words them from the block's bytes.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from pipeline.formats.decimal_kernel import NOT_A_NUMBER, NUMBER, TOO_LARGE, UNDECIDED, parse_decimal
from pipeline.formats.line_kernel import BLANK, COLUMNS, COMMENT, LINE_CODES, ROW, examine_line
from pipeline.identifiers import find_batch, find_bytes
from pipeline.word_scan import token_end

#: What can be recorded of a line beyond what ``examine_line`` says; codes are indices into the counters.
SCORE, SCORE_RANGE, RANK, LONG, UNKNOWN_QUERY, UNKNOWN_TOOL, TAG = range(LINE_CODES, LINE_CODES + 7)
CODES = LINE_CODES + 7

#: Tool ids looked up together.
BATCH = 256

#: Columns of an event: code, line (0-based within the block), start and end of what it is about.
EVENT_COLUMNS = 4


@numba.njit(cache=True, nogil=True)
def _same(buffer, start, end, other, other_start, other_end):  # type: ignore[no-untyped-def]
    if end - start != other_end - other_start:
        return False
    for i in range(end - start):  # noqa: SIM110 (numba compiles the loop, not all())
        if buffer[start + i] != other[other_start + i]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _parse_rank(buffer, start, end):  # type: ignore[no-untyped-def]
    """(ok, rank) of a whole number of at most nine digits, signed."""
    position = start
    negative = False
    if position < end and (buffer[position] == 45 or buffer[position] == 43):
        negative = buffer[position] == 45
        position += 1
    if position == end or end - position > 9:
        return False, np.int32(0)
    value = np.int32(0)
    while position < end:
        digit = np.int32(buffer[position]) - np.int32(48)
        if digit < 0 or digit > 9:
            return False, np.int32(0)
        value = np.int32(value * np.int32(10) + digit)
        position += 1
    return True, np.int32(-value) if negative else value


@numba.njit(cache=True, nogil=True)
def _record(events, counts, code, line, first, last):  # type: ignore[no-untyped-def]
    """Count the event, and keep it while there is room; ``counts[-1]`` is the number kept."""
    counts[code] += 1
    kept = counts[len(counts) - 1]
    if kept < len(events):
        events[kept, 0] = code
        events[kept, 1] = line
        events[kept, 2] = first
        events[kept, 3] = last
        counts[len(counts) - 1] = kept + 1


@numba.njit(cache=True, nogil=True)
def _find_tools(  # type: ignore[no-untyped-def]
    buffer, starts, lengths, count, blob, offsets, slots, out_tool, out_line, first_line, events, counts
):
    """Look up the tools of ``count`` rows together and record those that are unknown."""
    find_batch(buffer, starts, lengths, count, blob, offsets, slots, out_tool)
    for i in range(count):
        if out_tool[i] < 0:
            _record(events, counts, UNKNOWN_TOOL, out_line[i] - first_line, starts[i], starts[i] + lengths[i])


@numba.njit(cache=True, nogil=True)
def parse_block(  # type: ignore[no-untyped-def]
    buffer,
    start,
    stop,
    first_line,
    comment_until,
    header_line,
    line_limit,
    query_blob,
    query_offsets,
    query_slots,
    tool_blob,
    tool_offsets,
    tool_slots,
    tag,
    out_query,
    out_tool,
    out_score,
    out_rank,
    out_line,
    undecided,
    events,
    counts,
):
    """Read the lines of ``buffer[start:stop]``; the last byte is a line feed.

    Args:
        first_line: number of the block's first line, 0-based in the file.
        comment_until: every ``#`` line before this one is a comment, whatever its columns (a metadata header).
        header_line: a line to pass over, or -1.
        line_limit: bytes allowed in a line.
        tag: bytes of the run tag expected; others are recorded.
        out_query, out_tool, out_score, out_rank, out_line: one entry a row with a known query and good
            numbers; the tool is -1 when unknown, the line counts from 0 in the file.
        undecided: int64 (rows, 3); row, start and end of scores left to Python.
        events: int64 (capacity, EVENT_COLUMNS).
        counts: int64 (CODES + 2); by code, then rows left undecided, then events kept.

    Returns:
        (rows, lines, returns): rows written, lines read, lines that ended in CR LF.
    """
    position = start
    line = 0
    rows = 0
    returns = 0
    query = -1
    query_start = 0
    query_length = -1
    other_tag_start, other_tag_end = 0, 0
    tag_length = len(tag)
    bounds = np.empty(13, dtype=np.int64)
    tool_starts = np.empty(BATCH, dtype=np.int64)
    tool_lengths = np.empty(BATCH, dtype=np.int64)
    waiting_tools = 0
    while position < stop:
        line_start = position
        fast = True
        # Query id: nearly always that of the line before.
        query_end = position
        if query_length > 0 and line_start + query_length < stop:
            length = 0
            while length < query_length and buffer[position + length] == buffer[query_start + length]:
                length += 1
            if length == query_length and (buffer[position + length] == 32 or buffer[position + length] == 9):
                query_end = position + length
        known_query = query_end != position
        position = query_end
        if not known_query:
            position = token_end(buffer, position)
            query_end = position
            if (
                (buffer[position] != 32 and buffer[position] != 9)
                or query_end == line_start
                or buffer[line_start] == 35
            ):
                fast = False
        tool_start, tool_end = position, position
        rank_start, rank_end = position, position
        score_start, score_end = position, position
        tag_start, tag_end = position, position
        line_end = position
        if fast:
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            token = position
            position = token_end(buffer, position)
            fast = position > token
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            tool_start = position
            position = token_end(buffer, position)
            tool_end = position
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            rank_start = position
            position = token_end(buffer, position)
            rank_end = position
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            score_start = position
            position = token_end(buffer, position)
            score_end = position
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            tag_start = position
            position = token_end(buffer, position)
            tag_end = position
            while buffer[position] == 32 or buffer[position] == 9:
                position += 1
            line_end = position
            if buffer[position] == 13 and buffer[position + 1] == 10:
                position += 1
                returns += 1
            fast = fast and buffer[position] == 10 and tag_end > tag_start and position - line_start <= line_limit
        if not fast:
            position = line_start
            while buffer[position] != 10:
                position += 1
            line_end = position
            if line_end > line_start and buffer[line_end - 1] == 13:
                line_end -= 1
                returns += 1
            if line_end - line_start > line_limit:
                _record(events, counts, LONG, line, line_start, line_end)
                position += 1
                line += 1
                continue
            code, first, last = examine_line(buffer, line_start, line_end, bounds)
            # A row that lost columns is no comment because its query's id begins with a number sign.
            if (
                code == COMMENT
                and first_line + line >= comment_until
                and find_bytes(buffer, bounds[0], bounds[1], query_blob, query_offsets, query_slots) >= 0
            ):
                code = COLUMNS
            is_comment = first_line + line < comment_until and (code in (ROW, COLUMNS)) and buffer[bounds[0]] == 35
            if is_comment:
                code = COMMENT
            if first_line + line == header_line and code == ROW:
                position += 1
                line += 1
                continue
            if code != ROW:
                if code in (BLANK, COMMENT):
                    counts[code] += 1
                else:
                    _record(events, counts, code, line, first, last)
                position += 1
                line += 1
                continue
            query_end = bounds[1]
            tool_start, tool_end = bounds[4], bounds[5]
            rank_start, rank_end = bounds[6], bounds[7]
            score_start, score_end = bounds[8], bounds[9]
            tag_start, tag_end = bounds[10], bounds[11]
            known_query = False
            query_start = bounds[0]
        elif not known_query:
            query_start = line_start
        if first_line + line == header_line:
            query_length = -1
            position += 1
            line += 1
            continue
        if not known_query:
            query_length = query_end - query_start
            query = find_bytes(buffer, query_start, query_end, query_blob, query_offsets, query_slots)
            if query < 0:
                _record(events, counts, UNKNOWN_QUERY, line, query_start, query_end)
            elif query_start != line_start:
                query_length = -1
        elif query < 0:
            counts[UNKNOWN_QUERY] += 1
        rank_ok, rank = _parse_rank(buffer, rank_start, rank_end)
        if not rank_ok:
            _record(events, counts, RANK, line, rank_start, rank_end)
        outcome, score = parse_decimal(buffer, score_start, score_end)
        if outcome == UNDECIDED:
            waiting = counts[len(counts) - 2]
            undecided[waiting, 0] = rows
            undecided[waiting, 1] = score_start
            undecided[waiting, 2] = score_end
            counts[len(counts) - 2] = waiting + 1
        elif outcome == NOT_A_NUMBER:
            _record(events, counts, SCORE, line, score_start, score_end)
        elif outcome == TOO_LARGE:
            _record(events, counts, SCORE_RANGE, line, score_start, score_end)
        same_tag = tag_end - tag_start == tag_length
        if same_tag:
            for i in range(tag_length):
                if buffer[tag_start + i] != tag[i]:
                    same_tag = False
                    break
        if not same_tag:
            if _same(buffer, tag_start, tag_end, buffer, other_tag_start, other_tag_end):
                counts[TAG] += 1
            else:
                _record(events, counts, TAG, line, tag_start, tag_end)
                other_tag_start, other_tag_end = tag_start, tag_end
        good = query >= 0 and rank_ok and outcome in (NUMBER, UNDECIDED)
        # Undecided scores of rows that are dropped are still judged: they keep row -1.
        if outcome == UNDECIDED and not good:
            undecided[counts[len(counts) - 2] - 1, 0] = -1 - line
        if good:
            out_query[rows] = query
            tool_starts[waiting_tools] = tool_start
            tool_lengths[waiting_tools] = tool_end - tool_start
            waiting_tools += 1
            out_score[rows] = score
            out_rank[rows] = rank
            out_line[rows] = first_line + line
            rows += 1
            if waiting_tools == BATCH:
                _find_tools(
                    buffer,
                    tool_starts,
                    tool_lengths,
                    BATCH,
                    tool_blob,
                    tool_offsets,
                    tool_slots,
                    out_tool[rows - BATCH : rows],
                    out_line[rows - BATCH : rows],
                    first_line,
                    events,
                    counts,
                )
                waiting_tools = 0
        elif find_bytes(buffer, tool_start, tool_end, tool_blob, tool_offsets, tool_slots) < 0:
            _record(events, counts, UNKNOWN_TOOL, line, tool_start, tool_end)
        position += 1
        line += 1
    _find_tools(
        buffer,
        tool_starts,
        tool_lengths,
        waiting_tools,
        tool_blob,
        tool_offsets,
        tool_slots,
        out_tool[rows - waiting_tools : rows],
        out_line[rows - waiting_tools : rows],
        first_line,
        events,
        counts,
    )
    return rows, line, returns


def new_counts() -> npt.NDArray[np.int64]:
    """Fresh counters for ``parse_block``."""
    return np.zeros(CODES + 2, dtype=np.int64)
