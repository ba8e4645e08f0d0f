"""JSON lines read strictly: one object a line, no value turned into another type, every fault with its line.

polars parses fast but turns numbers into text, keeps the first of two equal keys and reads a lone surrogate as
NUL. So each line is first parsed by ``json``, which shows the types as they are written, and only blocks in which
every value has the type of its column are handed to polars.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import polars as pl

from pipeline.formats.limits import Limits
from pipeline.formats.messages import quote
from pipeline.formats.messages import size as printed_size
from pipeline.formats.source_table import FILE, LINE, PLACE_SCHEMA, ProblemList, place

Schema = Mapping[str, pl.DataType | type[pl.DataType]]

_BLOCK_BYTES = 32 * 1024**2
_BLOCK_LINES = 8_192
_LINE_BYTES = 64 * 1024**2
_INT32_MAX = 2**31 - 1
#: A benchmark is kept to the bounds of a run file.
_LIMITS = Limits()
_SMALL_BYTES = 64 * 1024**2


class _DuplicateKeyError(ValueError):
    pass


class _ConstantError(ValueError):
    pass


class _NotAnObjectError(ValueError):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _DuplicateKeyError(repeated)
    return row


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_decode_checking_keys = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys).decode


@dataclass
class JsonRows:
    """The rows of a JSON lines file as one frame.

    Attributes:
        frame: the columns asked for plus ``FILE`` (all ``file_index``) and ``LINE``.
        unknown_keys: keys that were not asked for, with the number of rows that have them.
    """

    frame: pl.DataFrame
    unknown_keys: Counter[str] = field(default_factory=Counter)


def read_json_rows(path: Path, schema: Schema, problems: ProblemList, *, table: str, file_index: int = 0) -> JsonRows:
    """Read a ``.jsonl`` or ``.jsonl.gz`` file into a frame of ``schema``.

    A key that a row lacks is null. Faults go to ``problems`` and their rows are left out, so the frame is whole
    only when nothing was added.

    Args:
        path: the file; gzip is recognised by its first bytes.
        problems: where faults go.
        schema: column → String, List(String), Int32, Float64 or Boolean.
        table: name of the table, for the order of problems.
        file_index: what to write into ``FILE``.
    """
    frames = []
    unknown: Counter[str] = Counter()
    for block in _blocks(path, problems, table, file_index):
        faults = _wrong_types(block.rows, schema)
        for row_number, column, value in faults:
            line = block.numbers[row_number]
            message = f"{place(path.name, line)}: {_type_message(column, schema[column], value)}"
            problems.add(message, table, file_index, line)
        for key in set().union(*block.rows) - schema.keys():
            unknown[key] += sum(key in row for row in block.rows)
        if faults or not block.rows:
            continue
        frame = _typed_frame(block, schema)
        if frame is None:
            sound = _parse_one_by_one(block, path, problems, table, file_index)
            if len(sound.rows) < len(block.lines):
                continue
            frame = pl.DataFrame({c: [row.get(c) for row in sound.rows] for c in schema}, schema=cast("Any", schema))
        frames.append(
            frame.with_columns(
                pl.lit(file_index, dtype=pl.UInt16).alias(FILE),
                pl.Series(LINE, block.numbers, dtype=pl.UInt32),
            )
        )
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=cast("Any", {**schema, **PLACE_SCHEMA}))
    return JsonRows(whole, unknown)


def _typed_frame(block: _Block, schema: Schema) -> pl.DataFrame | None:
    """The lines as polars reads them, their types already checked; None when it finds some line unreadable."""
    try:
        frame = pl.read_ndjson(io.BytesIO(b"".join(block.lines)), schema=cast("Any", schema))
    except pl.exceptions.ComputeError:
        return None
    return frame if frame.height == len(block.rows) else None


def iterate_json_rows(
    path: Path, problems: ProblemList, *, table: str = "", file_index: int = 0
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, object) of a ``.jsonl`` or ``.jsonl.gz`` file; faults go to ``problems``."""
    for block in _raw_blocks(path, problems, table, file_index):
        sound = _parse_one_by_one(block, path, problems, table, file_index)
        yield from zip(sound.numbers, sound.rows, strict=True)


@dataclass
class _Block:
    lines: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


