"""Formats of answers: which one a client wants, and frames and values written in it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl
from pydantic_core import to_json

from dashboard.api.problems import ApiProblem
from pipeline.formats.tables import TableFormat, write_table


class Format(StrEnum):
    """Names of formats, as ``?format=`` takes them."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    HTML = "html"
    LATEX = "latex"
    TEXT = "text"
    BIBTEX = "bibtex"


#: Media types; the first is what an answer says.
MEDIA_TYPES: dict[Format, tuple[str, ...]] = {
    Format.JSON: ("application/json",),
    Format.CSV: ("text/csv",),
    Format.PARQUET: ("application/vnd.apache.parquet", "application/x-parquet"),
    Format.HTML: ("text/html",),
    Format.LATEX: ("application/x-tex", "application/x-latex"),
    Format.TEXT: ("text/plain",),
    Format.BIBTEX: ("application/x-bibtex",),
}
TABULAR = (Format.JSON, Format.CSV, Format.PARQUET)
ENDINGS = {
    Format.PARQUET: "parquet",
    Format.HTML: "html",
    Format.LATEX: "tex",
    Format.TEXT: "txt",
    Format.BIBTEX: "bib",
}


@dataclass(frozen=True)
class _Range:
    """One entry of an Accept header."""

    kind: str
    quality: float

    def fits(self, media_type: str) -> int:
        """How exactly the entry names the type; 0 when it does not."""
        if self.kind == media_type:
            return 3
        if self.kind == media_type.split("/")[0] + "/*":
            return 2
        return 1 if self.kind == "*/*" else 0


def wanted_format(named: str | None, accept: str, offered: Sequence[Format]) -> Format:
    """The format of an answer; without a wish it is the first one offered.

    Args:
        named: what ``?format=`` says.
        accept: the header, "" when absent.
        offered: in order of preference.

    Raises:
        ApiProblem: 406, with what is offered.
    """
    listed = ", ".join(f"{item} ({MEDIA_TYPES[item][0]})" for item in offered)
    if named is not None:
        found = [item for item in offered if item.value == named.lower()]
        if not found:
            raise ApiProblem(406, f"there is no format {named[:40]!r} here; there are: {listed}")
        return found[0]
    if not accept.strip():
        return offered[0]
    ranges = _ranges(accept)
    best, chosen = 0.0, None
    for item in offered:
        fits = [(r.fits(kind), r.quality) for r in ranges for kind in MEDIA_TYPES[item] if r.fits(kind)]
        # The most exact entry decides: `text/csv;q=0, */*` does not want CSV.
        quality = max(fits)[1] if fits else 0.0
        if quality > best:
            best, chosen = quality, item
    if chosen is None:
        raise ApiProblem(406, f"nothing here fits the header Accept; there are: {listed}")
    return chosen


def _ranges(accept: str) -> list[_Range]:
    found = []
    for entry in accept[:4000].split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = min(max(float(value), 0.0), 1.0)
                except ValueError:
                    quality = 0.0
        if kind and quality == quality:
            found.append(_Range(kind, quality))
    return found


def write_json(value: Any) -> bytes:
    """UTF-8 JSON; moments as ISO 8601, what is not a finite number as null."""
    return to_json(value, inf_nan_mode="null", fallback=str)


def write_rows(frame: pl.DataFrame, chosen: Format) -> bytes:
    """A frame as CSV (formulas neutralised, lists joined by ``; ``) or Parquet; NaN is null in both."""
    known = without_nan(frame)
    if chosen is Format.CSV:
        lists = [name for name, dtype in known.schema.items() if isinstance(dtype, pl.List)]
        flat = known.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join("; ") for name in lists)
        return write_table(flat, TableFormat.CSV).encode()
    file = io.BytesIO()
    known.write_parquet(file, compression="zstd")
    return file.getvalue()


def without_nan(frame: pl.DataFrame) -> pl.DataFrame:
    """Null for every number that is not finite."""
    floats = pl.selectors.float()
    return frame.with_columns(pl.when(floats.is_finite()).then(floats).name.keep())


def row_schema(schema: pl.Schema | dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a row of a frame; every column may be null."""
    return {"type": "object", "properties": {name: _of(dtype) for name, dtype in schema.items()}}


def _of(dtype: Any) -> dict[str, Any]:
    if isinstance(dtype, pl.List):
        return {"type": ["array", "null"], "items": _of(dtype.inner)}
    dtype = dtype() if isinstance(dtype, type) else dtype
    if dtype == pl.Boolean:
        return {"type": ["boolean", "null"]}
    if dtype.is_integer():
        return {"type": ["integer", "null"]}
    if dtype.is_float():
        return {"type": ["number", "null"]}
    return {"type": ["string", "null"]}
