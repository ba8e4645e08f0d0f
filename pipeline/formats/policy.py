"""From rows to a run: what is refused, what is normalised, what is only worth knowing (SCORING §7)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pipeline.formats import ranking_kernel as kernel
from pipeline.formats.limits import Limits
from pipeline.formats.messages import plural, quote
from pipeline.formats.problems import SHOWN, ProblemLog
from pipeline.formats.ranking_hash import ranking_hash
from pipeline.formats.reading import Reading
from pipeline.formats.rows import Float32, Int32, Rows
from pipeline.run import Order, Run, RunTarget

Figures = npt.NDArray[np.int64]

#: Scores needed before "half precision" is more than a coincidence.
_HALF_PRECISION_ROWS = 20
#: Results a query should have, where the benchmark has that many tools.
_EXPECTED_DEPTH = 10


@dataclass
class Judgement:
    """What the rows amount to.

    Attributes:
        run: None when there are problems.
    """

    problems: ProblemLog
    run: Run | None = None
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Ranked:
    offsets: npt.NDArray[np.int64]
    tools: Int32
    scores: Float32
    figures: Figures


def judge(rows: Rows, target: RunTarget, reading: Reading, order: Order | None, limits: Limits) -> Judgement:
    """Rank the rows and apply the policy; notes go to ``reading``.

    Args:
        rows: rows with known ids.
        target: the benchmark.
        reading: what the format said; its notes and counts are extended.
        order: what the submitter declared.
        limits: for the depth.
    """
    judgement = Judgement(ProblemLog())
    offsets, row_order = kernel.group_by_query(rows.query, len(target.queries))
    _refuse_repeats(rows, target, offsets, row_order, judgement.problems)
    ranked = _rank(rows, offsets, row_order, order, target, reading, judgement.problems)
    reading.counts.setdefault("lines", len(rows))
    if judgement.problems.count or ranked is None:
        return judgement
    _finish(ranked, target, reading, limits, judgement, has_scores=rows.score is not None and order is not Order.RANK)
    return judgement


def _refuse_repeats(
    rows: Rows, target: RunTarget, offsets: npt.NDArray[np.int64], order: Int32, log: ProblemLog
) -> None:
    repeats = np.empty((64, 2), dtype=np.int32)
    count = kernel.repeated_rows(offsets, order, rows.tool, len(target.tools), repeats)
    if count > len(repeats):
        repeats = np.empty((count, 2), dtype=np.int32)
        kernel.repeated_rows(offsets, order, rows.tool, len(target.tools), repeats)
    repeats = repeats[:count]
    for first, second in repeats[np.argsort(repeats[:, 1], kind="stable")][:SHOWN].tolist():
        score = rows.score
        same = (
            "" if score is None else " with the same score" if score[first] == score[second] else " with another score"
        )
        where = (
            f" (first on line {rows.line[first] + 1})"
            if rows.line is not None and rows.line[first] != rows.line[second]
            else ""
        )
        log.add(
            f"duplicate result: query {quote(target.queries[rows.query[second]])} already has tool "
            f"{quote(target.tools[rows.tool[second]])}{where}, here{same}: keep one",
            int(rows.line[second]) + 1 if rows.line is not None else None,
        )
    log.add_unworded(max(0, count - SHOWN))


def _rank(
    rows: Rows,
    offsets: npt.NDArray[np.int64],
    row_order: Int32,
    order: Order | None,
    target: RunTarget,
    reading: Reading,
    log: ProblemLog,
) -> _Ranked | None:
    """Sort by what is declared, else by score, and judge ranks against scores."""
    score, rank = rows.score, rows.rank
    if order in (Order.SCORE, Order.DISTANCE) and score is None and len(rows):
        log.add(f'order "{order}" is declared, but the file has no scores: leave the order out, its lists are ranked')
        return None
    if order is Order.RANK and rank is None and len(rows):
        log.add('order "rank" is declared, but the file has no ranks: declare "score" or "distance"')
        return None
    if order is None and reading.distances:
        log.add(
            "the scores are in a column named distance: declare the order: "
            '"distance" if smaller is better, "score" if larger is better'
        )
        return None
    by_rank = score is None or order is Order.RANK
    if by_rank:
        score = (-rank.astype(np.float64)).astype(np.float32) if rank is not None else np.empty(0, dtype=np.float32)
    elif order is Order.DISTANCE and score is not None:
        score = -score
    assert score is not None
    figures: Figures = np.zeros((len(target.queries), kernel.FIGURES), dtype=np.int64)
    ranked = _Ranked(offsets, np.empty(len(rows), dtype=np.int32), np.empty(len(rows), dtype=np.float32), figures)
    kernel.rank_queries(
        offsets,
        row_order,
        rows.tool,
        score,
        rank if rank is not None else np.empty(0, dtype=np.int32),
        rank is not None,
        figures,
        ranked.tools,
        ranked.scores,
    )
    if rank is None or not len(rows):
        return ranked
    if by_rank:
        return _by_rank(rows, rank, ranked, target, reading, log, order)
    _judge_ranks(rows, ranked, target, reading, log, order)
    return ranked


def _by_rank(
    rows: Rows, rank: Int32, ranked: _Ranked, target: RunTarget, reading: Reading, log: ProblemLog, order: Order | None
) -> _Ranked:
    """The ranks define the order; scores stand in for them."""
    repeated = np.flatnonzero(ranked.figures[:, kernel.RANKS_REPEAT])
    if len(repeated):
        first = int(repeated[0])
        mine = np.flatnonzero(rows.query == first)
        values = rank[mine]
        _, counts = np.unique(values, return_counts=True)
        value = int(np.unique(values)[counts > 1][0])
        twice = mine[values == value]
        log.add(
            f"ranks define the order, but query {quote(target.queries[first])} has rank {value} more than once; "
            f"{plural(len(repeated), 'query has', 'queries have')}"
            f" equal ranks: number the results of a query 1, 2, 3, …",
            int(rows.line[twice[1]]) + 1 if rows.line is not None else None,
        )
    if rows.score is not None and order is Order.RANK:
        reading.normalised.append('ranked by its ranks (order "rank" declared); its scores were set aside')
    elif not reading.ranks_are_positions:
        reading.notes.append("no scores: ranked by its rank column")
    else:
        reading.notes.append("no scores: lists are ranked as they stand")
    # A float32 holds whole numbers to 2**24 only: number the places anew.
    starts = np.repeat(ranked.offsets[:-1], np.diff(ranked.offsets))
    places = np.arange(len(rows), dtype=np.int64) - starts + 1
    return replace(ranked, scores=(-places).astype(np.float32))


def _judge_ranks(
    rows: Rows, ranked: _Ranked, target: RunTarget, reading: Reading, log: ProblemLog, order: Order | None
) -> None:
    """The three order rules, and what is odd about the rank column."""
    figures, lengths = ranked.figures, np.diff(ranked.offsets)
    listed = lengths >= 2
    if not listed.any():
        return
    queries = int(np.count_nonzero(listed))
    if not (figures[:, kernel.RANKS_DIFFER] > 0).any():
        reading.normalised.append("the rank column is the same on every line of a query and was ignored")
        return
    disagree = np.flatnonzero(figures[:, kernel.DISAGREES])
    all_tied = bool((figures[listed, kernel.ALL_TIED] > 0).all())
    if order is not None:
        if len(disagree) or all_tied:
            where = f"in {plural(len(disagree), 'query', 'queries')} " if len(disagree) else ""
            reading.normalised.append(f'ranks {where}differ from the declared order "{order}" and were ignored')
    elif len(disagree) and bool((figures[listed, kernel.RISES] > 0).all()):
        log.add(
            f"scores rise with rank in every query ({queries:,} of {queries:,}):"
            f" they look like distances; declare the order: "
            '"distance" if smaller is better, "score" if larger is better, "rank" if the ranks are right'
        )
    elif len(disagree):
        worst = min(disagree.tolist(), key=lambda q: int(figures[q, kernel.WORSE_ROW]))
        better_score, better_rank = (int(figures[worst, place]) for place in (kernel.WORSE_ROW, kernel.BETTER_ROW))
        assert rows.score is not None
        assert rows.rank is not None
        word = "place" if reading.ranks_are_positions else "rank"
        log.add(
            f"in query {quote(target.queries[worst])} tool {quote(target.tools[rows.tool[better_score]])}"
            f" has the higher score "
            f"({_number(rows.score[better_score])} against {_number(rows.score[better_rank])}) but a worse {word} "
            f"({rows.rank[better_score]} against {rows.rank[better_rank]})"
            f" than {quote(target.tools[rows.tool[better_rank]])}; "
            f"scores and ranks disagree in {plural(len(disagree), 'query', 'queries')}: declare the order "
            '("score", "rank" or "distance")',
            int(rows.line[better_score]) + 1 if rows.line is not None else None,
        )
    elif all_tied:
        log.add(
            f"scores tie in every query ({queries:,} of {queries:,}) while ranks differ: declare the order "
            '("rank" if the ranks are right, "score" to break ties by tool id)'
        )
    if reading.ranks_are_positions:
        return
    low, high = figures[:, kernel.RANK_LOW], figures[:, kernel.RANK_HIGH]
    zero = int(np.count_nonzero(listed & (low == 0)))
    gaps = int(np.count_nonzero(listed & (low != 0) & ((low != 1) | (high - low + 1 != lengths))))
    repeats = int(np.count_nonzero(figures[:, kernel.RANKS_REPEAT]))
    if zero:
        reading.normalised.append(f"ranks start at 0 in {plural(zero, 'query', 'queries')}; ranking is by score")
    if repeats:
        reading.normalised.append(f"ranks repeat in {plural(repeats, 'query', 'queries')}; ranking is by score")
    elif gaps:
        reading.normalised.append(f"ranks have gaps in {plural(gaps, 'query', 'queries')}; ranking is by score")


def _number(value: np.float32) -> str:
    return np.format_float_positional(value, unique=True, trim="0") if 1e-4 <= abs(value) < 1e7 else str(value)


def _finish(
    ranked: _Ranked, target: RunTarget, reading: Reading, limits: Limits, judgement: Judgement, *, has_scores: bool
) -> None:
    """Truncate, hash, and note what is worth knowing."""
    offsets, tools, scores = ranked.offsets, ranked.tools, ranked.scores
    lengths = np.diff(offsets)
    total = len(target.queries)
    reading.counts.update(
        queries=int(np.count_nonzero(lengths)), rows=len(tools), depth=int(lengths.max(initial=0)), total_queries=total
    )
    flags = judgement.flags
    if reading.counts["depth"] > limits.depth:
        offsets, tools, scores, longer = kernel.truncate(offsets, tools, scores, limits.depth)
        flags.append("truncated")
        reading.normalised.append(
            f"{plural(longer, 'list was', 'lists were')} cut after the first {plural(limits.depth, 'result')}, "
            f"{len(ranked.tools) - len(tools):,} in all"
        )
    missing = total - reading.counts["queries"]
    if missing:
        flags.append(f"missing:{missing}")
        covered = f"{100 * (total - missing) / total:.1f} %"
        reading.notes.append(
            f"{missing:,} of {plural(total, 'query', 'queries')} missing: each scores 0 (coverage {covered})"
        )
    if 2 * missing > total:
        flags.append("partial")
        reading.notes.append("less than half of the queries answered: scored, but marked partial and not ranked")
    tied_queries = int(np.count_nonzero(ranked.figures[:, kernel.TIED_ROWS]))
    if has_scores and tied_queries:
        flags.append("ties")
        rows = int(ranked.figures[:, kernel.TIED_ROWS].sum())
        reading.notes.append(
            f"tied scores in {plural(tied_queries, 'query', 'queries')}"
            f" ({plural(rows, 'result')}): broken by tool id, descending"
        )
    expected = min(_EXPECTED_DEPTH, len(target.tools))
    shallow = int(np.count_nonzero((lengths > 0) & (lengths < expected)))
    if shallow:
        flags.append("shallow")
        reading.notes.append(f"{plural(shallow, 'query has', 'queries have')} fewer than {expected} results")
    if has_scores and len(scores) >= _HALF_PRECISION_ROWS:
        exact, fractions = kernel.half_precision(scores)
        if exact and 2 * fractions >= len(scores):
            flags.append("half_precision")
            reading.notes.append(
                "every score is a 16-bit float: ranks of close results may be lost; write scores as 32-bit floats"
            )
    if kernel.truth_on_top(offsets, tools, target.truth_offsets, target.truth_tools, len(target.tools)) and len(tools):
        flags.append("oracle_like")
        reading.notes.append("the ground truth is exactly on top of every list: flagged for review")
    judgement.run = Run(offsets, tools, scores + np.float32(0), ranking_hash(offsets, tools, target))
