"""Run files with one JSON object a line, each the results of one query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.messages import plural, quote, size
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.rows import Float32, RowCollector, float32_scores, score_fault
from pipeline.formats.sniff import JSONL_QUERY_KEYS
from pipeline.formats.text_lines import TextLines
from pipeline.run import RunTarget

#: A line holds all results of a query: this many times the limit for a line of a table.
_LINES = 64

_LIST_KEYS = ("ranked_ids", "tools", "results", "retrieved", "retrieved_ids", "ranked_tools", "ranking", "tool_ids")
_TOOL_KEYS = ("tool_id", "skill_id", "doc_id", "docid", "corpus_id", "id", "_id")
_SCORE_KEYS = ("scores",)
#: Names under which scores may hide; a line that has one of them and is read without it would be another run.
_SCORES_ELSEWHERE = ("score", "sims", "sim", "similarity", "similarities", "distance", "distances")

_SHAPE = '{"query_id": "…", "ranked_ids": ["…", …], "scores": [0.9, …]}'


class _Fault(Exception):
    """One line that cannot be taken."""


def read_jsonl(source: ByteSource, target: RunTarget, collector: RowCollector) -> Reading:
    """Read every line into ``collector``.

    Raises:
        Refusal: a limit is exceeded, or the text is not UTF-8.
    """
    limit = _LINES * collector.limits.line_bytes
    lines = TextLines(source, limit)
    reading = Reading("jsonl")
    seen = np.zeros(len(target.queries), dtype=np.int32)
    blanks = 0
    scored = listed = mapped = 0
    for text in lines:
        number = lines.lines
        if not text.strip():
            blanks += 1
            continue
        if len(text) > limit:
            raise Refusal(f"the line is longer than {size(limit)}, the limit for the results of one query", number)
        try:
            record = _parse(text, not lines.ended)
            query_id, tools, scores, is_map = _results(record)
        except _Fault as fault:
            collector.problems.add(str(fault), number)
            continue
        query = collector.find_query(query_id, number, rows=max(1, len(tools)))
        if query >= 0 and seen[query]:
            collector.problems.add(
                f"query {quote(query_id)} is already on line {seen[query]} (duplicate): write one line a query", number
            )
            continue
        if query >= 0:
            seen[query] = number
        if not tools:
            continue
        found = collector.find_tools(tools, number)
        values: Float32 | None = None
        if scores is not None:
            values, wrong = float32_scores(scores)
            for i, why in wrong.items():
                collector.problems.add(f"tool {quote(tools[i])}: {why}", number)
            if wrong:
                found[list(wrong)] = -1
        scored += scores is not None
        listed += scores is None
        mapped += is_map
        collector.add(
            np.full(len(tools), query, dtype=np.int32),
            found,
            values,
            None if is_map else np.arange(1, len(tools) + 1, dtype=np.int32),
            np.full(len(tools), number - 1, dtype=np.int32),
        )
    lines.note(reading)
    if blanks:
        reading.normalised.append(f"{plural(blanks, 'blank line')} passed over")
    if scored and listed:
        collector.problems.add(
            f"{plural(scored, 'line has', 'lines have')} scores and {plural(listed, 'line has', 'lines have')} none: "
            "write scores on every line or on none"
        )
    reading.ranks_are_positions = True
    return reading


def _parse(text: str, may_be_cut: bool) -> dict[str, Any]:
    try:
        record = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        cut = may_be_cut and error.pos >= len(text.rstrip()) - 1
        reason = "the line ends early: the file is truncated" if cut else f"{error.msg} at column {error.colno}"
        raise _Fault(
            f"not valid JSON: {reason}, {quote(text[max(0, error.pos - 30) : error.pos + 20].strip())}"
        ) from None
    except (ValueError, RecursionError):
        raise _Fault("not readable JSON: a number has too many digits, or the nesting is too deep") from None
    if not isinstance(record, dict):
        raise _Fault(f"expected one object, {_SHAPE}, found {quote(text.strip())}")
    return record


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _Fault(f"duplicate key {quote(key)}: only one of its values would count, keep one")
    return record


def _refuse_constant(text: str) -> None:
    raise _Fault(score_fault(text))


def _results(record: dict[str, Any]) -> tuple[str, list[str], list[Any] | None, bool]:
    """(query id, tools, scores or None, whether they came as an object without an order)."""
    key = next((key for key in JSONL_QUERY_KEYS if key in record), None)
    if key is None:
        raise _Fault(
            f'no "query_id" (or "qid", "id") among {", ".join(map(quote, list(record)[:8]))}: expected {_SHAPE}'
        )
    query_id = record[key]
    if not isinstance(query_id, str):
        raise _Fault(f"{quote(key)} is {quote(json.dumps(query_id))}, not a text: write it in quotes")
    _only_one(record, JSONL_QUERY_KEYS[:2], f"query {quote(query_id)}")
    _only_one(record, _LIST_KEYS, f"query {quote(query_id)}")
    name = next((name for name in _LIST_KEYS if name in record), None)
    if name is None:
        raise _Fault(
            f'no "ranked_ids", "tools", "results" or "retrieved" for query {quote(query_id)}: expected {_SHAPE}'
        )
    results = record[name]
    if isinstance(results, dict):
        return query_id, list(results), _numbers(list(results.values()), list(results)), True
    if not isinstance(results, list):
        raise _Fault(f"{quote(name)} of query {quote(query_id)} is no list: expected {_SHAPE}")
    tools, scores = _items(results, name)
    if scores is None and "scores" not in record:
        _refuse_hidden_scores(record, f"query {quote(query_id)}", '"scores"')
    beside = next((record[key] for key in _SCORE_KEYS if key in record), None)
    if beside is not None:
        if scores is not None:
            raise _Fault(f"scores stand both in {quote(name)} and beside it: keep one")
        if not isinstance(beside, list) or len(beside) != len(tools):
            count = len(beside) if isinstance(beside, list) else 0
            raise _Fault(f"{plural(len(tools), 'tool')} but {plural(count, 'score')}: write one score a tool")
        scores = _numbers(beside, tools)
    return query_id, tools, scores, False


def _only_one(record: dict[str, Any], names: Sequence[str], what: str) -> None:
    """Refuse two keys of one meaning: only one of them would count."""
    found = [name for name in names if name in record]
    if len(found) > 1:
        raise _Fault(f"{what} has both {quote(found[0])} and {quote(found[1])}: only one would count, keep one")


def _refuse_hidden_scores(record: dict[str, Any], what: str, expected: str) -> None:
    """Refuse what looks like scores under a name that is not read: the list would be taken as it stands."""
    found = next((key for key in record if key.lower() in _SCORES_ELSEWHERE), None)
    if found is not None:
        raise _Fault(
            f"{what} has {quote(found)}, which is not read here: name scores {expected}, "
            "or leave it out if the list is in order"
        )


def _items(results: list[Any], name: str) -> tuple[list[str], list[Any] | None]:
    """Tools and, where the items carry them, scores."""
    if all(type(item) is str for item in results):
        return results, None
    tools: list[str] = []
    scores: list[Any] = []
    ranks = [item["rank"] for item in results if isinstance(item, dict) and type(item.get("rank")) is int]
    if any(later <= earlier for earlier, later in pairwise(ranks)):
        raise _Fault(f"the ranks in {quote(name)} do not rise from one item to the next: put the items in their order")
    for item in results:
        tool: Any = None
        score: Any = None
        if isinstance(item, dict):
            tool = next((item[key] for key in _TOOL_KEYS if key in item), None)
            score = item.get("score")
            if score is None:
                _refuse_hidden_scores(item, quote(json.dumps(item)), '"score"')
        elif isinstance(item, list) and len(item) == 2:
            tool, score = item
        if type(tool) is not str:
            raise _Fault(
                f"{quote(json.dumps(item))} in {quote(name)} is no tool: expected an id in quotes "
                'or {"tool_id": "…", "score": 0.9}'
            )
        tools.append(tool)
        scores.append(score)
    if all(score is None for score in scores):
        return tools, None
    return tools, _numbers(scores, tools)


def _numbers(values: Sequence[Any], tools: list[str]) -> list[Any]:
    for value, tool in zip(values, tools, strict=True):
        if type(value) is not float and type(value) is not int:
            raise _Fault(f"the score of tool {quote(tool)} is {quote(json.dumps(value))}: write a number")
    return list(values)
