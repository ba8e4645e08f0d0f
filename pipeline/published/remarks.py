"""Our remarks on printed figures: which cells, rows and figures each belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pipeline.published.files import read_toml

#: What may narrow a remark to rows, and to cells of those rows.
ROW_FIELDS = ("place", "benchmark", "retriever", "method", "level")
CELL_FIELDS = ("metric", "view", "domain", "average")


@dataclass(frozen=True)
class Remark:
    """A remark and what it belongs to.

    Attributes:
        wanted: field → the values it may have; fields of ``ROW_FIELDS`` and ``CELL_FIELDS``, or ``figure``.
    """

    text: str
    wanted: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def on_cells(self) -> bool:
        """Whether it belongs to cells, not to whole rows."""
        return any(name in CELL_FIELDS for name, _ in self.wanted)

    def fits(self, **fields: str) -> bool:
        """Whether something with these fields is meant; a field it lacks never fits a remark that names one."""
        return all(fields.get(name) in values for name, values in self.wanted)


@cache
def remarks() -> tuple[Remark, ...]:
    """All remarks.

    Raises:
        ValueError: a remark names an unknown field, or nothing at all.
    """
    found = []
    for entry in read_toml("annotations.toml")["remark"]:
        text = entry.pop("text")
        unknown = set(entry) - {*ROW_FIELDS, *CELL_FIELDS, "figure"}
        if unknown or not entry:
            raise ValueError(f"annotations.toml: remark {text!r} has unknown fields {sorted(unknown)} or names nothing")
        wanted = tuple((name, tuple(v) if isinstance(v, list) else (v,)) for name, v in entry.items())
        found.append(Remark(text, wanted))
    return tuple(found)


def figure_note(key: str) -> str:
    """The remarks on one figure, joined."""
    return " ".join(remark.text for remark in remarks() if remark.fits(figure=key))


def row_notes(fields: dict[str, str]) -> tuple[str, ...]:
    """The remarks on a whole row with these ``ROW_FIELDS``."""
    return tuple(remark.text for remark in remarks() if not remark.on_cells and remark.fits(**fields))


def cell_note(row: dict[str, str], cell: dict[str, str]) -> str:
    """The remarks on one cell (``CELL_FIELDS``) of a row (``ROW_FIELDS``), joined."""
    return " ".join(remark.text for remark in remarks() if remark.on_cells and remark.fits(**row, **cell))
