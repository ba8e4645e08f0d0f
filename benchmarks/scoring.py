"""From a run file to every score at the paper's scale, against pytrec_eval in the same process.

    python benchmarks/scoring.py [--make-scale PATH] [--data FOLDER] [--combinations 39087 …] [--depth 1000]

``make_scale.py`` writes the data: 7,360 queries, 43,000 tools, runs of depth 100. Missing data is built first.

The peer does what is usually done for one-to-many labels: parse the run, evaluate once for each combination index
(the n-th combination of every query that has one) and keep each query's best. It is spared what it need not do:
label dictionaries and the part of the run that each index needs are made before the clock starts, and it computes
no Comp, no averages, no facts and no validation report. Times are the best of several repetitions in a warm process.

Targets: the whole job 8 times and evaluation alone 500 times faster than the peer; 3.9 million combinations under a
second; a run of 7.36 million lines under 1.5 GB.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.formats.run_file import read_run
from pipeline.jobs.folder_cache import compiled_folder
from pipeline.run import Run
from pipeline.scoring.averages import scores_json, summarise
from pipeline.scoring.compiled import CompiledBenchmark
from pipeline.scoring.kernel import evaluate
from pipeline.scoring.scores import DEFAULT_CUTOFFS, score_run

REPOSITORY = Path(__file__).resolve().parent.parent
PAPER_SCALE = 39_087
Results = dict[str, dict[str, float]]


def best_time(work: Callable[[], object], repetitions: int) -> float:
    """Shortest of several runs, in seconds, with the garbage collector quiet."""
    times = []
    for _ in range(repetitions):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        gc.enable()
    return min(times)


def ready(folder: Path, make_scale: Path | None, combinations: int, depth: int) -> Path:
    """The data folder, built if it is not there."""
    if not (folder / "run_0.trec").exists():
        if make_scale is None or not make_scale.is_file():
            print("No data here, and no make_scale.py to make it: name one with --make-scale PATH. Nothing measured.")
            raise SystemExit(0)
        print(f"building {folder.name} …", flush=True)
        sizes = ["--combinations", str(combinations), "--depth", str(depth)]
        subprocess.run([sys.executable, make_scale, folder, *sizes], check=True, stdout=subprocess.DEVNULL)
    return folder


def compiled_of(folder: Path) -> CompiledBenchmark:
    """The labels, from the cache beside the data."""
    return compiled_folder(folder, folder.parent / "compiled")


def reading_of(compiled: CompiledBenchmark, folder: Path) -> Run:
    """The run file, read and validated."""
    reading = read_run(folder / "run_0.trec", compiled.target)
    if reading.run is None:
        raise SystemExit(f"the run was refused: {reading.report.problems}")
    return reading.run


def whole_job(folder: Path) -> dict[str, object]:
    """What ``equirank score`` does: labels from the cache, run file, every score, fact and average."""
    compiled = compiled_of(folder)
    return scores_json(summarise(score_run(compiled, reading_of(compiled, folder)), compiled))


class Peer:
    """pytrec_eval, once per combination index."""

    def __init__(self, folder: Path) -> None:
        frame = pl.read_ndjson(
            folder / "combinations.jsonl", schema={"query_id": pl.String, "tool_ids": pl.List(pl.String)}
        )
        grouped = frame.group_by("query_id", maintain_order=True).agg("tool_ids")
        self.qrels: list[dict[str, dict[str, int]]] = []
        for query, sets in grouped.iter_rows():
            for index, tools in enumerate(sets):
                if index == len(self.qrels):
                    self.qrels.append({})
                self.qrels[index][query] = dict.fromkeys(tools, 1)
        listed = ",".join(map(str, DEFAULT_CUTOFFS))
        self.measures = {f"ndcg_cut.{listed}", f"recall.{listed}"}
        self.path = folder / "run_0.trec"
        self.parts: list[Results] = []

    def parse(self) -> Results:
        """The run file as nested dictionaries."""
        import pytrec_eval

        with self.path.open() as lines:
            run: Results = pytrec_eval.parse_run(lines)
        return run

    def prepare(self, run: Results) -> None:
        """Cut the run to the queries of each index, outside the clock."""
        self.parts = [{query: run[query] for query in qrels if query in run} for qrels in self.qrels]

    def evaluate(self) -> Results:
        """Each query's best value of each measure."""
        import pytrec_eval

        best: Results = {}
        for qrels, part in zip(self.qrels, self.parts, strict=True):
            for query, values in pytrec_eval.RelevanceEvaluator(qrels, self.measures).evaluate(part).items():
                kept = best.get(query)
                if kept is None:
                    best[query] = values
                else:
                    for measure, value in values.items():
                        if value > kept[measure]:
                            kept[measure] = value
        return best


