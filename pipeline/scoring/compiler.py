"""Compile a benchmark: from polars frames of labels to the flat arrays of ``CompiledBenchmark``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import BenchmarkError
from pipeline.identifiers import IdTable
from pipeline.scoring.combination_kernel import build_combinations, canonical_order
from pipeline.scoring.compiled import CompiledBenchmark, EquivalentsBasis, IntArray, LongArray

#: Local ids fit uint16 up to this many distinct tools in one query's combinations.
SMALL_LOCAL = 1 << 16


def compile_benchmark(benchmark: Benchmark) -> CompiledBenchmark:
    """Compile every label of ``benchmark``.

    Only rows judged valid enter. Combinations are sets: a tool named twice in a row and a set named twice count
    once. C* comes first (it is added, and noted, where it is missing), then the others by RRF score, highest first
    and unknown ones last, equal ones by the bytes of their sorted tool ids: like the content hash, nothing depends on
    the order of rows.

    Raises:
        BenchmarkError: a label names an unknown query or tool, a query has no ground truth, or a set is empty.
    """
    queries = _Ids("query", benchmark.queries["query_id"])
    tools = _Ids("tool", benchmark.tools["tool_id"])
    order = queries.positions(benchmark.queries["query_id"], "queries")
    domain_names, domain_of = _categories(benchmark.queries["domain"], order)
    source_names, source_of = _categories(benchmark.queries["source"], order)

    truth_offsets, truth_tools = _sets(benchmark.ground_truth, queries, tools, "ground_truth")
    bare = np.flatnonzero(np.diff(truth_offsets) == 0)
    if len(bare):
        raise BenchmarkError(
            f"{len(bare)} queries have no ground truth", tuple(f"query {queries.table[int(q)]!r}" for q in bare)
        )
    is_valid = (pl.col("verdict") == Judgement.VALID.value).fill_null(False)
    valid = benchmark.combinations.filter(is_valid)
    others = benchmark.combinations.filter(~is_valid)
    rows = _ordered(*_rows(valid, queries, tools, "combinations"), _rrf_scores(valid, queries))
    built = build_combinations(len(queries.table), len(tools.table), truth_offsets, truth_tools, *rows)
    local_offsets, local_tools, block_offsets, block_sizes, block_members, combination_offsets, members, held = built
    added = int(np.count_nonzero(~held & (np.diff(rows[0]) > 0)))
    notes = (f"the ground truth was added to the combinations of {added} queries that lacked it",) if added else ()
    widest = int(np.diff(local_offsets).max(initial=0))
    labels = _Labels(benchmark, queries, tools, truth_offsets, truth_tools)
    local_keys = labels.keys(_owners(local_offsets), local_tools)
    if benchmark.equivalents.height:
        basis = EquivalentsBasis.VERIFIED
        outside = np.unique(labels.equivalent_keys)
    else:
        basis = EquivalentsBasis.COMBINATIONS
        outside = local_keys[~labels.in_truth(local_keys)]
        outside.sort()
    other_offsets, other_tools = _row_sets(others, queries, tools)
    judged = np.unique(
        np.concatenate([local_keys, labels.judged_keys, labels.keys(_owners(other_offsets), other_tools)])
    )
    outside_offsets, outside_tools = labels.split(outside)
    judged_offsets, judged_tools = labels.split(judged)
    return CompiledBenchmark(
        name=f"{benchmark.info.slug}@{benchmark.info.version}",
        content_hash=benchmark.content_hash,
        headline=benchmark.info.effective_headline,
        domain_names=domain_names,
        source_names=source_names,
        equivalents_basis=basis,
        notes=notes,
        queries=queries.table,
        tools=tools.table,
        domain_of=domain_of,
        source_of=source_of,
        truth_offsets=truth_offsets,
        truth_tools=truth_tools,
        local_offsets=local_offsets,
        local_tools=local_tools,
        block_offsets=block_offsets,
        block_sizes=block_sizes,
        block_members=block_members,
        combination_offsets=combination_offsets,
        members=members.astype(np.uint16 if widest <= SMALL_LOCAL else np.uint32),
        subquery_offsets=labels.subquery_offsets,
        equivalent_offsets=labels.equivalent_offsets,
        equivalent_tools=labels.equivalent_tools,
        outside_offsets=outside_offsets,
        outside_tools=outside_tools,
        judged_offsets=judged_offsets,
        judged_tools=judged_tools,
    )


class _Ids:
    """Sorted ids of one kind, and their positions for whole columns at once."""

    def __init__(self, kind: str, ids: pl.Series) -> None:
        self.kind = kind
        sorted_ids = ids.sort()
        try:
            self.table = IdTable.from_ids(sorted_ids.to_list())
        except ValueError as error:
            raise BenchmarkError(f"a {kind} {error}") from error
        self._lookup = pl.DataFrame({"id": sorted_ids, "position": np.arange(len(sorted_ids), dtype=np.int32)})

    def positions(self, ids: pl.Series, where: str) -> IntArray:
        """Position of each id; raises ``BenchmarkError`` on an unknown one."""
        found = ids.rename("id").to_frame().join(self._lookup, on="id", how="left", maintain_order="left")
        unknown = found.filter(pl.col("position").is_null())["id"]
        if len(unknown):
            raise BenchmarkError(
                f"{where} names {unknown.n_unique()} unknown {self.kind} ids",
                tuple(f"{self.kind} {identifier!r}" for identifier in unknown.unique(maintain_order=True)),
            )
        return np.array(found["position"].to_numpy(), dtype=np.int32)


def _categories(values: pl.Series, order: IntArray) -> tuple[tuple[str, ...], IntArray]:
    names = values.fill_null("").unique(maintain_order=True)
    index = values.fill_null("").replace_strict(names, np.arange(len(names), dtype=np.int32), return_dtype=pl.Int32)
    out = np.empty(len(order), dtype=np.int32)
    out[order] = index.to_numpy()
    return tuple(names), out


def _owners(offsets: LongArray) -> LongArray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _offsets(counts: npt.NDArray[np.integer]) -> LongArray:
    out = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def _rows(frame: pl.DataFrame, queries: _Ids, tools: _Ids, where: str) -> tuple[LongArray, LongArray, IntArray]:
    """Rows of tool lists grouped by query, in row order.

    Returns:
        Offsets of each query's rows, offsets of each row's tools, positions of the tools.
    """
    owner = queries.positions(frame["query_id"], where)
    order = np.argsort(owner, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        frame = frame[order]
    sizes = frame["tool_ids"].list.len().fill_null(0).to_numpy()
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise BenchmarkError(
            f"{where} has {len(empty)} empty tool sets",
            tuple(f"query {query!r}" for query in frame["query_id"].gather(empty)),
        )
    flat = tools.positions(frame["tool_ids"].explode() if len(sizes) else pl.Series([], dtype=pl.String), where)
    return _offsets(np.bincount(owner, minlength=len(queries.table))), _offsets(sizes), flat


def _rrf_scores(frame: pl.DataFrame, queries: _Ids) -> npt.NDArray[np.float64]:
    """RRF scores of rows grouped by query as in ``_rows``; −inf where unknown."""
    order = np.argsort(queries.positions(frame["query_id"], "combinations"), kind="stable")
    scores: npt.NDArray[np.float64] = frame["rrf_score"].fill_nan(None).fill_null(-np.inf).to_numpy()[order]
    return scores


def _ordered(
    row_offsets: LongArray, item_offsets: LongArray, items: IntArray, rrf: npt.NDArray[np.float64]
) -> tuple[LongArray, LongArray, IntArray]:
    """The same rows with ascending tools, in canonical order within each query."""
    order = canonical_order(row_offsets, item_offsets, items, rrf)
    sizes = np.diff(item_offsets)[order]
    moved = _offsets(sizes)
    places = np.repeat(item_offsets[:-1][order] - moved[:-1], sizes) + np.arange(len(items))
    return row_offsets, moved, items[places]


def _row_sets(frame: pl.DataFrame, queries: _Ids, tools: _Ids) -> tuple[LongArray, IntArray]:
    """All tools of each query's rows, repeats included (rows that do not count may well be empty)."""
    frame = frame.filter(pl.col("tool_ids").list.len() > 0)
    rows, items, flat = _rows(frame, queries, tools, "combinations")
    return items[rows], flat