def _blocks(path: Path, problems: ProblemList, table: str, file_index: int) -> Iterator[_Block]:
    """Parsed lines in blocks of bounded size; blank lines and lines at fault are left out."""
    for block in _raw_blocks(path, problems, table, file_index):
        try:
            block.rows = _parse_together(block.lines)
        except (ValueError, RecursionError):
            block = _parse_one_by_one(block, path, problems, table, file_index)
        if block.rows:
            yield block


def _raw_blocks(path: Path, problems: ProblemList, table: str, file_index: int) -> Iterator[_Block]:
    block, size, number, taken = _Block(), 0, 0, 0
    packed = path.stat().st_size
    try:
        with open_json_lines(path) as stream:
            bound = _bound(packed) if isinstance(stream, gzip.GzipFile) else None
            for number, raw in enumerate(iter(lambda: stream.readline(_LINE_BYTES), b""), start=1):
                taken += len(raw)
                if bound is not None and taken > bound:
                    message = (
                        f"{path.name}: {printed_size(packed)} of gzip became over {printed_size(bound)}, the limit "
                        f"({_LIMITS.expansion_ratio} times the file, and {printed_size(_LIMITS.expanded_bytes)}); "
                        "decompress the file first if it is what it says"
                    )
                    problems.add(message, table, file_index, number)
                    return
                if len(raw) == _LINE_BYTES:
                    message = f"longer than {_LINE_BYTES // 1024**2} MB; write one row a line"
                    problems.add(f"{place(path.name, number)}: {message}", table, file_index, number)
                    break
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                if line.isspace() or not line:
                    continue
                block.lines.append(line if line.endswith(b"\n") else line + b"\n")
                block.numbers.append(number)
                size += len(line)
                if size > _BLOCK_BYTES or len(block.lines) >= _BLOCK_LINES:
                    yield block
                    block, size = _Block(), 0
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        message = f"{path.name}: the gzip data is damaged after line {number} ({error}); compress the file again"
        problems.add(message, table, file_index, number)
    if block.lines:
        yield block


def _bound(packed: int) -> int:
    """How many bytes a compressed file of ``packed`` bytes may become; a small result is no danger at any ratio."""
    return min(_LIMITS.expanded_bytes, max(_SMALL_BYTES, _LIMITS.expansion_ratio * packed))


def _parse_together(lines: list[bytes]) -> list[dict[str, Any]]:
    """Parse lines as the members of one array, several times faster than each by itself.

    Lines that are no objects by themselves could still make an array of the right length (one holding two objects,
    one a half); reading them line by line, as polars does afterwards, fails on those.

    Raises:
        ValueError: something is wrong with some line.
    """
    joined = b",".join(lines)
    text = "[" + joined.decode("utf-8") + "]"
    rows = cast("list[dict[str, Any]]", _decode(text))
    if len(rows) != len(lines) or set(map(type, rows)) != {dict}:
        raise _NotAnObjectError
    # Each key needs a colon: as many colons as distinct keys means that no key came twice.
    if joined.count(b":") != sum(map(len, rows)):
        _decode_checking_keys(text)
    if b"\\ud" in joined or b"\\uD" in joined:
        json.dumps(rows, ensure_ascii=False).encode()
    return rows


def _parse_one_by_one(block: _Block, path: Path, problems: ProblemList, table: str, file_index: int) -> _Block:
    """Parse each line by itself, so that every fault is found with its line."""
    sound = _Block()
    for line, number in zip(block.lines, block.numbers, strict=True):
        try:
            row = _parse(line)
        except (ValueError, RecursionError) as error:
            message = f"{place(path.name, number)}: {_parse_message(error, line)}"
            problems.add(message, table, file_index, number)
            continue
        sound.lines.append(line)
        sound.numbers.append(number)
        sound.rows.append(row)
    return sound


def open_json_lines(path: Path) -> BinaryIO:
    """Open a file for reading bytes, through gzip when its first bytes say so (names can lie)."""
    stream = path.open("rb")
    if stream.peek(2)[:2] == b"\x1f\x8b":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    return stream


def _parse(line: bytes) -> dict[str, Any]:
    row = _decode_checking_keys(line.decode("utf-8"))
    if not isinstance(row, dict):
        raise _NotAnObjectError
    if b"\\ud" in line or b"\\uD" in line:
        json.dumps(row, ensure_ascii=False).encode()
    return row


class JsonFault(ValueError):
    """What is wrong with a JSON text, in words."""


