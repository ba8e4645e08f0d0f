"""Which rows of a board are a fine-tuned retriever and the base it came from."""

from __future__ import annotations

import polars as pl

#: Columns of ``fine_tuning_pairs``; ``per_query`` says whether both runs have per-query scores.
PAIRS = {"base_run": pl.String, "tuned_run": pl.String, "per_query": pl.Boolean}

_SAME = ("method", "level", "contract")


def fine_tuning_pairs(board: pl.DataFrame) -> pl.DataFrame:
    """Pair every run of a fine-tuned retriever with the run of its base, asked in the same way.

    Both have the same method, level and contract. Figures of a paper are paired within one table only; runs with
    per-query scores with each other, those of the same provenance first.

    Args:
        board: in rank order, columns ``run_id``, ``retriever_key``, ``base_key``, ``method``, ``level``, ``contract``,
            ``provenance`` and ``place``.

    Returns:
        Columns of ``PAIRS``, in the order of the fine-tuned runs; one row a fine-tuned run at most.
    """
    rows = board.select("run_id", "retriever_key", "base_key", "provenance", "place", *_SAME).to_dicts()
    pairs = []
    for tuned in rows:
        if tuned["base_key"] is None or tuned["base_key"] == tuned["retriever_key"]:
            continue
        reported = tuned["provenance"] == "reported"
        candidates = [
            base
            for base in rows
            if base["retriever_key"] == tuned["base_key"]
            and all(base[name] == tuned[name] for name in _SAME)
            and (base["provenance"] == "reported") == reported
            and (not reported or base["place"] == tuned["place"])
        ]
        if candidates:
            # min keeps the first of equals, which is the best ranked one.
            base = min(candidates, key=lambda row: row["provenance"] != tuned["provenance"])
            pairs.append((base["run_id"], tuned["run_id"], not reported))
    return pl.DataFrame(pairs, schema=PAIRS, orient="row")
