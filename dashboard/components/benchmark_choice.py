"""Choosing a benchmark version: titles and counts to read, the stable ``slug@version`` in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dashboard.components import permalinks
from dashboard.components.numbers import whole
from store.records import BenchmarkRecord

#: Why a page does not offer the version that a link names.
MISSING = "there is no such version here, or not with what this page needs of it"


def descriptions(records: Sequence[BenchmarkRecord], *, brief: bool = False) -> dict[str, str]:
    """``slug@version`` → ``ToolEq · 7 360 queries · 43 215 tools``; the version too where a title occurs twice.

    Args:
        records: what is offered.
        brief: titles alone, for a phone.
    """
    titles = Counter(record.title for record in records)
    said = {}
    for record in records:
        title = record.title if titles[record.title] == 1 else f"{record.title} ({record.name})"
        counts = f" · {whole(record.queries)} queries · {whole(record.tools)} {record.kind}s"
        said[record.name] = title if brief else title + counts
    return said


def first_with_queries(records: Sequence[BenchmarkRecord]) -> str:
    """Where pages on single queries start: at the board that the leaderboard starts with where its queries are stored.

    Else at a tool benchmark with queries, a real one before a demo; figures alone only where there is nothing else.
    """
    return min(
        records,
        key=lambda record: (not record.has_content, record.slug != "tooleq", record.is_demo, record.kind != "tool"),
    ).name


def choose_version(
    records: Sequence[BenchmarkRecord], key: str, first: str, *, brief: bool = False, **how: Any
) -> BenchmarkRecord:
    """Draw a select box of benchmark versions.

    Args:
        records: what is offered, at least one.
        key: name of the query parameter.
        first: ``slug@version`` to start with.
        brief: titles alone.
        how: further arguments of ``st.selectbox``; ``label`` among them.
    """
    by_name = {record.name: record for record in records}
    said = descriptions(records, brief=brief)
    label = how.pop("label", "Benchmark and version")
    return by_name[
        permalinks.described_select(
            label, list(by_name), key, first, describe=lambda name: said[name], missing=MISSING, **how
        )
    ]
