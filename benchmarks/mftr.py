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
import os
import sys
from pathlib import Path

# One thread: two of them on a busy machine wait for each other more than they compute.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from inputs.real import INPUTS
from mftr_parts.measuring import CORPORA, Measurement, revised
from mftr_parts.tables import Measured, difference_table, rows_table, scores_table, show, survival_table

from pipeline.mftr.settings import DEFAULT_PRESET, PAPER, V2, preset_by_measurement
from pipeline.retrieval.embedding_cache import FolderEmbeddingCache
from pipeline.retrieval.models import resolve_model


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help=f"of {', '.join(CORPORA)}; default all")
    parser.add_argument("--data", type=Path, default=INPUTS)
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