def _sets(frame: pl.DataFrame, queries: _Ids, tools: _Ids, where: str) -> tuple[LongArray, IntArray]:
    """One set of tools a query, distinct, in label order."""
    rows, items, flat = _rows(frame, queries, tools, where)
    repeated = np.flatnonzero(np.diff(rows) > 1)
    if len(repeated):
        raise BenchmarkError(
            f"{where} has more than one row for {len(repeated)} queries",
            tuple(f"query {queries.table[int(q)]!r}" for q in repeated),
        )
    owner = _owners(items[rows])
    _, first = np.unique(owner * len(tools.table) + flat, return_index=True)
    first.sort()
    return _offsets(np.bincount(owner[first], minlength=len(queries.table))), flat[first]


class _Labels:
    """Stage-2 verdicts as sorted (query, tool) keys, and the equivalents of each sub-query."""

    def __init__(
        self, benchmark: Benchmark, queries: _Ids, tools: _Ids, truth_offsets: LongArray, truth_tools: IntArray
    ) -> None:
        self._queries, self._tools = len(queries.table), len(tools.table)
        self._truth = np.sort(self.keys(_owners(truth_offsets), truth_tools))
        frame = benchmark.equivalents.filter(pl.col("verdict").is_in([Judgement.VALID.value, Judgement.INVALID.value]))
        owner = queries.positions(frame["query_id"], "equivalents").astype(np.int64)
        position = frame["position"].to_numpy().astype(np.int64)
        if len(position) and position.min() < 0:
            raise BenchmarkError("equivalents has a negative sub-query position; positions count from 0")
        tool = tools.positions(frame["tool_id"], "equivalents")
        self.judged_keys = self.keys(owner, tool)

        stated = queries.positions(benchmark.subqueries["query_id"], "subqueries")
        counts = np.bincount(stated, minlength=self._queries)
        counts = np.where(counts > 0, counts, np.diff(truth_offsets))
        np.maximum.at(counts, owner, position + 1)
        self.subquery_offsets = _offsets(counts)

        outside = (frame["verdict"] == Judgement.VALID.value).to_numpy() & ~self.in_truth(self.judged_keys)
        subquery = self.subquery_offsets[owner[outside]] + position[outside]
        pairs = np.unique(subquery * self._tools + tool[outside])
        self.equivalent_keys = self.judged_keys[outside]
        width = max(self._tools, 1)
        self.equivalent_offsets = _offsets(np.bincount(pairs // width, minlength=int(self.subquery_offsets[-1])))
        self.equivalent_tools = (pairs % width).astype(np.int32)

    def keys(self, owner: npt.NDArray[np.integer], tool: IntArray) -> LongArray:
        """One sortable number for each (query, tool)."""
        return owner.astype(np.int64) * self._tools + tool

    def in_truth(self, keys: LongArray) -> npt.NDArray[np.bool_]:
        """Which keys belong to C*."""
        return np.isin(keys, self._truth)

    def split(self, keys: LongArray) -> tuple[LongArray, IntArray]:
        """Sorted distinct keys as offsets a query and tool positions."""
        width = max(self._tools, 1)
        return _offsets(np.bincount(keys // width, minlength=self._queries)), (keys % width).astype(np.int32)
