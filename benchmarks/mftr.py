"""MFTR measured: ``v2`` against ``paper`` against Full-Doc, under one label a query and under all valid combinations.

    python benchmarks/mftr.py [CORPUS …] [--data ../shared] [--models bm25s minilm-l6] [--seeds N] [--rows CORPUS …]
                              [--work mftr-work] [--cache embeddings]

Corpora (default all), with the texts that are compared:

apibank                         standardized documents and rewritten queries as published
apibank-rules                   documents standardized by rules, queries as they are
gorilla-huggingface             by rules; queries as they are
gorilla-huggingface-rewritten   by rules; rewritten queries as published
gorilla-tensor                  by rules; queries as they are; combinations by "identical api_call"
apigen                          by rules; queries as they are
apigen-rewritten                by rules; rewritten queries as published
bfcl                            by rules; queries as they are; combinations by "BFCL"

``--data`` holds ``data`` and ``checks/make_benchmark.py``, which writes the benchmark folders into ``--work`` where
they are missing. MiniLM encodes by the ``paper`` preset on the MFTR paper's own datasets and by ``card`` elsewhere, as
in ``illusion.md``. MFTR is trained in five folds and every query is ranked by the weights that never saw it; a query's
score is its mean over seeds (of folds, initial weights and order) from 42 on: three, and one for apigen and bfcl.

``revised`` is ``v2`` with fields unscaled and with the full charge on rewritten queries without arguments: what is
left of ``v2`` without the two rows that cost most on the training folds of apibank. It is not a preset.

Intervals: 95 %, stratified paired bootstrap over queries, the trained weights held fixed. p: two-sided sign-flip
randomisation test; beside it Holm's adjustment over all tests of the table. NDCG and Recall are @10, in points.

``--rows`` also measures single rows of ``v2`` on the corpora named. Every finished measurement is kept in ``--work``
under the hash of what decides it, every embedding in ``--cache``; a stopped run goes on where it was. Tables go to
standard output, progress to standard error. Ends with status 1 if the preset that ``preset_by_measurement`` chooses
from all corpora is not the one in use.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

# One thread: two of them on a busy machine wait for each other more than they compute.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.benchmark import Average
from pipeline.formats.benchmark_folder import read_benchmark_folder
from pipeline.formats.tables import TableFormat, write_table
from pipeline.mftr.dense_fields import encode_fields
from pipeline.mftr.field_kernels import best_tools
from pipeline.mftr.field_scores import FieldScorer, chunks, field_scores
from pipeline.mftr.fields import QueryFields, ToolFields, query_fields, tool_fields
from pipeline.mftr.files import read_rewritten, read_standardized
from pipeline.mftr.folds import query_folds, training_queries
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters
from pipeline.mftr.lexical_fields import Bm25Fields
from pipeline.mftr.negatives import hard_negatives
from pipeline.mftr.rules import RULES_VERSION
from pipeline.mftr.rules.standardize import standardize
from pipeline.mftr.schema import original_query
from pipeline.mftr.search import combine
from pipeline.mftr.settings import (
    DEFAULT_PRESET,
    PAPER,
    V2,
    AbsentField,
    EmptyArguments,
    FieldScale,
    MftrSettings,
    preset_by_measurement,
)
from pipeline.mftr.training import labels_of, train, training_scores
from pipeline.retrieval.documents import documents_in_order, queries_in_order, run_target
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import ModelSpec, resolve_model
from pipeline.retrieval.progress import Progress, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.retrieve import retrieve
from pipeline.run import Run
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.holm import holm
from pipeline.scoring.kernel import evaluate
from pipeline.scoring.randomization import paired_test, shrink_test
from pipeline.scoring.statistics import Interval, difference_interval, illusion_intervals

REPOSITORY = Path(__file__).resolve().parent.parent
K = 10
#: The two metrics' places in ``Evaluation``.
METRICS = {"NDCG": 0, "Recall": 1}
#: float64 (2 metrics, 2 views: old and new, queries).
Scores = npt.NDArray[np.float64]

#: Single rows of the preset ``v2``: put into ``paper``, and taken out of ``v2``.
ROWS = {
    "paper": PAPER,
    "paper + absent fields imputed": replace(PAPER, absent_field=AbsentField.CORPUS_MEAN),
    "paper + no charge without arguments": replace(PAPER, empty_arguments=EmptyArguments.NO_PENALTY),
    "paper + parameter scores scaled": replace(PAPER, scaled_lexical_parameters=True, tau_clamped=False),
    "paper + fields scaled": replace(PAPER, field_scale=FieldScale.Z_SCORE),
    "paper + equivalents no negatives": replace(PAPER, equivalents_removed=True),
    "paper + w ≥ 0": replace(PAPER, nonnegative=True),
    "v2": V2,
    "v2 − no charge without arguments": replace(V2, empty_arguments=EmptyArguments.FULL_PENALTY),
    "v2 − fields scaled": replace(V2, field_scale=FieldScale.RAW),
    "v2 + w ≥ 0": replace(V2, nonnegative=True),
    "v2 − both": replace(V2, empty_arguments=EmptyArguments.FULL_PENALTY, field_scale=FieldScale.RAW),
}


@dataclass(frozen=True)
class Corpus:
    """What is measured.

    Attributes:
        source: of tools and queries in the data.
        basis: what makes tools equivalent there; "" for one label a query.
        published_tools: whether documents are standardized as published, else by rules.
        rewritten: whether queries are rewritten as published, else as they are.
        encoding: MiniLM's preset.
        seeds: of each training; many queries vary less between them and take long.
    """

    source: str
    basis: str = ""
    published_tools: bool = False
    rewritten: bool = False
    encoding: str = "paper"
    seeds: int = 3


#: Small ones first.
CORPORA = {
    "apibank": Corpus("apibank", published_tools=True, rewritten=True),
    "apibank-rules": Corpus("apibank"),
    "gorilla-huggingface": Corpus("gorilla-huggingface"),
    "gorilla-huggingface-rewritten": Corpus("gorilla-huggingface", rewritten=True),
    "gorilla-tensor": Corpus("gorilla-tensor", basis="identical api_call", encoding="card"),
    "apigen": Corpus("apigen", seeds=1),
    "apigen-rewritten": Corpus("apigen", rewritten=True, seeds=1),
    "bfcl": Corpus("bfcl", basis="BFCL", encoding="card", seeds=1),
}


class Measurement:
    """One corpus: its benchmark, its texts and what they score.

    Args:
        name: of the corpus.
        data: holds ``data`` and ``checks``.
        work: benchmark folders and finished measurements.
        cache: embeddings.
        seeds: of each training; 0 for the corpus's own number.
    """

    def __init__(self, name: str, data: Path, work: Path, cache: FolderEmbeddingCache, seeds: int = 0) -> None:
        self.name, self.corpus = name, CORPORA[name]
        self._data, self._work, self._cache = data, work, cache
        self.seeds = seeds or self.corpus.seeds
        self.benchmark = read_benchmark_folder(self._folder())
        self.target, self.compiled = run_target(self.benchmark), compile_benchmark(self.benchmark)
        self._scorers: dict[str, FieldScorer] = {}
        self._files = hashlib.sha256()
        for path in (self._published / "rewritten_queries.jsonl", self._standardized):
            self._files.update(path.read_bytes())

    @property
    def _published(self) -> Path:
        return self._data / "data" / "mftr"

    @property
    def _standardized(self) -> Path:
        return self._published / "standardized_tools_apibank.jsonl"

    def _folder(self) -> Path:
        folder = self._work / "benchmarks" / self.corpus.source
        if not (folder / "ground_truth.jsonl").exists():
            script = self._data / "checks" / "make_benchmark.py"
            basis = ["--basis", self.corpus.basis] if self.corpus.basis else []
            subprocess.run(
                [
                    sys.executable,
                    script,
                    self._data / "data",
                    folder.parent,
                    folder.name,
                    "--source",
                    folder.name,
                    *basis,
                ],
                check=True,
                stdout=sys.stderr,
            )
        return folder

    @property
    def one_to_many(self) -> bool:
        """Whether old and new scores can differ."""
        return bool(self.corpus.basis)

    @property
    def average(self) -> Average:
        """Of the headline figure."""
        return self.benchmark.info.effective_headline

    @cached_property
    def fields(self) -> tuple[ToolFields, QueryFields]:
        """Tools and queries in fields."""
        if self.corpus.published_tools:
            tools = tool_fields(read_standardized(self._standardized).tools, self.target.tools)
        else:
            documents = documents_in_order(self.benchmark, self.target)
            tools = ToolFields([standardize(i, text) for i, text in zip(self.target.tools.ids, documents, strict=True)])
        if self.corpus.rewritten:
            read = read_rewritten(self._published / "rewritten_queries.jsonl")
            mine = [q for q in read.queries if read.beside[q.query_id].get("dataset") == self.corpus.source]
            return tools, query_fields(mine, self.target.queries)
        texts, _ = queries_in_order(self.benchmark, self.target)
        return tools, QueryFields([original_query(i, t) for i, t in zip(self.target.queries.ids, texts, strict=True)])

    def scorer(self, model: ModelSpec) -> FieldScorer:
        """φ; encodes what the cache lacks."""
        if model.entry.key not in self._scorers:
            tools, queries = self.fields
            if not model.entry.dense:
                self._scorers[model.entry.key] = Bm25Fields(tools, queries)
            else:
                contract = model.contract(self.corpus.encoding)
                self._scorers[model.entry.key] = encode_fields(
                    tools, queries, model, contract, self._cache, progress=told(self.name)
                )
        return self._scorers[model.entry.key]

    def full_doc(self, model: ModelSpec) -> Scores:
        """Each query's scores by the verbatim document."""
        return self._kept(model, "full-doc", lambda: self._full_doc(model))

    def mftr(self, model: ModelSpec, settings: MftrSettings) -> tuple[Scores, Scores]:
        """Each query's scores by the weights that never saw it, and by those that learned from it: means over seeds.

        The second says how well settings suit the training folds, whatever the tested ones are like.
        """
        what = f"{settings.contract_hash('rules ' + RULES_VERSION)} {self.seeds}"
        found = self._kept(model, what, lambda: self._mftr(model, settings))
        return found[0], found[1]

    def _kept(self, model: ModelSpec, what: str, measure: Callable[[], Scores]) -> Scores:
        contract = model.contract(self._encoding(model))
        parts = ["1", self.name, self.benchmark.content_hash, self._files.hexdigest(), contract.hash, what]
        path = self._work / "scores" / f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()}.npy"
        if path.exists():
            kept: Scores = np.load(path)
            return kept
        wall, own = time.perf_counter(), time.process_time()
        found = measure()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            np.save(out, found)
        part.replace(path)
        tell(
            f"{self.name} {model.entry.key} {what[:8]}: {time.perf_counter() - wall:.0f} s, "
            f"{time.process_time() - own:.0f} s of them computing"
        )
        return found

    def _encoding(self, model: ModelSpec) -> str:
        return self.corpus.encoding if model.entry.dense else "card"

    def _full_doc(self, model: ModelSpec) -> Scores:
        found = retrieve(
            self.benchmark,
            model,
            "full-doc",
            self._encoding(model),
            depth=K,
            cache=self._cache,
            progress=told(self.name),
        )
        return self._scored(found.run)

    def _mftr(self, model: ModelSpec, settings: MftrSettings) -> Scores:
        scorer, labels = self.scorer(model), labels_of(self.target)
        negatives = hard_negatives(self.benchmark, self.target, settings)
        seen = training_scores(scorer, settings, labels, negatives, progress=told(self.name))
        folds, of = [], []
        for seed in range(42, 42 + self.seeds):
            seeded = replace(settings, seed=seed)
            of.append(query_folds(len(labels), seeded))
            for fold in range(settings.folds):
                learns = training_queries(fold, of[-1], labels, seeded)
                folds.append(train(seen, learns, seeded, fold=fold)[0])
        by_fold = self._by_fold(scorer, settings, folds)
        tested, learned = [], []
        for seed, fold_of in enumerate(of):
            mine = by_fold[seed * settings.folds : (seed + 1) * settings.folds]
            apart = fold_of == np.arange(settings.folds)[:, None]
            tested.append(np.where(apart[:, None, None, :], mine, 0).sum(axis=0))
            learned.append(np.where(apart[:, None, None, :], 0, mine).sum(axis=0) / (settings.folds - 1))
        return np.array([np.mean(tested, axis=0), np.mean(learned, axis=0)])

    def _by_fold(self, scorer: FieldScorer, settings: MftrSettings, folds: Sequence[LearnedParameters]) -> Scores:
        """Scores of all queries by each fold's parameters; fields are scored once for all of them."""
        ranked = [Rankings.empty(len(scorer.queries), min(K, len(scorer.tools))) for _ in folds]
        stage = Stage("search", len(scorer.queries), told(self.name))
        for start, end in chunks(scorer):
            scores, rows = field_scores(scorer, settings, start, end), slice(start, end)
            for fold, found in enumerate(ranked):
                alike = LearnedFolds(tuple(folds), np.full(len(scorer.queries), fold, dtype=np.int64))
                totals = combine(scorer, settings, alike, scores)
                best_tools(totals, found.tools[rows], found.scores[rows], found.counts[rows])
            stage.advance(end - start)
        for found in ranked:
            found.counts[~scorer.queries.answerable] = 0
        return np.array([self._scored(found.run(self.target)) for found in ranked])

    def _scored(self, run: Run) -> Scores:
        found = evaluate(self.compiled, run, (K,))
        return np.array([[found.old[m, 0], found.new[m, 0]] for m in METRICS.values()])


