"""How large an input may be; every limit is a setting of the operator (OPERATIONS, Limits)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on one run file.

    Attributes:
        upload_bytes: size of the file as it arrives.
        expanded_bytes: size after decompression.
        expansion_ratio: decompressed over compressed size.
        line_bytes: length of one line; one query of a JSONL file may take 64 times as much.
        rows: results in the file, over all queries.
        depth: results kept a query, after ranking.
        id_bytes: length of one id.
    """

    upload_bytes: int = 512 * 1024**2
    expanded_bytes: int = 4 * 1024**3
    expansion_ratio: int = 100
    line_bytes: int = 64 * 1024
    rows: int = 25_000_000
    depth: int = 1000
    id_bytes: int = 1024
