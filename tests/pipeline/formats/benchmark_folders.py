"""Small benchmark folders written by tests, one fault at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any] | str]

TOML = 'slug = "tiny"\ntitle = "Tiny"\nkind = "tool"\nversion = "1"\nlicence = "CC0"\nsource = "written for a test"\n'
TOOLS: Rows = [
    {
        "tool_id": f"t{i}",
        "documentation": f'{{"name": "tool {i}"}}',
        "name": f"tool {i}",
        "domain": "web",
        "source": "s",
    }
    for i in range(5)
]
QUERIES: Rows = [
    {"query_id": "q0", "text": "first", "instruction": "", "domain": "web", "source": "s"},
    {"query_id": "q1", "text": "second", "instruction": "", "domain": "code", "source": "s"},
]
GROUND_TRUTH: Rows = [{"query_id": "q0", "tool_ids": ["t0", "t1"]}, {"query_id": "q1", "tool_ids": ["t2"]}]


def subquery(query: str, position: int, tool: str, text: str = "need") -> dict[str, Any]:
    return {"query_id": query, "position": position, "text": text, "tool_id": tool}


def equivalent(query: str, position: int, tool: str, verdict: str = "valid", origin: str = "judged") -> dict[str, Any]:
    return {"query_id": query, "position": position, "tool_id": tool, "verdict": verdict, "origin": origin}


def combination(query: str, *tools: str, verdict: str = "valid", **more: Any) -> dict[str, Any]:
    return {"query_id": query, "tool_ids": list(tools), "verdict": verdict, **more}


def write_rows(path: Path, rows: Rows) -> Path:
    """Write rows as JSON lines; a text is written as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


def write_folder(path: Path, toml: str = TOML, **tables: Rows) -> Path:
    """A sound folder, with the given tables instead of or besides its own."""
    path.mkdir(parents=True)
    (path / "benchmark.toml").write_text(toml, encoding="utf-8")
    for name, rows in ({"tools": TOOLS, "queries": QUERIES, "ground_truth": GROUND_TRUTH} | tables).items():
        write_rows(path / f"{name}.jsonl", rows)
    return path
