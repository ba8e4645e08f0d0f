"""Pass or fail per task and setting, read from CSV, TSV or JSON lines; every bad line is named.

A row has ``task`` (or ``query_id``), ``category``, ``setting`` and ``passed``; other columns are left out. Ids are
text: in JSON lines they stand in quotes, in CSV they are taken as written (``007`` is not ``7``). A task is told apart
by category and id, since ToolBench numbers the tasks of its test sets on their own.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.downstream.outcome_rows import COLUMNS, TASK_COLUMNS, LineFault, read_rows
from pipeline.errors import OutcomeFileError
from pipeline.formats.messages import listing, plural, quote

#: Columns of ``Outcomes.frame``; a task is (category, task), and has one row a setting at most.
OUTCOMES = {"task": pl.String, "category": pl.String, "setting": pl.String, "passed": pl.Boolean}
#: ToolBench's test sets in the order of the paper's figure, each with the other names it goes by, folded.
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    f"{group}-{short}": (f"{group}{short}".lower(), f"{group}{long}".lower())
    for group, short, long in (
        ("G1", "Inst", "instruction"),
        ("G2", "Inst", "instruction"),
        ("G3", "Inst", "instruction"),
        ("G1", "Tool", "tool"),
        ("G1", "Cat", "category"),
        ("G2", "Cat", "category"),
    )
}
_WORDS = {
    **dict.fromkeys(("true", "1", "yes", "pass", "passed"), True),
    **dict.fromkeys(("false", "0", "no", "fail", "failed"), False),
}
_LONGEST_ID = 1024
_LONGEST_NAME = 60
#: What a page can still show.
_MOST_SETTINGS = 12
_MOST_CATEGORIES = 50
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A file of results.

    Attributes:
        frame: columns of ``OUTCOMES``, by category (ToolBench's first, in the paper's order), then in file order.
        settings: in order: what is called oracle first, what is called expanded last, the others as they come.
        notes: what was normalised, and which results are missing, in words.
    """

    frame: pl.DataFrame
    settings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def tasks(self) -> int:
        """Distinct tasks."""
        return self.frame.select("category", "task").unique().height


def read_outcomes(
    path: Path, *, settings: Sequence[str] = (), known: Collection[str] | None = None, of: str = ""
) -> Outcomes:
    """Read a file of results.

    Args:
        path: CSV or TSV with a header, or JSON lines.
        settings: the order of the settings, where the usual one is not wanted.
        known: ids that a task may have; None takes any.
        of: whose ids they are, for messages.

    Raises:
        OutcomeFileError: with every bad line and what to write instead.
    """
    problems: list[LineFault] = []
    rows: list[tuple[str, str, str, bool]] = []
    seen: dict[tuple[str, str, str], int] = {}
    renamed: Counter[tuple[str, str]] = Counter()
    for line, values in read_rows(path, problems):
        try:
            task, written, setting, passed = _checked(values)
            if known is not None and task not in known:
                raise LineFault(f"task {quote(task)} is no query of {of}: check the id, or import without a benchmark")
            category = _category(written)
            key = (category, task, setting)
            if key in seen:
                raise LineFault(
                    f"task {quote(task)} of {quote(category)} has a result under {quote(setting)} on line {seen[key]} "
                    "already (duplicate): keep one"
                )
        except LineFault as fault:
            problems.append(LineFault(str(fault), line))
            continue
        renamed[written, category] += written != category
        seen[key] = line
        rows.append((task, category, setting, passed))
    if not rows and not problems:
        problems.append(LineFault("the file has no results: write task, category, setting and passed, one a line"))
    frame = pl.DataFrame(rows, schema=OUTCOMES, orient="row")
    found = frame["setting"].unique(maintain_order=True).to_list()
    problems += _too_many(frame)
    if not problems:
        problems += _wrong_order(found, settings)
    _raise(path, problems)
    notes = [f"category {quote(old)} read as {new} ({plural(n, 'line')})" for (old, new), n in renamed.items() if n]
    placed = frame.with_columns(
        _place=pl.col("category").replace_strict(_category_places(frame), return_dtype=pl.Int32)
    )
    ordered = placed.sort("_place", maintain_order=True).drop("_place")
    read = outcomes_of(ordered, tuple(settings) or _usual_order(found))
    return replace(read, notes=(*notes, *read.notes))


