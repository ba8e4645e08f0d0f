"""What a file is, by its content and never by its name."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from enum import StrEnum

import ijson

from pipeline.formats.byte_source import GZIP, ZSTD
from pipeline.formats.problems import Refusal

#: Bytes looked at.
HEAD = 1 << 16


class Shape(StrEnum):
    """The readers there are."""

    TREC = "trec"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


#: Magic bytes → what it is and what to do about it.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive (or an Office document): unpack it and upload the run file itself"),
    (b"PK\x05\x06", "an empty zip archive: upload the run file itself"),
    (b"\xfd7zXZ\x00", "an xz file: compress with gzip or zstd instead, or upload it unpacked"),
    (b"BZh91AY&SY", "a bzip2 file: compress with gzip or zstd instead, or upload it unpacked"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive: unpack it and upload the run file itself"),
    (b"Rar!\x1a", "a RAR archive: unpack it and upload the run file itself"),
    (b"\x04\x22\x4d\x18", "an lz4 file: compress with gzip or zstd instead, or upload it unpacked"),
    (b"%PDF-", "a PDF document: upload the run file itself"),
    (b"\x89PNG", "a PNG picture: upload the run file itself"),
    (b"\x89HDF", "an HDF5 file: write the run as TREC, JSON, CSV or Parquet"),
    (b"\x93NUMPY", "a NumPy array: write the run as TREC, JSON, CSV or Parquet"),
    (b"SQLite format 3\0", "an SQLite database: write the run as TREC, JSON, CSV or Parquet"),
    (b"ARROW1\0", "an Arrow file: write the run as Parquet"),
    (b"\x80\x02", "a Python pickle, which is never read here: write the run as TREC, JSON, CSV or Parquet"),
    (b"\x80\x03", "a Python pickle, which is never read here: write the run as TREC, JSON, CSV or Parquet"),
    (b"\x80\x04", "a Python pickle, which is never read here: write the run as TREC, JSON, CSV or Parquet"),
    (b"\x80\x05", "a Python pickle, which is never read here: write the run as TREC, JSON, CSV or Parquet"),
)

#: Column names of a table, by what they hold.
QUERY_NAMES = ("query_id", "qid", "query-id", "queryid", "query", "topic", "topic_id", "q_id")
TOOL_NAMES = (
    "tool_id",
    "docid",
    "doc_id",
    "docno",
    "corpus-id",
    "corpus_id",
    "skill_id",
    "tool",
    "doc",
    "pid",
    "document_id",
)
SCORE_NAMES = ("score", "sim", "similarity", "retrieval_score")
#: The smaller the better, unless the submitter says otherwise.
DISTANCE_NAMES = ("distance", "dist")
RANK_NAMES = ("rank", "position")
TAG_NAMES = ("tag", "run_tag", "runid", "run_id", "run", "system", "run_name")
OTHER_NAMES = ("q0", "iter", "iteration", *TAG_NAMES)
_NAMES = {*QUERY_NAMES, *TOOL_NAMES, *SCORE_NAMES, *DISTANCE_NAMES, *RANK_NAMES, *OTHER_NAMES}


def is_header(cells: list[str]) -> bool:
    """Whether a first row holds column names: a query and a tool column, and every name known."""
    names = [cell.strip().lower().lstrip("#") for cell in cells]
    return bool(
        set(names) & set(QUERY_NAMES)
        and set(names) & set(TOOL_NAMES)
        and sum(name in _NAMES for name in names) >= max(3, len(names) - 1)
        and not any(_looks_numeric(name) for name in names)
    )


def _looks_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def refuse_foreign(head: bytes) -> None:
    """Refuse what is no text and no Parquet, by name.

    Raises:
        Refusal: archives, documents, UTF-16 and UTF-32, HTML, binary data.
    """
    for magic, what in _OTHERS:
        if head.startswith(magic):
            raise Refusal(f"this is {what}")
    if head[257:262] == b"ustar":
        raise Refusal("this is a tar archive: unpack it and upload the run file itself")
    encoding = _wide_encoding(head)
    if encoding:
        raise Refusal(f"the text is {encoding}: save it as UTF-8")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:256].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise Refusal(
            "this is a web page (HTML), perhaps an error page that was saved in place of the run: get the file again"
        )
    if start.startswith(b"<") and b">" in start and not _is_table_line(head.lstrip()):
        raise Refusal("this is XML or HTML, not a run file: write the run as TREC, JSON, CSV or Parquet")


def _wide_encoding(head: bytes) -> str | None:
    for mark, name in (
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if head.startswith(mark):
            return name
    sample = head[:4096]
    if len(sample) >= 8 and sample.count(0) >= len(sample) // 4:
        lanes = [sample[i::4].count(0) / max(1, len(sample[i::4])) for i in range(4)]
        empty = [lane > 0.9 for lane in lanes]
        if empty in ([True, True, True, False], [False, True, True, True]):
            return "UTF-32 without a byte order mark"
        if empty in ([True, False, True, False], [False, True, False, True]):
            return "UTF-16 without a byte order mark"
        raise Refusal(
            f"this is binary data, not text ({sample.count(0):,} of the first {len(sample):,} bytes are U+0000): "
            "write the run as TREC, JSON, CSV or Parquet"
        )
    return None


def text_shape(head: bytes, complete: bool) -> Shape:
    """Which reader a text is for.

    Args:
        head: the first bytes, byte order mark removed.
        complete: whether that is the whole text.
    """
    start = head.lstrip(b" \t\r\n")
    if start[:1] in (b"{", b"[") and not _is_table_line(start):
        return Shape.JSONL if _is_jsonl(start, complete) else Shape.JSON
    return _table_shape(head, complete)


_NUMBER = rb"[-+.0-9eE]+"
_TABLE_LINE = re.compile(
    rb"(?:\S+[ \t]+\S+[ \t]+\S+[ \t]+-?[0-9]+[ \t]+" + _NUMBER + rb"[ \t]+\S+[ \t]*"
    rb"|[^\t\r\n]+\t[^\t\r\n]+\t" + _NUMBER + rb"|[^,\r\n]+,[^,\r\n]+," + _NUMBER + rb")(?:[\r\n]|$)"
)


def _is_table_line(start: bytes) -> bool:
    """Whether a text begins with a line of TREC, TSV or CSV: numbers stand where neither JSON nor XML has them."""
    return _TABLE_LINE.match(start) is not None


def is_compressed_twice(head: bytes) -> bool:
    """Whether what came out of a compressed stream is compressed again."""
    return head.startswith((GZIP, ZSTD))


JSONL_QUERY_KEYS = ("query_id", "qid", "id")
#: A list under such a key is the results of one query, wherever in the object its id stands.
_JSONL_LISTS = ("ranked_ids", "retrieved")


def _is_jsonl(start: bytes, complete: bool) -> bool:
    """One object a line, or a single object whose query id is a value rather than a key."""
    if start[:1] != b"{":
        return False
    line, newline, rest = re.split(rb"\r\n|\n|\r", start, maxsplit=1)[0], *_after_first_line(start)
    if newline and rest.lstrip()[:1] == b"{":
        try:
            return isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            pass
    return _has_query_key(start)


def _after_first_line(text: bytes) -> tuple[bool, bytes]:
    found = re.search(rb"\r\n|\n|\r", text)
    return (True, text[found.end() :]) if found else (False, b"")


def _has_query_key(start: bytes) -> bool:
    """Whether the first object has a scalar ``query_id`` (``qid``, ``id``) at its top, as far as ``start`` goes."""
    depth, key = 0, ""
    try:
        for event, value in ijson.basic_parse(start, use_float=True):
            if event in ("start_map", "start_array"):
                if depth == 1 and event == "start_array" and key in _JSONL_LISTS:
                    return True
                depth += 1
            elif event in ("end_map", "end_array"):
                depth -= 1
                if depth == 0:
                    return False
            elif event == "map_key" and depth == 1:
                key = value
            elif depth == 1 and key in JSONL_QUERY_KEYS:
                return True
    except Exception:
        return False
    return False


def _table_shape(head: bytes, complete: bool) -> Shape:
    """TREC, CSV or TSV, by what most of the first lines look like."""
    lines = [line for line in re.split(rb"\r\n|\n|\r", head) if line.strip()]
    if not complete and len(lines) > 1:
        lines.pop()
    texts = [line.decode("utf-8", "replace") for line in lines if not line.lstrip().startswith(b"#")][:20]
    texts = texts or [line.decode("utf-8", "replace") for line in lines][:20]
    votes: Counter[Shape] = Counter()
    for number, text in enumerate(texts):
        commas, tabs = _cells(text, ","), _cells(text, "\t")
        if number == 0 and len(text.split()) != 6:
            if is_header(commas):
                return Shape.CSV
            if is_header(tabs):
                return Shape.TSV
        words = text.split()
        votes[Shape.TREC] += _fit(words) if len(words) == 6 else 0
        votes[Shape.CSV] += _fit(commas)
        votes[Shape.TSV] += _fit(tabs)
    return max((Shape.TREC, Shape.CSV, Shape.TSV), key=lambda shape: votes[shape])


def _fit(cells: list[str]) -> int:
    """How well a line fits three or six columns: 2 with a number where the score stands, 1 without, else 0."""
    if len(cells) not in (3, 6):
        return 0
    return 2 if _looks_numeric(cells[2 if len(cells) == 3 else 4]) else 1


def _cells(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []
