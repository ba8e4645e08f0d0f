"""What the rules of MFTR's deterministic standardizer fill, source by source, as Markdown tables.

    python benchmarks/mftr_standardize.py [--shared ../shared]

First the share of documents in which each field is filled, with the formats found and the speed of one process; then
the parameters and required flags recovered of the published language model standardization (apibank). Shares say what
the documents state, not how good the rules are: a source whose documents name no result cannot have one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pipeline.formats.tables import TableFormat, write_table
from pipeline.mftr.coverage import field_coverage, parameter_recovery
from pipeline.mftr.files import read_standardized
from pipeline.mftr.rules import RULES_VERSION, sniff, standardize
from pipeline.mftr.schema import Field, StandardizedTool


def documents(shared: Path) -> Iterator[tuple[str, str, str]]:
    """(source, id, document) of every tool and skill."""
    with gzip.open(shared / "data" / "tools.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            yield row["source"], row["id"], row["documentation"]
    with gzip.open(shared / "data" / "skills" / "skills.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            yield "skills", row["id"], row["skill_md"]


def coverage_row(source: str, rows: list[tuple[str, str]]) -> dict[str, object]:
    """One line of the coverage table."""
    started = time.process_time()
    tools = [standardize(tool_id, text) for tool_id, text in rows]
    seconds = time.process_time() - started
    found = field_coverage(tools)
    formats = Counter(sniff(text).format for _, text in rows).most_common(2)
    required = f"{100 * found.required / found.parameters:.1f}" if found.parameters else None
    return (
        {"source": source, "documents": found.tools}
        | {f"{field} %": f"{100 * found.share(field):.1f}" for field in Field}
        | {"parameters a tool": f"{found.parameters / found.tools:.2f}", "of them required %": required}
        | {"formats": ", ".join(f"{name.value} {count:,}" for name, count in formats)}
        | {"documents a second": f"{found.tools / max(seconds, 1e-9):,.0f}"}
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Measure the rules of MFTR's deterministic standardizer.")
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="folder of the real inputs")
    shared = parser.parse_args().shared
    by_source: dict[str, list[tuple[str, str]]] = {}
    for source, tool_id, text in documents(shared):
        by_source.setdefault(source, []).append((tool_id, text))

    print(f"Rules version {RULES_VERSION}\n\nFields filled\n")
    rows = [coverage_row(source, found) for source, found in by_source.items()]
    print(write_table(pl.DataFrame(rows), TableFormat.MARKDOWN))

    published = read_standardized(shared / "data" / "mftr" / "standardized_tools_apibank.jsonl").tools
    ours: list[StandardizedTool] = [standardize(tool_id, text) for tool_id, text in by_source["apibank"]]
    found = parameter_recovery(ours, published)
    print("\nParameters of apibank against the published language model standardization\n")
    recovery = {
        "published": found.reference,
        "recovered": f"{found.recovered} ({100 * found.recovered / found.reference:.1f} %)",
        "with the same required flag": f"{found.same_flag} ({100 * found.same_flag / found.reference:.1f} %)",
        "optional recovered as optional": f"{found.optional_found} of {found.optional}",
        "ours only": found.extra,
    }
    print(write_table(pl.DataFrame([recovery]), TableFormat.MARKDOWN))


if __name__ == "__main__":
    main()
