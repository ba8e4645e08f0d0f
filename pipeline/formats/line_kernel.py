"""The compiled judge of one line of six columns: what it is, and which bytes say so."""

from __future__ import annotations

import numba
import numpy as np

#: What a line can be.
ROW, BLANK, COMMENT, COLUMNS, CONTROL, SPACE, UTF8 = range(7)
LINE_CODES = 7


@numba.njit(cache=True, nogil=True)
def code_point(buffer, start, end):  # type: ignore[no-untyped-def]
    """Decode one character at ``start``; returns (code point, bytes), or (-1, 1) when it is not valid UTF-8."""
    lead = np.int64(buffer[start])
    if lead < 0x80:
        return lead, 1
    if 0xC2 <= lead <= 0xDF:
        size = 2
        value = lead & 0x1F
    elif 0xE0 <= lead <= 0xEF:
        size = 3
        value = lead & 0x0F
    elif 0xF0 <= lead <= 0xF4:
        size = 4
        value = lead & 0x07
    else:
        return np.int64(-1), 1
    if start + size > end:
        return np.int64(-1), 1
    for i in range(1, size):
        byte = np.int64(buffer[start + i])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), 1
        value = (value << 6) | (byte & 0x3F)
    if size == 3 and (value < 0x800 or 0xD800 <= value <= 0xDFFF):
        return np.int64(-1), 1
    if size == 4 and (value < 0x10000 or value > 0x10FFFF):
        return np.int64(-1), 1
    return value, size


@numba.njit(cache=True, nogil=True)
def is_odd_space(value):  # type: ignore[no-untyped-def]
    """Whether a code point beyond ASCII is white space, a line separator or a byte order mark."""
    return (
        value == 0xA0
        or value == 0x1680
        or 0x2000 <= value <= 0x200A
        or value == 0x2028
        or value == 0x2029
        or value == 0x202F
        or value == 0x205F
        or value == 0x3000
        or value == 0xFEFF
    )


@numba.njit(cache=True, nogil=True)
def examine_line(buffer, start, end, bounds):  # type: ignore[no-untyped-def]
    """Judge ``buffer[start:end]`` (no line end) character by character and split it into columns.

    Args:
        bounds: int64 (13,); receives start and end of the first six columns, and the number of columns at 12.

    Returns:
        (code, first, last): ROW, BLANK, COMMENT, COLUMNS, CONTROL, SPACE or UTF8, and the bytes it is about.
    """
    columns = 0
    position = start
    inside = False
    code = ROW
    first, last = start, end
    while position < end:
        value, size = code_point(buffer, position, end)
        if value == 32 or value == 9:
            if inside:
                if columns <= 6:
                    bounds[2 * columns - 1] = position
                inside = False
        else:
            if code == ROW:
                if value < 0:
                    code, first, last = UTF8, position, position + 1
                elif value < 32 or 127 <= value < 160:
                    code, first, last = CONTROL, position, position + size
                elif value >= 160 and is_odd_space(value):
                    code, first, last = SPACE, position, position + size
            if not inside:
                inside = True
                columns += 1
                if columns <= 6:
                    bounds[2 * columns - 2] = position
        position += size
    if inside and columns <= 6:
        bounds[2 * columns - 1] = end
    bounds[12] = columns
    if code != ROW:
        return code, first, last
    if columns == 0:
        return BLANK, start, end
    if columns != 6:
        if buffer[bounds[0]] == 35:
            return COMMENT, start, end
        return COLUMNS, start, end
    return ROW, start, end
