"""Which rows of a run are tools of a given kind for their query: judged, relevant, or any other set."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from pipeline.run import Run
from pipeline.scoring.compiled import CompiledBenchmark


def judged_rows(compiled: CompiledBenchmark, run: Run) -> npt.NDArray[np.bool_]:
    """Which rows hold a tool that was judged for the query; bool (rows,)."""
    return _rows_in(run, compiled, compiled.judged_offsets, compiled.judged_tools)


def relevant_rows(compiled: CompiledBenchmark, run: Run) -> npt.NDArray[np.bool_]:
    """Which rows hold a tool of C*, of any valid combination, or a verified equivalent; bool (rows,)."""
    in_combination = _rows_in(run, compiled, compiled.local_offsets, compiled.local_tools)
    return in_combination | _rows_in(run, compiled, compiled.outside_offsets, compiled.outside_tools)


def _rows_in(
    run: Run, compiled: CompiledBenchmark, set_offsets: npt.NDArray[np.int64], set_tools: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    out = np.zeros(len(run.tools), dtype=np.bool_)
    _mark(run.offsets, run.tools, len(compiled.tools), set_offsets, set_tools, out)
    return out


@numba.njit(cache=True, nogil=True)
def _mark(run_offsets, run_tools, tools, set_offsets, set_tools, out):  # type: ignore[no-untyped-def]
    last_query = np.full(tools, -1, dtype=np.int32)
    for q in range(len(run_offsets) - 1):
        for i in range(set_offsets[q], set_offsets[q + 1]):
            last_query[set_tools[i]] = q
        for row in range(run_offsets[q], run_offsets[q + 1]):
            out[row] = last_query[run_tools[row]] == q