def tell(line: str) -> None:
    """Say it on standard error."""
    print(line, file=sys.stderr, flush=True)


def told(name: str) -> ProgressCallback:
    """Progress on standard error, a line every 20 s."""
    last = time.monotonic()

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= 20:
            last = time.monotonic()
            tell(f"{name}: {progress.stage} {progress.done:,} of {progress.total:,}")

    return report


def revised(corpus: Corpus) -> MftrSettings:
    """``v2`` without what cost most on the training folds of apibank.

    Fields stay as they are, and a query without arguments is charged where somebody looked for arguments: an empty
    list then says that the tool needs none. An original query says nothing of them and is not charged.
    """
    charge = EmptyArguments.FULL_PENALTY if corpus.rewritten else EmptyArguments.NO_PENALTY
    return replace(V2, field_scale=FieldScale.RAW, empty_arguments=charge)


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores of one corpus and retriever."""

    at: Measurement
    model: str
    full_doc: Scores
    paper: Scores
    v2: Scores
    revised: Scores

    @property
    def views(self) -> list[tuple[int, str]]:
        """Place and name of the labels that can differ."""
        return [(0, "one"), (1, "all valid")] if self.at.one_to_many else [(0, "one")]

    def row(self, labels: str = "") -> dict[str, str]:
        """What begins a table's row."""
        return {"corpus": self.at.name, "retriever": self.model} | ({"labels": labels} if labels else {})


