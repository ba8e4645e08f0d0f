"""Rows of the published MFTR files, checked value by value with the place of every fault."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pipeline.errors import MftrError
from pipeline.formats.json_lines import JsonFault, iterate_json_rows, parse_json
from pipeline.formats.messages import quote
from pipeline.formats.source_table import ProblemList, place

#: A whole number beyond it counts nothing here.
_LARGEST = 1_000_000
#: Faults that a message lists.
_SHOWN = 20
_KINDS = {bool: "a truth value", int: "a number", float: "a number", dict: "an object", list: "a list", str: "text"}


class RowFault(MftrError):
    """What is wrong with one row, in words."""


class RowReader:
    """The objects of a file, one after another, with the faults found on the way.

    Args:
        path: ``.jsonl`` or ``.jsonl.gz`` with one object a line; ``.json`` with a list of objects or a single one;
            or a folder of such files, as the published repository keeps one a tool.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems = ProblemList()
        self._seen: dict[str, str] = {}
        self._where = ""

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(id, object) of every row that has an id of its own.

        Raises:
            MftrError: the file cannot be opened.
        """
        for path in self._files():
            for where, row in self._objects(path):
                self._where = where
                try:
                    identifier = text(row, "id")
                    if not identifier:
                        raise RowFault('the id is ""; every row needs one of its own')
                    if identifier in self._seen:
                        raise RowFault(
                            f"the id {quote(identifier)} is that of {self._seen[identifier]} too; keep one row"
                        )
                except RowFault as fault:
                    self.refuse(fault)
                    continue
                self._seen[identifier] = where
                yield identifier, row

    def refuse(self, fault: RowFault) -> None:
        """Note a fault of the row read last."""
        self._problems.add(f"{self._where}: {fault}")

    def raise_if_any(self, what: str) -> None:
        """Refuse the file when anything was noted.

        Raises:
            MftrError: with the first twenty faults and their places.
        """
        faults = [entry[3] for entry in self._problems.entries]
        if not faults:
            return
        more = f"\n  … and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
        listed = "".join(f"\n  {fault}" for fault in faults[:_SHOWN])
        raise MftrError(f"{self._path.name} cannot be read as {what}:{listed}{more}")

    def _files(self) -> Sequence[Path]:
        if not self._path.exists():
            raise MftrError(f"there is no file {self._path}")
        if not self._path.is_dir():
            return (self._path,)
        files = sorted(path for path in self._path.iterdir() if path.name.endswith((".json", ".jsonl", ".jsonl.gz")))
        if not files:
            raise MftrError(f"the folder {self._path} holds no .json or .jsonl file")
        return files

    def _objects(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            if path.suffix == ".json":
                yield from self._listed(path)
                return
            for line, row in iterate_json_rows(path, self._problems):
                yield place(path.name, line), row
        except OSError as error:
            raise MftrError(f"{path} cannot be read ({error.strerror or error})") from None

    def _listed(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            value = parse_json(path.read_bytes())
        except JsonFault as fault:
            self._problems.add(f"{path.name}: {fault}; write a list of objects")
            return
        for number, row in enumerate(value if isinstance(value, list) else [value], start=1):
            where = f"{path.name}, item {number}" if isinstance(value, list) else path.name
            if isinstance(row, dict):
                yield where, row
            else:
                self._problems.add(f"{where}: expected an object, found {shown(row)}")


def shown(value: object) -> str:
    """A value in a message: what it is, and how it begins."""
    if value is None:
        return "null"
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"{_KINDS.get(type(value), 'a value')}: {quote(written)}"


def text(row: Mapping[str, Any], key: str, where: str = "") -> str:
    """The text under a key.

    Raises:
        RowFault: it is missing or no text.
    """
    return cast("str", _typed(row, key, where, str, "text"))


def number(row: Mapping[str, Any], key: str) -> int | None:
    """The whole number under a key; None when the key is missing or null.

    Raises:
        RowFault: it is something else.
    """
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise RowFault(f"{key} must be a whole number from 0 to {_LARGEST:,}, found {shown(value)}")
    return value


def mapping(row: Mapping[str, Any], key: str, where: str = "") -> dict[str, Any]:
    """The object under a key.

    Raises:
        RowFault: it is missing or no object.
    """
    return cast("dict[str, Any]", _typed(row, key, where, dict, "an object"))


def objects(row: Mapping[str, Any], key: str, where: str = "") -> list[dict[str, Any]]:
    """The list of objects under a key.

    Raises:
        RowFault: it is missing, no list, or holds something else.
    """
    values = cast("list[dict[str, Any]]", _typed(row, key, where, list, "a list"))
    for place_in_list, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise RowFault(f"{_path(where, key)}, entry {place_in_list}: expected an object, found {shown(value)}")
    return values


def _typed(row: Mapping[str, Any], key: str, where: str, kind: type, name: str) -> Any:
    if key not in row:
        raise RowFault(f"{_path(where, key)} is missing; it must be {name}")
    value = row[key]
    if not isinstance(value, kind):
        raise RowFault(f"{_path(where, key)} must be {name}, found {shown(value)}")
    return value


def _path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
