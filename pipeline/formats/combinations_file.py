"""A file of combinations for an existing benchmark, which becomes a new version of it.

This is how ToolEq and SkillEq will arrive: ``query_combo_verified.jsonl`` (or parquet), whose published shape is not
known. Our own ``combinations`` rows are read as they are. Besides, a row may spell

- the query ``query_id``, ``qid`` or ``id``;
- one set ``tool_ids``, ``tools``, ``combination``, ``skill_ids`` or ``skills``;
- several sets ``combinations``, ``combos`` or ``valid_combinations``, each a list of tools or an object that spells
  its set (and verdict, reason, …) as a row would;
- a tool as its id or as an object with ``tool_id``, ``skill_id`` or ``id``;
- the verdict ``verdict`` (valid, invalid, unsure), or ``valid``/``is_valid`` (true or false); without one a set is
  valid, since such files hold what was accepted;
- the reason ``reason`` or ``rationale``, the judge ``judge`` or ``model``, the score ``rrf_score`` or ``score``.

Whatever else a row has is named in the notes and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.benchmark import COMBINATIONS, TABLES, Benchmark, Judgement
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_table import REQUIRED, check_required, read_table, read_typed_rows, with_empty_text
from pipeline.formats.benchmark_validation import validate_benchmark
from pipeline.formats.loose_rows import LooseRows, Row, first_keys
from pipeline.formats.messages import listing, plural, quote
from pipeline.formats.source_table import ProblemList, SourceTable

QUERY_KEYS = ("query_id", "qid", "id")
SET_KEYS = ("tool_ids", "tools", "combination", "skill_ids", "skills")
SETS_KEYS = ("combinations", "combos", "valid_combinations")
_MEMBER_KEYS = ("tool_id", "skill_id", "id")
_VERDICT_KEYS = ("verdict", "valid", "is_valid")
_TEXT_KEYS = {"reason": ("reason", "rationale"), "judge": ("judge", "model")}
_SCORE_KEYS = ("rrf_score", "score")
_FLAGS = ("is_ground_truth", "coverage", "dependency_consistent")
_KNOWN = {
    *QUERY_KEYS,
    *SET_KEYS,
    *SETS_KEYS,
    *_VERDICT_KEYS,
    *_SCORE_KEYS,
    *_FLAGS,
    "reason",
    "rationale",
    "judge",
    "model",
}


def is_combinations_row(keys: Sequence[str]) -> bool:
    """Whether a row with these keys could be of a combinations file."""
    return any(key in keys for key in QUERY_KEYS) and any(key in keys for key in (*SET_KEYS, *SETS_KEYS))


def read_combinations_file(
    path: Path,
    parent: Benchmark,
    *,
    equivalents: Path | None = None,
    slug: str | None = None,
    title: str | None = None,
    version: str | None = None,
    licence: str | None = None,
    revision: str = "",
    notes: Sequence[str] = (),
) -> Benchmark:
    """Give an existing benchmark the combinations of a file.

    The parent's tools, queries, ground truth and sub-queries are kept; its combinations are replaced; its equivalents
    are replaced when a file of them is given.

    Args:
        path: the combinations.
        parent: the benchmark they belong to.
        equivalents: rows of our ``equivalents`` table, JSON lines or parquet.
        slug: default the parent's.
        title: default the parent's.
        version: default the parent's with ``+combinations``.
        licence: default the parent's.
        revision: the commit of the file, if known.
        notes: what was noticed before.

    Raises:
        BenchmarkError: the file is refused; every problem is named.
    """
    problems, found = ProblemList(), list(notes)
    tables = {name: SourceTable.from_frame(name, getattr(parent, name)) for name in TABLES if name != "combinations"}
    combinations = _read_combinations(path, problems, found)
    if equivalents is not None:
        tables["equivalents"] = read_table("equivalents", equivalents, problems, found)
    problems.raise_if_any(f"The combinations file {path.name} cannot be read as it is:")
    if combinations.frame.is_empty():
        raise BenchmarkError(f"The combinations file {path.name} has no rows.")
    info = replace(
        parent.info,
        slug=slug or parent.info.slug,
        title=title or parent.info.title,
        version=version or f"{parent.info.version}+combinations",
        licence=parent.info.licence if licence is None else licence,
        source="; ".join(filter(None, (parent.info.source, f"combinations from {path.name}"))),
        revision=revision or parent.info.revision,
        parents=(f"{parent.info.slug}@{parent.info.version}",),
    )
    return validate_benchmark(info, {**tables, "combinations": combinations}, found)


def _read_combinations(path: Path, problems: ProblemList, notes: list[str]) -> SourceTable:
    keys = first_keys(path)
    if "query_id" in keys and "tool_ids" in keys and not any(key in keys for key in ("valid", "is_valid")):
        frame = read_typed_rows(path, TABLES["combinations"], problems, notes, table="combinations")
        table = SourceTable("combinations", frame, (path.name,))
        check_required(table, ("query_id", "tool_ids"), problems)
        unjudged = frame["verdict"].null_count()
        _note_unjudged(unjudged, path, notes)
        frame = frame.with_columns(pl.col("verdict").fill_null(str(Judgement.VALID)))
        return table.with_frame(with_empty_text(frame, TABLES["combinations"], REQUIRED["combinations"]))
    return _read_loosely(path, problems, notes)


def _note_unjudged(count: int, path: Path, notes: list[str]) -> None:
    if count:
        notes.append(f"{path.name}: {plural(count, 'combination')} without a verdict; taken as valid")


def _read_loosely(path: Path, problems: ProblemList, notes: list[str]) -> SourceTable:
    rows = LooseRows((path,), "combinations", problems)
    columns: dict[str, list[Any]] = {name: [] for name in COMBINATIONS}
    places: list[Row] = []
    unknown: Counter[str] = Counter()
    for row in rows.rows:
        unknown.update(key for key in row.values if key not in _KNOWN)
        query = _first(row.values, QUERY_KEYS)
        if not isinstance(query, str):
            rows.refuse(row, f"no query id that is text under {', '.join(QUERY_KEYS)}; found {quote(repr(query))}")
            continue
        for one in _sets(rows, row):
            unknown.update(key for key in one if key not in _KNOWN and one is not row.values)
            _append(rows, row, query, {**row.values, **one}, columns)
            places.append(row)
    if unknown:
        notes.append(f"{path.name}: fields that are not known here were left out: {listing(sorted(unknown), 20)}")
    _note_unjudged(columns["verdict"].count(None), path, notes)
    columns["verdict"] = [verdict or str(Judgement.VALID) for verdict in columns["verdict"]]
    return rows.source_table(columns, places)


def _sets(rows: LooseRows, row: Row) -> list[Mapping[str, Any]]:
    """The sets of a row, each as an object that spells its own; the row itself when it is one set."""
    several = _first(row.values, SETS_KEYS)
    if several is None:
        if _first(row.values, SET_KEYS) is None:
            rows.refuse(row, f"no combination under {', '.join((*SET_KEYS, *SETS_KEYS))}")
            return []
        return [row.values]
    if not isinstance(several, list) or not all(isinstance(one, list | dict) for one in several):
        rows.refuse(row, f"expected a list of combinations, found {quote(repr(several))}")
        return []
    return [one if isinstance(one, dict) else {"tool_ids": one} for one in several]


def _append(rows: LooseRows, row: Row, query: str, values: Mapping[str, Any], columns: dict[str, list[Any]]) -> None:
    columns["query_id"].append(query)
    columns["tool_ids"].append(_members(rows, row, _first(values, SET_KEYS)))
    columns["verdict"].append(_verdict(rows, row, values))
    for column, keys in _TEXT_KEYS.items():
        value = _first(values, keys)
        if value is not None and not isinstance(value, str):
            rows.refuse(row, f"{column} must be text, found {quote(repr(value))}")
        columns[column].append(value if isinstance(value, str) else "")
    score = _first(values, _SCORE_KEYS)
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        rows.refuse(row, f"the score must be a number, found {quote(repr(score))}")
        score = None
    columns["rrf_score"].append(score)
    for column in _FLAGS:
        value = values.get(column)
        if value is not None and not isinstance(value, bool):
            rows.refuse(row, f"{column} must be true or false, found {quote(repr(value))}")
        columns[column].append(value if isinstance(value, bool) else None)


def _members(rows: LooseRows, row: Row, members: Any) -> list[str]:
    if not isinstance(members, list):
        rows.refuse(row, f"a combination must be a list of tools, found {quote(repr(members))}")
        return []
    ids = [_first(member, _MEMBER_KEYS) if isinstance(member, dict) else member for member in members]
    wrong = [member for member in ids if not isinstance(member, str)]
    if wrong:
        rows.refuse(row, f"a tool of a combination must be an id that is text, found {quote(repr(wrong[0]))}")
        return []
    return ids


def _verdict(rows: LooseRows, row: Row, values: Mapping[str, Any]) -> str | None:
    value = _first(values, _VERDICT_KEYS)
    if value is None or (isinstance(value, str) and value in list(Judgement)):
        return value
    if isinstance(value, bool):
        return str(Judgement.VALID if value else Judgement.INVALID)
    rows.refuse(row, f"the verdict is {quote(repr(value))}; write valid, invalid or unsure")
    return None


def _first(values: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)
