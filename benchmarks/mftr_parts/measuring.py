"""Corpora, and what Full-Doc and MFTR score on them, kept once it is measured."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from inputs.real import BASIS, benchmark_folder

from pipeline.benchmark import Average
from pipeline.formats.benchmark_folder import read_benchmark_folder
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
    PAPER,
    V2,
    AbsentField,
    EmptyArguments,
    FieldScale,
    MftrSettings,
)
from pipeline.mftr.training import labels_of, train, training_scores
from pipeline.retrieval.documents import documents_in_order, queries_in_order, run_target
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import ModelSpec
from pipeline.retrieval.progress import Progress, ProgressCallback, Stage
from pipeline.retrieval.rankings import Rankings
from pipeline.retrieval.retrieve import retrieve
from pipeline.run import Run
from pipeline.scoring.compiler import compile_benchmark
from pipeline.scoring.kernel import evaluate

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
        published_tools: whether documents are standardized as published, else by rules.
        rewritten: whether queries are rewritten as published, else as they are.
        encoding: MiniLM's preset.
        seeds: of each training; many queries vary less between them and take long.
    """

    source: str
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
    "gorilla-tensor": Corpus("gorilla-tensor", encoding="card"),
    "apigen": Corpus("apigen", seeds=1),
    "apigen-rewritten": Corpus("apigen", rewritten=True, seeds=1),
    "bfcl": Corpus("bfcl", encoding="card", seeds=1),
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
        self.benchmark = read_benchmark_folder(benchmark_folder(self.corpus.source, data, work / "benchmarks"))
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

    @property
    def one_to_many(self) -> bool:
        """Whether old and new scores can differ."""
        return self.corpus.source in BASIS

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