def points(interval: Interval) -> str:
    """A difference in points with its interval."""
    assert interval.value is not None, "a difference is never undefined"
    assert interval.low is not None
    assert interval.high is not None
    return f"{100 * interval.value:+.2f} [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}]"


def percent(interval: Interval) -> str:
    """A share in percent; — where it is undefined."""
    if interval.value is None:
        return "— (no gain under one label)"
    ends = ["—" if end is None else f"{100 * end:.0f}" for end in (interval.low, interval.high)]
    return f"{100 * interval.value:.0f} % [{ends[0]}, {ends[1]}]"


def adjusted(rows: list[dict[str, str]], columns: Sequence[str]) -> list[dict[str, str]]:
    """Holm's values beside the p values of some columns, all of one family."""
    order = [(row, column) for row in rows for column in columns]
    raw = [float(row[column]) for row, column in order]
    for (row, column), p, wider in zip(order, raw, holm(raw), strict=True):
        row[column] = f"{small(p)} / {small(wider)}"
    return rows


def small(p: float) -> str:
    """A p value with four digits."""
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def scores_table(found: Sequence[Measured]) -> list[dict[str, str]]:
    """NDCG and Recall of each."""
    rows = []
    for one in found:
        for view, labels in one.views:
            row = one.row(labels) | {"queries": f"{one.full_doc.shape[-1]:,}", "seeds": str(one.at.seeds)}
            for name, scores in (
                ("Full-Doc", one.full_doc),
                ("paper", one.paper),
                ("v2", one.v2),
                ("revised", one.revised),
            ):
                row[name] = " / ".join(f"{100 * scores[m, view].mean():.2f}" for m in METRICS.values())
            rows.append(row)
    return rows


