"""Run files that are one JSON object: nested scores, lists, and the shapes of ToolRet, SkillRet and MTEB.

The shape is only known when the object has been read, so rows are gathered by section (the keys above a query)
and the sections that are not results are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.formats.byte_source import ByteSource
from pipeline.formats.json_text import JsonText
from pipeline.formats.messages import listing, plural, quote, visible
from pipeline.formats.problems import Refusal
from pipeline.formats.reading import Reading
from pipeline.formats.rows import RowCollector, float32_scores
from pipeline.run import RunTarget

Path = tuple[str, ...]

#: Deepest nesting looked into; the deepest format has four levels.
_DEEPEST = 16
_MOST_SECTIONS = 1000
#: Keys remembered of one object, to find repeated ones.
_MOST_KEYS = 2_000_000
#: Results handed on at a time.
_CHUNK = 1 << 16

_MODEL_META = "mteb_model_meta"


@dataclass(eq=False)
class _Section:
    collector: RowCollector
    scored: int = 0
    listed: int = 0


@dataclass(eq=False)
class _Open:
    """An object or array being read."""

    is_map: bool
    key: str = ""
    keys: set[str] = field(default_factory=set)
    tools: list[str] = field(default_factory=list)
    scores: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    places: int = 0
    query: int | None = None
    repeated: bool = False
    numbers: bool = False
    inner: str | None = None


class _JsonRun:
    """Follows the events and fills the sections."""

    def __init__(self, target: RunTarget, main: RowCollector) -> None:
        self._target = target
        self._main = main
        self.sections: dict[Path, _Section] = {}
        self.stack: list[_Open] = []
        self.path: list[str] = []
        self.loose: list[str] = []
        self.meta: dict[str, str] = {}
        self.is_list = False
        self.has_meta = False
        self.rows = 0

    def where(self) -> str:
        """The place being read, for messages."""
        keys = [key for key in self.path if key]
        return "under the keys " + " > ".join(quote(key) for key in keys) if keys else "at the top"

    def read(self, text: JsonText) -> None:
        """Read the whole object."""
        stack, path = self.stack, self.path
        for event, value in text.events(self.where):
            if event == "map_key":
                top = stack[-1]
                top.key = value
                path[-1] = value
                if value in top.keys:
                    self._repeated(value)
                elif len(top.keys) >= _MOST_KEYS:
                    raise Refusal(f"an object {self.where()} has more than {_MOST_KEYS:,} keys, the limit")
                else:
                    top.keys.add(value)
            elif event == "number":
                self._number(value)
            elif event in ("start_map", "start_array"):
                self._enter(event == "start_map")
            elif event in ("end_map", "end_array"):
                self._leave()
            else:
                self._other(event, value)

    def _enter(self, is_map: bool) -> None:
        if not self.stack and not is_map:
            self.is_list = True
            raise Refusal(
                "the JSON is a list; expected an object {query_id: {tool_id: score}} or {query_id: [tool_id, …]}, "
                "or one object a line (JSONL)"
            )
        if len(self.stack) >= _DEEPEST:
            raise Refusal(f"the JSON is nested more than {_DEEPEST} levels deep: this is no run file")
        if self.stack and not self.stack[-1].is_map:
            self._fault("a list or object stands inside a list: expected tool ids")
        elif self.stack and self.stack[-1].inner is None:
            self.stack[-1].inner = self.stack[-1].key
        self.stack.append(_Open(is_map))
        if is_map:
            self.path.append("")

    def _leave(self) -> None:
        top = self.stack.pop()
        if top.is_map:
            self.path.pop()
        if self.stack and not self.stack[-1].is_map:
            return
        if top.numbers and top.inner is not None:
            # An inner object without results would leave no other trace.
            top.faults.append(f"the score of tool {quote(top.inner)} is a list or object: write a number")
            top.fault_count += 1
        self._flush(top, last=True)

    def _repeated(self, key: str) -> None:
        self.stack[-1].repeated = True
        above = " > ".join(quote(k) for k in self.path[:-1])
        where = f"under {above}" if above else "at the top"
        self._main.problems.add(f"duplicate key {quote(key)} {where}: only one of its values would count, keep one")

    def _number(self, value: Any) -> None:
        top = self.stack[-1]
        if self.path[0] == _MODEL_META:
            return
        if top.is_map:
            if len(self.path) == 1:
                self._loose(f"the value of key {quote(top.key)} is a number: expected an object of tools and scores")
                return
            if top.repeated:
                top.repeated = False
                return
            top.numbers = True
            top.tools.append(top.key)
            top.scores.append(value)
        else:
            self._fault(f"{quote(str(value))} in a list is a number: tool ids are texts, write it in quotes")
        if len(top.tools) >= _CHUNK:
            self._flush(top, last=False)

    def _other(self, event: str, value: Any) -> None:
        top = self.stack[-1]
        if not top.is_map:
            if event == "string":
                top.tools.append(value)
                if len(top.tools) >= _CHUNK:
                    self._flush(top, last=False)
            else:
                self._fault(f"{event} in a list: expected tool ids")
            return
        if self.path[0] == _MODEL_META:
            if len(self.path) == 2 and event == "string":
                self.meta[top.key] = value
            return
        what = {"string": f"the text {quote(str(value))}", "null": "null"}.get(event, str(value).lower())
        if len(self.path) == 1:
            self._loose(f"the value of key {quote(top.key)} is {what}: expected an object of tools and scores")
        else:
            self._fault(f"the score of tool {quote(top.key)} is {what}: write a number")

    def _loose(self, message: str) -> None:
        if len(self.loose) < 20:
            self.loose.append(message)

    def _fault(self, message: str) -> None:
        top = self.stack[-1]
        top.fault_count += 1
        if len(top.faults) < 20:
            top.faults.append(message)

    def _flush(self, top: _Open, last: bool) -> None:
        """Hand the results of a query to its section."""
        path = tuple(self.path) if last or not top.is_map else tuple(self.path[:-1])
        if path and path[0] == _MODEL_META:
            self.has_meta = True
            return
        if not path or not (top.tools or top.fault_count or (last and not top.is_map)):
            return
        section = self._section(path[:-1])
        collector = section.collector
        place = f"query {quote(path[-1])}"
        if top.query is None:
            top.query = collector.find_query(path[-1], rows=max(1, len(top.tools)))
        for fault in top.faults:
            collector.problems.add(f"{place}: {fault}")
        collector.problems.add_unworded(top.fault_count - len(top.faults))
        top.faults, top.fault_count = [], 0
        tools, scores = top.tools, top.scores
        top.tools, top.scores = [], []
        self.rows += len(tools)
        if self.rows > self._main.limits.rows:
            raise Refusal(f"the file has more than {self._main.limits.rows:,} results, the limit: keep fewer a query")
        if not tools:
            return
        found = collector.find_tools(tools, place=place)
        query = np.full(len(tools), top.query, dtype=np.int32)
        if top.is_map:
            section.scored += 1
            values, wrong = float32_scores(scores)
            for i, fault in wrong.items():
                collector.problems.add(f"{place}, tool {quote(tools[i])}: {fault}")
            if wrong:
                found[list(wrong)] = -1
            collector.add(query, found, values)
        else:
            section.listed += 1
            ranks = np.arange(top.places + 1, top.places + len(tools) + 1, dtype=np.int32)
            top.places += len(tools)
            collector.add(query, found, None, ranks)

    def _section(self, path: Path) -> _Section:
        section = self.sections.get(path)
        if section is None:
            if len(self.sections) >= _MOST_SECTIONS:
                raise Refusal(
                    f"the JSON has more than {_MOST_SECTIONS:,} sections: expected {{query_id: {{tool_id: score}}}}"
                )
            section = self.sections[path] = _Section(RowCollector(self._target, self._main.limits))
        return section


def read_json(source: ByteSource, target: RunTarget, collector: RowCollector, part: str | None) -> Reading:
    """Read one JSON object into ``collector``.

    Args:
        part: ``SUBSET/SPLIT`` of an MTEB file, a split of a SkillRet file.

    Raises:
        Refusal: the text is not JSON, or has no shape of a run, or a part must be named.
    """
    text = JsonText(source)
    run = _JsonRun(target, collector)
    run.read(text)
    name, chosen = _choose(run, part)
    reading = Reading(name, counts={"lines": text.lines + 1})
    if text.marked:
        reading.normalised.append("a byte order mark at the start was removed")
    sections = [run.sections[path] for path in chosen]
    listed, scored = (sum(getattr(section, kind) for section in sections) for kind in ("listed", "scored"))
    if listed and scored:
        raise Refusal(
            f"{plural(scored, 'query has', 'queries have')} scores"
            f" and {plural(listed, 'query is', 'queries are')} a list: "
            "write all of them in one way"
        )
    if listed:
        reading.ranks_are_positions = True
        reading.format = "lists" if name == "json" else name
    if name in ("json", "toolret-json"):
        for message in run.loose:
            collector.problems.add(message)
    elif run.loose or len(chosen) < len(run.sections):
        others = sorted({path[0] for path in run.sections if path not in chosen and path and path[0] != chosen[0][0]})
        if others:
            reading.notes.append(f"not results, passed over: {listing(others)}")
    if name == "toolret-json" and len(chosen) > 1:
        reading.notes.append(f"{len(chosen):,} tasks merged")
        _refuse_shared_queries(run, chosen, target)
    for section in sections:
        collector.absorb(section.collector)
    for key, field_name in (("model_name", "retriever"), ("revision", "revision")):
        if run.meta.get(key):
            reading.prefill[field_name] = visible(run.meta[key][:200])
    if name in ("mteb-json", "skillret-json"):
        reading.notes.append(f"read the part {quote('/'.join(chosen[0]))}")
    return reading


def _choose(run: _JsonRun, part: str | None) -> tuple[str, list[Path]]:
    """The format's name and the sections that hold its results."""
    paths = list(run.sections)
    skillret = [path for path in paths if len(path) == 2 and path[0] == "retrieval"]
    deep = [path for path in paths if len(path) == 2]
    if skillret and not run.has_meta:
        return "skillret-json", [_named(skillret, part, "split", default="test")]
    if run.has_meta or (deep and len(deep) == len(paths)):
        if not deep:
            raise Refusal("an MTEB file without results: expected {subset: {split: {query_id: {doc_id: score}}}}")
        return "mteb-json", [_named(deep, part, "subset and split")]
    if part is not None:
        raise Refusal(f"part {quote(part)} was named, but the file has no parts: leave the option out")
    if not paths:
        if run.loose:
            raise Refusal(run.loose[0])
        raise Refusal("the JSON has no rows: it is empty; expected {query_id: {tool_id: score}}")
    depths = {len(path) for path in paths}
    if depths == {0}:
        return "json", paths
    if depths == {1}:
        return "toolret-json", paths
    if len(depths) > 1:
        raise Refusal(
            "queries lie at different depths of the JSON "
            f"({' and '.join('under ' + quote(' > '.join(path)) if path else 'at the top' for path in paths[:2])}): "
            "expected {query_id: {tool_id: score}} or {task: {query_id: {tool_id: score}}} throughout"
        )
    raise Refusal("the JSON is nested too deep for a run: expected {query_id: {tool_id: score}}")


