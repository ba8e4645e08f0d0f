"""Compile a benchmark: from polars frames of labels to the flat arrays of ``CompiledBenchmark``."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Benchmark, Judgement
from pipeline.errors import BenchmarkError
from pipeline.identifiers import IdTable
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
    built = _build_combinations(len(queries.table), len(tools.table), truth_offsets, truth_tools, *rows)
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
    order = _canonical_order(row_offsets, item_offsets, items, rrf)
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


@numba.njit(cache=True, nogil=True, inline="always")
def _comes_first(a, b, item_offsets, items, rrf):  # type: ignore[no-untyped-def]
    """Whether row a stands before row b, or they are equal: RRF score descending, then ascending tools."""
    if rrf[a] != rrf[b]:
        return rrf[a] > rrf[b]
    i, j = item_offsets[a], item_offsets[b]
    while i < item_offsets[a + 1] and j < item_offsets[b + 1]:
        if items[i] != items[j]:
            return items[i] < items[j]
        i += 1
        j += 1
    return j < item_offsets[b + 1] or i == item_offsets[a + 1]


@numba.njit(cache=True, nogil=True)
def _canonical_order(row_offsets, item_offsets, items, rrf):  # type: ignore[no-untyped-def]
    """Sort the tools of every row in place, and merge-sort the rows of every query."""
    for row in range(len(item_offsets) - 1):
        for i in range(item_offsets[row] + 1, item_offsets[row + 1]):
            item = items[i]
            k = i
            while k > item_offsets[row] and items[k - 1] > item:
                items[k] = items[k - 1]
                k -= 1
            items[k] = item
    order = np.arange(len(item_offsets) - 1)
    spare = order.copy()
    for q in range(len(row_offsets) - 1):
        first, last = row_offsets[q], row_offsets[q + 1]
        width = 1
        while width < last - first:
            for left in range(first, last, 2 * width):
                middle, right = min(left + width, last), min(left + 2 * width, last)
                i, j = left, middle
                for k in range(left, right):
                    if j == right or (i < middle and _comes_first(order[i], order[j], item_offsets, items, rrf)):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            order[first:last] = spare[first:last]
            width *= 2
    return order


@numba.njit(cache=True, nogil=True)
def _build_combinations(queries, tools, truth_offsets, truth_tools, row_offsets, item_offsets, items):  # type: ignore[no-untyped-def]
    """Local ids, deduplicated combinations (C* first) and blocks of equal size, query by query."""
    most_items = len(items) + len(truth_tools)
    most_rows = len(item_offsets) - 1 + queries
    local_offsets = np.zeros(queries + 1, dtype=np.int64)
    local_tools = np.empty(most_items, dtype=np.int32)
    block_offsets = np.zeros(queries + 1, dtype=np.int64)
    block_sizes = np.empty(most_rows, dtype=np.int32)
    block_members = np.zeros(most_rows + 1, dtype=np.int64)
    combination_offsets = np.zeros(queries + 1, dtype=np.int64)
    members = np.empty(most_items, dtype=np.uint32)
    held = np.zeros(queries, dtype=np.bool_)
    local_of = np.full(tools, -1, dtype=np.int64)
    most = 1
    for q in range(queries):
        most = max(most, row_offsets[q + 1] - row_offsets[q] + 1)
    capacity = 16
    while capacity < 2 * most:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int64)
    starts = np.empty(most + 1, dtype=np.int64)
    locals_made, blocks_made, members_made, combinations_made = 0, 0, 0, 0
    for q in range(queries):
        first_local = locals_made
        first_block = blocks_made
        rows = row_offsets[q + 1] - row_offsets[q]
        size = 16
        while size < 2 * (rows + 1):
            size *= 2
        slots[:size] = -1
        kept = 0
        for row in range(-1, rows):
            if row < 0:
                start, end, source = truth_offsets[q], truth_offsets[q + 1], truth_tools
            else:
                start, end, source = item_offsets[row_offsets[q] + row], item_offsets[row_offsets[q] + row + 1], items
            begin = members_made
            stop = begin
            for i in range(start, end):
                tool = source[i]
                if local_of[tool] < 0:
                    local_of[tool] = locals_made - first_local
                    local_tools[locals_made] = tool
                    locals_made += 1
                local = local_of[tool]
                # Insertion into ascending order, leaving out repeats: a combination is a set.
                place = stop
                while place > begin and members[place - 1] > local:
                    place -= 1
                if place > begin and members[place - 1] == local:
                    continue
                for k in range(stop, place, -1):
                    members[k] = members[k - 1]
                members[place] = local
                stop += 1
            key = np.uint64(14695981039346656037)
            for i in range(begin, stop):
                key = (key ^ np.uint64(members[i])) * np.uint64(1099511628211)
            key ^= key >> np.uint64(29)
            slot = np.int64(key & np.uint64(size - 1))
            repeated = False
            while slots[slot] >= 0:
                other = slots[slot]
                length = starts[other + 1] - starts[other]
                if length == stop - begin:
                    repeated = True
                    for i in range(length):
                        if members[starts[other] + i] != members[begin + i]:
                            repeated = False
                            break
                    if repeated:
                        if other == 0:
                            held[q] = True
                        break
                slot = (slot + 1) & (size - 1)
            if repeated:
                continue
            slots[slot] = kept
            starts[kept] = begin
            starts[kept + 1] = stop
            if blocks_made == first_block or block_sizes[blocks_made - 1] != stop - begin:
                block_sizes[blocks_made] = stop - begin
                blocks_made += 1
            block_members[blocks_made] = stop
            members_made = stop
            kept += 1
        for i in range(first_local, locals_made):
            local_of[local_tools[i]] = -1
        combinations_made += kept
        local_offsets[q + 1] = locals_made
        block_offsets[q + 1] = blocks_made
        combination_offsets[q + 1] = combinations_made
    return (
        local_offsets,
        local_tools[:locals_made].copy(),
        block_offsets,
        block_sizes[:blocks_made].copy(),
        block_members[: blocks_made + 1].copy(),
        combination_offsets,
        members[:members_made].copy(),
        held,
    )
