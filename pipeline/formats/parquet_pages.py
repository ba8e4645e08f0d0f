"""What the pages of a Parquet file would expand to, read from their headers before anything is decompressed.

A page says how many bytes it becomes, and a reader allocates them: ten kilobytes can ask for gigabytes. The footer has
sums of these figures, but a hostile file may state others there than in its pages, so the pages themselves are asked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO

import pyarrow.parquet as pq

from pipeline.formats.limits import Limits
from pipeline.formats.messages import size
from pipeline.formats.problems import Refusal

#: Bytes read for one header; statistics in it may hold two whole values.
_HEADER = 1 << 16
#: Pages and row groups together.
_MOST_PAGES = 1_000_000
#: Below this size a high ratio says nothing.
_RATIO_FLOOR = 1 << 20

_BOOLEANS, _BYTE, _NUMBERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12


class _HeaderError(ValueError):
    """Not a header of a page."""


class _Header:
    """The figures of one page header, in thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length = 0
        self.numbers: dict[int, int] = {}
        self._struct(self.numbers, 0)

    def _byte(self) -> int:
        if self.length >= len(self._data):
            raise _HeaderError("a page header ends early")
        self.length += 1
        return self._data[self.length - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise _HeaderError("a number in a page header is too long")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _struct(self, numbers: dict[int, int] | None, depth: int) -> None:
        if depth > 8:
            raise _HeaderError("a page header is nested too deep")
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if kind in _NUMBERS:
                value = self._number()
                if numbers is not None:
                    numbers[field] = value
            elif kind not in _BOOLEANS:
                self._skip(kind, depth)

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (_BYTE, *_BOOLEANS):
            self.length += 1
        elif kind in _NUMBERS:
            self._varint()
        elif kind == _DOUBLE:
            self.length += 8
        elif kind == _BINARY:
            length = self._varint()
            self.length += length
        elif kind == _STRUCT:
            self._struct(None, depth + 1)
        else:
            raise _HeaderError("a page header holds what none has")


def check_pages(file: BinaryIO, columns: Collection[str], limits: Limits) -> None:
    """Refuse a Parquet file whose columns would expand beyond the limits.

    Args:
        file: the whole file, seekable.
        columns: names of the columns that will be read, all of them flat.
        limits: the sum over all pages must not exceed ``expanded_bytes`` nor ``expansion_ratio`` times the file.

    Raises:
        Refusal: it would, or a page header cannot be read.
    """
    arrived = file.seek(0, 2)
    file.seek(0)
    try:
        footer = pq.read_metadata(file)
        expanded = pages = 0
        for group in range(footer.num_row_groups):
            row_group = footer.row_group(group)
            pages += 1
            _refuse_too_many(pages)
            for column in range(row_group.num_columns):
                chunk = row_group.column(column)
                if chunk.path_in_schema not in columns:
                    continue
                starts = [chunk.data_page_offset]
                if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
                    starts.append(chunk.dictionary_page_offset)
                place = min((start for start in starts if start > 0), default=arrived)
                end = place + chunk.total_compressed_size
                while place < min(end, arrived):
                    file.seek(place)
                    header = _Header(file.read(_HEADER))
                    plain, packed = header.numbers.get(2, -1), header.numbers.get(3, -1)
                    if plain < 0 or packed < 0:
                        raise _HeaderError("a page header does not say how large its page is")
                    expanded += plain
                    pages += 1
                    place += header.length + packed
                    _refuse_too_large(expanded, arrived, limits)
                    _refuse_too_many(pages)
    except (_HeaderError, ValueError, OSError, IndexError) as error:
        raise Refusal(
            f"the Parquet file is damaged or truncated ({str(error).splitlines()[0]}): write or upload it again"
        ) from None
    file.seek(0)


def _refuse_too_many(pages: int) -> None:
    if pages > _MOST_PAGES:
        raise Refusal(f"the Parquet file has more than {_MOST_PAGES:,} pages and row groups: write larger ones")


def _refuse_too_large(expanded: int, arrived: int, limits: Limits) -> None:
    if expanded > limits.expanded_bytes:
        raise Refusal(
            f"the Parquet file expands to more than {size(limits.expanded_bytes)}, the limit after decompression"
        )
    if expanded > _RATIO_FLOOR and expanded > limits.expansion_ratio * arrived:
        raise Refusal(
            f"the Parquet file expands more than {limits.expansion_ratio} times ({size(arrived)} become over "
            f"{size(expanded)}), the limit for compressed files: this is no run file"
        )