def parse_json(raw: bytes) -> Any:
    """A whole JSON file, read as strictly as a line: each key once, no NaN, no half of a surrogate pair.

    Raises:
        JsonFault: it cannot be read; the message says where and why.
    """
    try:
        value = _decode_checking_keys(raw.decode("utf-8-sig"))
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise JsonFault(f"not valid JSON at line {error.lineno}, column {error.colno} ({error.msg})") from None
    except UnicodeEncodeError:
        raise JsonFault("a \\u escape names half of a surrogate pair, which is no character") from None
    except _DuplicateKeyError as error:
        raise JsonFault(f"the key {quote(str(error))} occurs twice in one object; keep one") from None
    except (ValueError, RecursionError) as error:
        raise JsonFault(_parse_message(error, b"")) from None
    return value


def _parse_message(error: ValueError | RecursionError, line: bytes) -> str:
    text = quote(line.decode("utf-8", "replace").strip())
    match error:
        case UnicodeDecodeError():
            return f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        case UnicodeEncodeError():
            return f"a \\u escape names half of a surrogate pair, which is no character: {text}"
        case _DuplicateKeyError():
            return f"the key {quote(str(error))} occurs twice in one object; keep one"
        case _ConstantError():
            return f"{error} is not a JSON value; write null or a finite number"
        case _NotAnObjectError():
            return f"expected a JSON object, found {text}; write one object a line"
        case json.JSONDecodeError():
            return f"not valid JSON at column {error.colno} ({error.msg}): {text}; write one object a line"
        case RecursionError():
            return f"nested too deeply: {text}"
        case _:
            return f"cannot be read ({error}): {text}"


_ALLOWED: dict[Any, frozenset[type]] = {
    pl.String: frozenset({str, type(None)}),
    pl.Boolean: frozenset({bool, type(None)}),
    pl.Int32: frozenset({int, type(None)}),
    pl.Float64: frozenset({int, float, type(None)}),
    pl.List(pl.String): frozenset({list, type(None)}),
}
_WORDS: dict[Any, str] = {
    pl.String: "text in quotes",
    pl.Boolean: "true, false or null",
    pl.Int32: "a whole number or null",
    pl.Float64: "a finite number or null",
    pl.List(pl.String): "a list of texts",
}


def _wrong_types(rows: list[dict[str, Any]], schema: Schema) -> list[tuple[int, str, Any]]:
    """(row, column, value) of every value that is not of its column's type."""
    faults: list[tuple[int, str, Any]] = []
    for column, dtype in schema.items():
        values = [row.get(column) for row in rows]
        if set(map(type, values)) <= _ALLOWED[dtype]:
            if dtype == pl.List(pl.String):
                members = chain.from_iterable(value for value in values if value is not None)
                if set(map(type, members)) <= {str}:
                    continue
            elif dtype == pl.Int32:
                if all(value is None or abs(value) <= _INT32_MAX for value in values):
                    continue
            elif dtype == pl.Float64:
                if all(value is None or abs(value) <= 1.7976931348623157e308 for value in values):
                    continue
            else:
                continue
        faults += [(number, column, value) for number, value in enumerate(values) if not _fits(value, dtype)]
    return faults


def _fits(value: Any, dtype: Any) -> bool:
    if type(value) not in _ALLOWED[dtype]:
        return False
    if value is None:
        return True
    if dtype == pl.List(pl.String):
        return all(type(member) is str for member in value)
    if dtype == pl.Int32:
        return abs(int(value)) <= _INT32_MAX
    if dtype == pl.Float64:
        return bool(abs(value) <= 1.7976931348623157e308)
    return True


def _type_message(column: str, dtype: Any, value: Any) -> str:
    kinds = {bool: "a truth value", int: "a number", float: "a number", dict: "an object", list: "a list", str: "text"}
    if isinstance(value, list) and dtype == pl.List(pl.String):
        value = next(member for member in value if type(member) is not str)
        found = kinds.get(type(value), "null")
        return f"{column} holds {found} ({quote(json.dumps(value, ensure_ascii=False))}); every member must be text"
    found = kinds.get(type(value), "null")
    shown = quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    hint = "; ids are text: put it in quotes" if column.endswith("_id") and isinstance(value, int) else ""
    return f"{column} must be {_WORDS[dtype]}, found {found}: {shown}{hint}"