def difference_table(
    found: Sequence[Measured], before: Callable[[Measured], Scores], after: Callable[[Measured], Scores]
) -> tuple[list[dict[str, str]], list[float]]:
    """(rows, lower ends of NDCG's intervals) of a difference."""
    rows, lows = [], []
    for one in found:
        for view, labels in one.views:
            row = one.row(labels)
            for metric, place in METRICS.items():
                pair = (before(one)[place, view], after(one)[place, view])
                interval = difference_interval(*pair, one.at.compiled.domain_of, one.at.average)
                row[metric] = points(interval)
                row[f"p / Holm {metric}"] = str(paired_test(*pair, one.at.compiled.domain_of, one.at.average).p)
                if metric == "NDCG":
                    assert interval.low is not None
                    lows.append(interval.low)
            rows.append(row)
    return adjusted(rows, [f"p / Holm {metric}" for metric in METRICS]), lows


def survival_table(found: Sequence[Measured]) -> list[dict[str, str]]:
    """MFTR's gain over Full-Doc in NDCG under both kinds of labels, on one-to-many corpora."""
    rows = []
    for one in found:
        if not one.at.one_to_many:
            continue
        for name, scores in (("paper", one.paper), ("v2", one.v2), ("revised", one.revised)):
            rows_of = (one.full_doc[0, 0], one.full_doc[0, 1], scores[0, 0], scores[0, 1])
            split = illusion_intervals(*rows_of, one.at.compiled.domain_of, one.at.average)
            p = shrink_test(*rows_of, one.at.compiled.domain_of, one.at.average).p
            rows.append(
                one.row()
                | {"preset": name, "gain, one label": points(split.gain_old), "gain, all valid": points(split.gain_new)}
                | {"illusion share": percent(split.share), "p / Holm of the change": str(p)}
            )
    return adjusted(rows, ["p / Holm of the change"])


