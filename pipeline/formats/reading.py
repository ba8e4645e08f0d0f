"""What a format's reader tells besides its rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Reading:
    """Notes taken while reading one file.

    Attributes:
        format: what it was read as.
        normalised: what was changed to read it; any makes the verdict ``normalise``.
        notes: what is worth knowing but changed nothing.
        counts: ``lines`` and what else the format knows.
        prefill: what the file says of itself.
        ranks_are_positions: the rank column is the place in a list, not a number the file states.
        distances: the column of scores is named ``distance``.
    """

    format: str
    normalised: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    prefill: dict[str, str] = field(default_factory=dict)
    ranks_are_positions: bool = False
    distances: bool = False
