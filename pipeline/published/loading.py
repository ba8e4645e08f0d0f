"""Published rows and figures, checked against each other when they are first read."""

from __future__ import annotations

from collections import Counter
from functools import cache

from pipeline.errors import BenchmarkError
from pipeline.published.catalogue import benchmarks, methods, papers, retrievers
from pipeline.published.figures import all_figures
from pipeline.published.records import PublishedFigure, PublishedRow
from pipeline.published.remarks import Remark, remarks
from pipeline.published.tables import mftr_table_2, mftr_table_3, toolex_table_2, toolex_table_3


@cache
def rows() -> tuple[PublishedRow, ...]:
    """Every published leaderboard row, in the papers' order; (benchmark, retriever, method) is unique.

    The Full-Doc and MFTR rows of MFTR's Table 3 repeat its Table 2 and appear once, under Table 2.

    Raises:
        BenchmarkError: the data files contradict themselves or each other.
    """
    main = (*toolex_table_2(), *toolex_table_3(), *mftr_table_2())
    known = {_identity(row): row for row in main}
    ablation = tuple(mftr_table_3())
    problems = [
        f"MFTR Table 3 differs from Table 2: {' / '.join(_identity(row))}"
        for row in ablation
        if (twin := known.get(_identity(row))) is not None
        and row.value("old", "NDCG", "micro") != twin.value("old", "NDCG", "micro")
    ]
    everything = (*main, *(row for row in ablation if _identity(row) not in known))
    _refuse(problems + check_rows(everything) + _check_remarks(everything, all_figures()))
    return everything


@cache
def figures() -> tuple[PublishedFigure, ...]:
    """Every printed figure that is no leaderboard cell.

    Raises:
        BenchmarkError: the data files contradict themselves or each other.
    """
    _refuse(check_figures(all_figures()))
    return all_figures()


def check_rows(everything: tuple[PublishedRow, ...]) -> list[str]:
    """Problems of rows: unknown names, repeated rows, values outside [0, 1], domains the benchmark lacks."""
    domains = {benchmark.slug: benchmark.domains for benchmark in benchmarks()}
    keys = {retriever.key for retriever in retrievers()}
    known_methods = {method.key for method in methods()}
    problems = _check_catalogue()
    problems += [f"{' / '.join(i)} occurs {n} times" for i, n in Counter(map(_identity, everything)).items() if n > 1]
    for row in everything:
        where = f"{row.place}, {' / '.join(_identity(row))}"
        if row.benchmark not in domains:
            problems.append(f"{where}: unknown benchmark")
            continue
        if row.retriever not in keys:
            problems.append(f"{where}: unknown retriever")
        if row.method not in known_methods:
            problems.append(f"{where}: unknown method")
        for cell in row.values:
            if cell.value is not None and not 0 <= cell.value <= 1:
                problems.append(f"{where}: {cell.metric} {cell.view} is {cell.value}, outside [0, 1]")
            if not cell.computed and cell.value != cell.printed_value:
                problems.append(f"{where}: {cell.metric} {cell.view} is {cell.value}, printed {cell.printed!r}")
            if (cell.average == "domain") != (cell.domain in domains[row.benchmark]):
                problems.append(f"{where}: domain {cell.domain!r} is not one of {domains[row.benchmark]}")
    return problems


def check_figures(everything: tuple[PublishedFigure, ...]) -> list[str]:
    """Problems of figures: repeated keys, unknown names, counts that differ from the benchmark's."""
    slugs = {benchmark.slug for benchmark in benchmarks()} | {""}
    keys = {retriever.key for retriever in retrievers()} | {""}
    known_papers = {paper.key for paper in papers()}
    problems = [f"figure {key} occurs {n} times" for key, n in Counter(f.key for f in everything).items() if n > 1]
    problems += [
        f"figure {figure.key}: unknown paper, benchmark or retriever"
        for figure in everything
        if figure.paper not in known_papers or figure.benchmark not in slugs or figure.retriever not in keys
    ]
    for benchmark in benchmarks():
        printed = {int(f.value) for f in benchmark.statistics if f.value is not None and f.value == int(f.value)}
        # ToolEX does not print the size of its tool library, and of SkillEq's only outside Table 1.
        counts = {n: c for n, c in benchmark.counts.items() if benchmark.paper.key != "ToolEX" or n != "tools"}
        problems += [
            f"{benchmark.slug}: {count} {name} is not in Table 1"
            for name, count in counts.items()
            if count not in printed
        ]
    return problems


def _check_catalogue() -> list[str]:
    keys = [retriever.key for retriever in retrievers()]
    slugs = {benchmark.slug for benchmark in benchmarks()}
    problems = [f"retriever {key} occurs {n} times" for key, n in Counter(keys).items() if n > 1]
    for retriever in retrievers():
        if retriever.base is not None and retriever.base not in keys:
            problems.append(f"retriever {retriever.key}: base {retriever.base} is unknown")
        problems += [f"retriever {retriever.key}: benchmark {b} is unknown" for b in set(retriever.trained_on) - slugs]
        if {*retriever.trained_on.values(), retriever.trained_on_any} - {"yes", "no", "unknown"}:
            problems.append(f"retriever {retriever.key}: trained_on must be yes, no or unknown")
    return problems


def _check_remarks(everything: tuple[PublishedRow, ...], printed: tuple[PublishedFigure, ...]) -> list[str]:
    """A remark that belongs to nothing is a typing error."""
    used = {figure.key for figure in printed if figure.note}

    def belongs(remark: Remark) -> bool:
        wanted = dict(remark.wanted)
        if "figure" in wanted:
            return set(wanted["figure"]) <= used
        notes = (note for row in everything for note in (*row.notes, *(cell.note for cell in row.values)))
        return any(remark.text in note for note in notes)

    return [f"remark {remark.text!r} belongs to nothing" for remark in remarks() if not belongs(remark)]


def _identity(row: PublishedRow) -> tuple[str, str, str]:
    return row.benchmark, row.retriever, row.method


def _refuse(problems: list[str]) -> None:
    if problems:
        raise BenchmarkError("The bundled published figures are inconsistent; reinstall EquiRank.", tuple(problems))