def rows_table(at: Measurement, model: ModelSpec) -> list[dict[str, str]]:
    """Single rows of ``v2``, tested and on the training folds."""
    rows = []
    for name, settings in ROWS.items():
        tested, learned = at.mftr(model, settings)
        view = 1 if at.one_to_many else 0
        row = {"corpus": at.name, "retriever": model.entry.key, "settings": name}
        for title, scores in (("tested", tested), ("training folds", learned)):
            row[title] = " / ".join(f"{100 * scores[m, view].mean():.2f}" for m in METRICS.values())
        rows.append(row)
    return rows


def show(title: str, rows: list[dict[str, str]]) -> None:
    """Print a table, if it has rows."""
    if rows:
        print(f"## {title}\n\n{write_table(pl.DataFrame(rows), TableFormat.MARKDOWN)}\n", flush=True)


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help=f"of {', '.join(CORPORA)}; default all")
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared")
    parser.add_argument("--models", nargs="+", default=["bm25s", "minilm-l6"])
    parser.add_argument("--seeds", type=int, default=0, help="of each training; default as above")
    parser.add_argument("--rows", nargs="*", default=[], help="corpora on which single rows of v2 are measured")
    parser.add_argument("--work", type=Path, default=Path("mftr-work"))
    parser.add_argument("--cache", type=Path, default=Path("embeddings"))
    chosen = parser.parse_args()
    unknown = {*chosen.corpora, *chosen.rows} - set(CORPORA)
    if unknown:
        parser.error(f"unknown corpus {', '.join(sorted(unknown))}; choose from {', '.join(CORPORA)}")
    cache = FolderEmbeddingCache(chosen.cache)
    found, rows = [], []
    for name in CORPORA:
        if name not in (chosen.corpora or CORPORA) and name not in chosen.rows:
            continue
        at = Measurement(name, chosen.data, chosen.work, cache, chosen.seeds)
        for model in map(resolve_model, chosen.models):
            if name in (chosen.corpora or CORPORA):
                presets = [at.mftr(model, settings)[0] for settings in (PAPER, V2, revised(at.corpus))]
                found.append(Measured(at, model.entry.key, at.full_doc(model), *presets))
            if name in chosen.rows:
                rows += rows_table(at, model)
    show("NDCG@10 / Recall@10", scores_table(found))
    changed, lows = difference_table(found, lambda one: one.paper, lambda one: one.v2)
    show("v2 minus paper", changed)
    better, ends = difference_table(found, lambda one: one.paper, lambda one: one.revised)
    show("revised minus paper", better)
    show("paper minus Full-Doc", difference_table(found, lambda one: one.full_doc, lambda one: one.paper)[0])
    show("v2 minus Full-Doc", difference_table(found, lambda one: one.full_doc, lambda one: one.v2)[0])
    show("The gain over Full-Doc under one label and over all valid combinations (NDCG@10)", survival_table(found))
    show("Single rows of v2 (NDCG@10 / Recall@10)", rows)
    print(f"Lowest end of an NDCG interval against paper: v2 {100 * min(lows):+.2f}, revised {100 * min(ends):+.2f}.")
    fitting = preset_by_measurement(lows)
    print(f"Of these, the preset to take where nobody names one: {fitting} (in use: {DEFAULT_PRESET}).")
    sys.exit(1 if set(chosen.corpora or CORPORA) == set(CORPORA) and fitting != DEFAULT_PRESET else 0)


if __name__ == "__main__":
    main()