def outcomes_of(frame: pl.DataFrame, settings: tuple[str, ...]) -> Outcomes:
    """Results that were read before, as they are kept."""
    return Outcomes(frame, settings, (*_missing(frame, settings), *_repeated_ids(frame)))


def _checked(values: Mapping[str, Any]) -> tuple[str, str, str, bool]:
    given = [key for key in TASK_COLUMNS if key in values]
    if len(given) > 1:
        raise LineFault('both "task" and "query_id" are given: keep one')
    missing = [key for key in COLUMNS if key not in values]
    if not given or missing:
        raise LineFault(f"{', '.join([*([] if given else ['task']), *missing])} missing: every result needs it")
    task = _text(values, given[0], _LONGEST_ID)
    return task, _name(values, "category"), _name(values, "setting"), _passed(values["passed"])


def _text(values: Mapping[str, Any], key: str, longest: int) -> str:
    value = values[key]
    if not isinstance(value, str):
        hint = "; ids are text: put it in quotes" if key in TASK_COLUMNS else ""
        raise LineFault(f"{key} must be text, found {quote(repr(value))}{hint}")
    if not value.strip():
        raise LineFault(f"{key} is empty")
    if len(value) > longest:
        raise LineFault(f"{key} is longer than {longest:,} characters: {quote(value)}")
    if any(unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for sign in value):
        raise LineFault(f"{key} holds control or invisible characters: {quote(value)}")
    return value


def _name(values: Mapping[str, Any], key: str) -> str:
    return " ".join(_text(values, key, _LONGEST_NAME).split())


def _passed(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else str(value) if type(value) is int else ""
    if word not in _WORDS:
        raise LineFault(f"passed is {quote(str(value))}: write true or false")
    return _WORDS[word]


def _category(written: str) -> str:
    folded = "".join(sign for sign in written.lower() if sign.isalnum())
    return next((name for name, spelt in CATEGORIES.items() if folded in spelt), written)


def _category_places(frame: pl.DataFrame) -> dict[str, int]:
    """ToolBench's categories first, then the others as they come."""
    found = frame["category"].unique(maintain_order=True).to_list()
    ordered = [name for name in CATEGORIES if name in found] + [name for name in found if name not in CATEGORIES]
    return {name: place for place, name in enumerate(ordered)}


def _usual_order(found: list[str]) -> tuple[str, ...]:
    def place(name: str) -> int:
        folded = name.lower()
        return 0 if "oracle" in folded else 2 if "expanded" in folded else 1

    return tuple(sorted(found, key=place))


def _too_many(frame: pl.DataFrame) -> list[LineFault]:
    limits = {"setting": _MOST_SETTINGS, "category": _MOST_CATEGORIES}
    return [
        LineFault(f"{n} different values of {column}: at most {most} can be compared")
        for column, most in limits.items()
        if (n := frame[column].n_unique()) > most
    ]


def _wrong_order(found: list[str], settings: Sequence[str]) -> list[LineFault]:
    if not settings or sorted(settings) == sorted(found):
        return []
    given = listing(list(settings))
    return [LineFault(f"the settings of the file are {listing(found)}, the order names {given}: name each once")]


def _missing(frame: pl.DataFrame, settings: Sequence[str]) -> list[str]:
    """Tasks without a result under some setting: they count in no difference to it."""
    tasks = frame.select("category", "task").unique(maintain_order=True)
    notes = []
    for setting in settings:
        have = frame.filter(pl.col("setting") == setting)
        without = tasks.join(have, on=["category", "task"], how="anti", maintain_order="left")["task"].to_list()
        if without:
            notes.append(f"{plural(len(without), 'task has', 'tasks have')} no result under {setting}: "
                         f"{listing(without, 5)}")  # fmt: skip
    return notes


def _repeated_ids(frame: pl.DataFrame) -> list[str]:
    several = frame.group_by("task", maintain_order=True).agg(pl.col("category").n_unique().alias("n"))
    ids = several.filter(pl.col("n") > 1)["task"].to_list()
    if not ids:
        return []
    return [f"{plural(len(ids), 'id is', 'ids are')} in several categories, and a task in each: {listing(ids, 5)}"]


def _raise(path: Path, problems: list[LineFault]) -> None:
    if not problems:
        return
    ordered = sorted(problems, key=lambda fault: fault.line)
    shown = "".join(f"\n  {fault.placed}" for fault in ordered[:_SHOWN])
    more = f"\n  … and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    raise OutcomeFileError(f"{path.name} is refused, nothing was stored:{shown}{more}")