def _named(paths: Sequence[Path], part: str | None, noun: str, default: str | None = None) -> Path:
    """The section that ``part`` names, or the only one."""
    names = {"/".join(path): path for path in paths}
    if part is not None:
        for name, path in names.items():
            if part in (name, path[-1] if default else name):
                return path
        raise Refusal(f"the file has no part {quote(part)}; its parts are {listing(sorted(names))}")
    if len(paths) == 1:
        return paths[0]
    if default is not None:
        for path in paths:
            if path[-1] == default:
                return path
    raise Refusal(f"the file has several parts, {listing(sorted(names), 20)}: name one {noun} (part SUBSET/SPLIT)")


def _refuse_shared_queries(run: _JsonRun, chosen: list[Path], target: RunTarget) -> None:
    """A query must not occur in two tasks: which list would count?"""
    owner = np.full(len(target.queries), -1, dtype=np.int32)
    for number, path in enumerate(chosen):
        positions = run.sections[path].collector.query_positions()
        twice = positions[owner[positions] >= 0]
        if len(twice):
            other = chosen[int(owner[twice[0]])]
            raise Refusal(
                f"query {quote(target.queries[int(twice[0])])}"
                f" is in two tasks, {quote(other[0])} and {quote(path[0])}: keep one"
            )
        owner[positions] = number
