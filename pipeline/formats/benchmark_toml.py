"""``benchmark.toml``: what a benchmark says of itself."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from pathlib import Path

from pipeline.benchmark import Average, BenchmarkInfo, Kind
from pipeline.formats.messages import quote
from pipeline.formats.source_table import ProblemList

SLUG = re.compile(r"[a-z0-9][a-z0-9._-]*")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")

_REQUIRED = ("slug", "title", "kind", "version", "licence", "source")
#: Longest description, in characters.
_LONGEST = 2000
_OPTIONAL = ("revision", "parents", "headline")


def read_benchmark_toml(path: Path, problems: ProblemList, notes: list[str]) -> BenchmarkInfo | None:
    """Read the file; faults go to ``problems`` (then the result is None), unknown keys to ``notes``."""
    try:
        entries = tomllib.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.add(f"{path.name}: not valid TOML ({error})")
        return None
    except RecursionError:
        problems.add(f"{path.name}: not readable TOML: its values are nested too deep")
        return None
    before = len(problems.entries)
    unknown = sorted(entries.keys() - {*_REQUIRED, *_OPTIONAL})
    if unknown:
        notes.append(f"{path.name}: unknown keys were left out: {', '.join(map(quote, unknown))}")
    texts = {}
    for key in (*_REQUIRED, "revision", "headline"):
        value = entries.get(key)
        if value is None and key in _REQUIRED:
            problems.add(f'{path.name}: the key {key} is missing; add {key} = "…"')
        elif value is not None and not isinstance(value, str):
            problems.add(f'{path.name}: {key} must be text, found {value!r}; write {key} = "{value}"')
        texts[key] = value if isinstance(value, str) else ""
    parents = entries.get("parents", [])
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        problems.add(f'{path.name}: parents must be a list of texts such as ["slug@version"], found {parents!r}')
        parents = []
    if texts["kind"] and texts["kind"] not in list(Kind):
        problems.add(f'{path.name}: kind is {quote(texts["kind"])}; write "tool" or "skill"')
    if texts["headline"] and texts["headline"] not in list(Average):
        problems.add(f'{path.name}: headline is {quote(texts["headline"])}; write "macro" or "micro"')
    for problem in name_problems(
        texts["slug"] if isinstance(entries.get("slug"), str) else "absent",
        texts["version"] if isinstance(entries.get("version"), str) else "absent",
    ):
        problems.add(f"{path.name}: {problem}")
    if len(problems.entries) > before:
        return None
    return BenchmarkInfo(
        slug=texts["slug"],
        title=texts["title"],
        kind=Kind(texts["kind"]),
        version=texts["version"],
        licence=texts["licence"],
        source=texts["source"],
        revision=texts["revision"],
        parents=tuple(parents),
        headline=Average(texts["headline"]) if texts["headline"] else None,
    )


def name_problems(slug: str, version: str) -> list[str]:
    """What is wrong with a slug and a version: both must fit into ``slug@version`` and a web address."""
    found = []
    if not SLUG.fullmatch(slug) or len(slug) > 100:
        found.append(
            f"slug is {quote(slug)}; use up to 100 of a-z, 0-9, '.', '_', '-', starting with a letter or digit"
        )
    if not VERSION.fullmatch(version) or len(version) > 100:
        found.append(
            f"version is {quote(version)}; use up to 100 letters, digits, '.', '_', '+', '-', "
            "starting with a letter or digit"
        )
    return found


def info_problems(info: BenchmarkInfo) -> list[str]:
    """What is wrong with names and descriptions: they are shown in lists, so none is without end."""
    found = name_problems(info.slug, info.version)
    texts = [("title", info.title), ("licence", info.licence), ("source", info.source), ("revision", info.revision)]
    for key, text in [*texts, *(("parents", parent) for parent in info.parents)]:
        if len(text) > _LONGEST or any(unicodedata.category(sign) == "Cs" for sign in text):
            found.append(f"{key} is {quote(text)}; use up to {_LONGEST:,} characters of valid UTF-8")
    return found


def write_benchmark_toml(info: BenchmarkInfo, path: Path) -> None:
    """Write the file; empty optional keys are left out."""
    entries = {
        "slug": info.slug,
        "title": info.title,
        "kind": str(info.kind),
        "version": info.version,
        "licence": info.licence,
        "source": info.source,
    }
    lines = [f"{key} = {_text(value)}" for key, value in entries.items()]
    if info.revision:
        lines.append(f"revision = {_text(info.revision)}")
    if info.parents:
        lines.append(f"parents = [{', '.join(map(_text, info.parents))}]")
    if info.headline:
        lines.append(f"headline = {_text(str(info.headline))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes, and DEL, which TOML wants escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