def largest_difference(compiled: CompiledBenchmark, run: Run, theirs: Results) -> float:
    """Largest difference to the peer over all queries, NDCG and recall, and cutoffs."""
    new = evaluate(compiled, run, DEFAULT_CUTOFFS).new
    peer = [
        [[theirs.get(query, {}).get(f"{name}_{k}", 0.0) for query in compiled.queries.ids] for k in DEFAULT_CUTOFFS]
        for name in ("ndcg_cut", "recall")
    ]
    return float(np.abs(new[:2] - np.array(peer)).max())


def measure_speed(folder: Path, repetitions: int, with_peer: bool) -> None:
    """Print times, and ratios to the peer."""
    compiled = compiled_of(folder)
    run = reading_of(compiled, folder)
    whole_job(folder)
    print(f"\n{int(compiled.combination_offsets[-1]):,} combinations, {len(run.tools):,} lines")
    labels = best_time(lambda: compiled_of(folder), repetitions)
    parse = best_time(lambda: reading_of(compiled, folder), repetitions)
    kernel = best_time(lambda: evaluate(compiled, run, DEFAULT_CUTOFFS), 5 * repetitions)
    scored = best_time(lambda: summarise(score_run(compiled, run), compiled), repetitions)
    whole = best_time(lambda: whole_job(folder), repetitions)
    print(f"  labels from the cache              {labels * 1e3:10.1f} ms")
    print(f"  run file, read and validated       {parse * 1e3:10.1f} ms")
    print(f"  evaluation (24 scores a query)     {kernel * 1e3:10.2f} ms")
    print(f"  evaluation, facts and averages     {scored * 1e3:10.1f} ms")
    print(f"  whole job                          {whole * 1e3:10.1f} ms")
    if not with_peer:
        return
    peer = Peer(folder)
    peer_parse = best_time(peer.parse, max(2, repetitions // 2))
    peer.prepare(peer.parse())
    theirs = peer.evaluate()
    peer_loop = best_time(peer.evaluate, max(2, repetitions // 2))
    print(f"  pytrec_eval: parse                 {peer_parse * 1e3:10.1f} ms")
    print(f"  pytrec_eval: {len(peer.qrels):4} evaluations, best  {peer_loop * 1e3:10.1f} ms")
    print(f"  largest difference                 {largest_difference(compiled, run, theirs)!r:>10}")
    print(f"  whole job                          {(peer_parse + peer_loop) / whole:10.1f} times faster (target 8)")
    print(f"  evaluation alone                   {peer_loop / kernel:10.0f} times faster (target 500)")


def measure_memory(folder: Path) -> None:
    """Print time and peak memory of a whole job in a process of its own."""
    compiled_of(folder)
    command = [sys.executable, __file__, "--one-job", str(folder)]
    outcome = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    size = (folder / "run_0.trec").stat().st_size / 1e6
    print(f"\n{outcome['lines']:,} lines ({size:,.0f} MB), in a process of its own")
    print(f"  whole job                          {outcome['seconds'] * 1e3:10.0f} ms")
    print(f"  peak memory                        {outcome['peak'] / 1e9:10.2f} GB (target 1.5)")


def one_job(folder: Path) -> None:
    """The measured process of ``measure_memory``."""
    start = time.perf_counter()
    compiled = compiled_of(folder)
    run = reading_of(compiled, folder)
    summarise(score_run(compiled, run), compiled)
    seconds = time.perf_counter() - start
    print(json.dumps({"lines": len(run.tools), "seconds": seconds, "peak": peak_bytes()}))


def peak_bytes() -> int:
    """Peak resident memory of this process.

    On Linux not ``getrusage``: that starts at the peak of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Read the options and measure."""
    shared = Path(os.environ.get("EQUIRANK_SHARED", REPOSITORY.parent / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make-scale", type=Path, default=shared / "checks" / "make_scale.py")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "equirank-scale")
    parser.add_argument("--combinations", type=int, nargs="*", default=[PAPER_SCALE, 390_870, 3_908_700])
    parser.add_argument("--depth", type=int, default=1000, help="depth of the large run; 0 leaves it out")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--one-job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_job:
        one_job(options.one_job)
        return
    options.data.mkdir(parents=True, exist_ok=True)
    for combinations in options.combinations:
        folder = ready(options.data / f"c{combinations}", options.make_scale, combinations, 100)
        measure_speed(folder, options.repetitions, with_peer=combinations <= PAPER_SCALE)
    if options.depth:
        folder = ready(options.data / f"d{options.depth}", options.make_scale, PAPER_SCALE, options.depth)
        measure_memory(folder)


if __name__ == "__main__":
    main()
