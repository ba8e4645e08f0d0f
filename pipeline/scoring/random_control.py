"""How much lift random labels would give: the size-matched control of SCORING §3.

The best over more combinations is never lower, whatever the combinations are. The control keeps every query's
combinations in number, size and overlap, and replaces each tool outside C* by a random one that is no valid answer.
Its lift is what the structure alone gives; only what exceeds it speaks for the labels.
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.run import Run
from pipeline.scoring.averages import SUMMARY, average_of, scopes
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.discounts import check_cutoffs
from pipeline.scoring.kernel import METRICS, evaluate
from pipeline.scoring.random_words import STEP, below, mix, stream
from pipeline.scoring.scores import DEFAULT_CUTOFFS

REPETITIONS = 100
SEED = 55_117

#: ``lift`` is new minus old, ``control`` the mean lift over the repetitions with random labels, ``control_low`` and
#: ``control_high`` the range that holds the middle 95 % of them, ``excess`` lift minus control.
RANDOM_CONTROL = {
    **{name: SUMMARY[name] for name in ("metric", "k", "average", "domain")},
    "lift": pl.Float64,
    "control": pl.Float64,
    "control_low": pl.Float64,
    "control_high": pl.Float64,
    "excess": pl.Float64,
    "n": pl.Int64,
}


def random_control(
    compiled: CompiledBenchmark,
    run: Run,
    cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS,
    *,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
) -> pl.DataFrame:
    """The lift of one run beside its control, for all metrics and cutoffs.

    Args:
        compiled: the labels.
        run: the ranked run.
        cutoffs: any set of 1 ≤ K ≤ 1,000.
        repetitions: random label sets.
        seed: of the draws.

    Returns:
        Columns of ``RANDOM_CONTROL``; ``average`` is ``macro``, ``micro`` or ``domain``. Empty without queries.
    """
    depths = check_cutoffs(cutoffs)
    if len(compiled.queries) == 0:
        return pl.DataFrame(schema=RANDOM_CONTROL)
    own = evaluate(compiled, run, depths)
    controls = np.zeros((repetitions, len(METRICS), len(depths), len(compiled.domain_names)))
    sizes = np.bincount(compiled.domain_of, minlength=len(compiled.domain_names))
    for repetition in range(repetitions):
        drawn = evaluate(random_labels(compiled, repetition, seed), run, depths)
        controls[repetition] = _domain_means(drawn.new - drawn.old, compiled.domain_of, sizes)
    lift = own.new - own.old
    weights = {"macro": np.full(len(sizes), 1 / len(sizes)), "micro": sizes / sizes.sum()}
    rows = []
    for j, k in enumerate(depths):
        for m, metric in enumerate(METRICS):
            for average, domain, weighing, chosen in scopes(compiled):
                by_domain = controls[:, m, j]
                values = (
                    by_domain @ weights[average]
                    if domain is None
                    else by_domain[:, compiled.domain_names.index(domain)]
                )
                low, high = np.percentile(values, [2.5, 97.5]).tolist()
                control = float(values.mean())
                own_lift = average_of(lift[m, j][chosen], compiled.domain_of[chosen], weighing)
                n = int(chosen.sum())
                rows.append((metric, k, average, domain, own_lift, control, low, high, own_lift - control, n))
    return pl.DataFrame(rows, schema=RANDOM_CONTROL, orient="row")


def random_labels(compiled: CompiledBenchmark, repetition: int, seed: int = SEED) -> CompiledBenchmark:
    """The same labels with every tool outside C* replaced by a random one, the same one wherever it occurs in a query.

    Tools are drawn without repetition from those that are no valid answer to the query; where the library has too few
    of them, from all outside C*. Only what ``evaluate`` reads is changed: facts and equivalents keep the true labels.
    """
    tools = compiled.local_tools.copy()
    _replace(
        compiled.truth_offsets,
        compiled.local_offsets,
        compiled.outside_offsets,
        compiled.outside_tools,
        tools,
        len(compiled.tools),
        np.uint64(seed),
        np.uint64(repetition),
    )
    return replace(compiled, local_tools=tools)


def _domain_means(
    values: npt.NDArray[np.float64], domain_of: npt.NDArray[np.int32], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Means by domain; (metrics, cutoffs, domains)."""
    flat = values.reshape(-1, values.shape[2])
    means = np.array([np.bincount(domain_of, weights=row, minlength=len(sizes)) for row in flat]) / sizes
    return means.reshape(*values.shape[:2], len(sizes))


@numba.njit(cache=True, nogil=True)
def _replace(truth_offsets, local_offsets, outside_offsets, outside_tools, local_tools, tools, seed, repetition):  # type: ignore[no-untyped-def]
    # What may not be drawn for the query at hand: its number, or the next one's once it is drawn.
    taken = np.full(tools, -1, dtype=np.int64)
    counter = stream(seed, repetition)
    for q in range(len(local_offsets) - 1):
        start, end = local_offsets[q], local_offsets[q + 1]
        first = start + truth_offsets[q + 1] - truth_offsets[q]
        if first == end:
            continue
        relevant = 0
        for i in range(start, end):
            taken[local_tools[i]] = q
            relevant += 1
        for i in range(outside_offsets[q], outside_offsets[q + 1]):
            if taken[outside_tools[i]] != q:
                taken[outside_tools[i]] = q
                relevant += 1
        if tools - relevant < end - first:
            for i in range(first, end):
                taken[local_tools[i]] = -1
            for i in range(outside_offsets[q], outside_offsets[q + 1]):
                taken[outside_tools[i]] = -1
        for i in range(first, end):
            while True:
                counter += STEP
                tool = np.int64(below(mix(counter), np.uint64(tools)))
                if taken[tool] != q:
                    break
            taken[tool] = q
            local_tools[i] = tool
