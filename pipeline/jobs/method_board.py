"""All boards at once, methods beside each other: the rows behind the MFTR paper's Table 2, reported and measured."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.jobs.site import Site
from pipeline.scoring.holm import holm
from pipeline.scoring.method_comparison import METHODS, OWN, with_places
from store.access import benchmarks, field_analyses
from store.access import leaderboard as boards
from store.field_analysis_models import AnalysisKind

#: The table of the paper whose rows are taken; Table 3 repeats two of its methods.
PLACE = "MFTR Table 2"
CUTOFF = 10
_METRICS = ("NDCG", "Recall")
#: A benchmark's figures in the paper and the same benchmark measured here are one dataset: its slug without this
#: prefix, by its short name.
_PREFIX = "mftr-"
_SAME = {"gorilla-huggingface": "gorilla"}
#: The order of the paper's columns; other datasets follow.
_ORDER = ("toolbench", "apigen", "apibank", "gorilla", "toolink", "mixed")

#: One row a cell. ``source``: ``reported``, ``measured`` or ``uploaded``. ``printed``: as the paper prints it, with its
#: own †. ``p``: two-sided, unadjusted, of a measured MFTR run against ``rival``, its strongest baseline; ``p_holm``
#: adjusts it over all tests of a view in the table.
CELLS: dict[str, Any] = {
    "dataset": pl.String,
    "title": pl.String,
    "benchmark": pl.String,
    "retriever_key": pl.String,
    "retriever": pl.String,
    "fine_tuned": pl.Boolean,
    "method": pl.String,
    "source": pl.String,
    "setting": pl.String,
    "run_id": pl.String,
    "metric": pl.String,
    "view": pl.String,
    "value": pl.Float64,
    "printed": pl.String,
    "rival": pl.String,
    "rival_value": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
}


def method_board(site: Site) -> pl.DataFrame:
    """The cells of every benchmark that has a published run of MFTR or of one of its rivals.

    Returns:
        Columns of ``CELLS``, ``best`` and ``second`` (see ``with_places``): datasets in the paper's order, retrievers
        as the paper's rows come, methods in the order of its table, reported before measured.
    """
    with site.database.reading() as session:
        records = benchmarks.list_records(session)
        found = []
        for record in records:
            dataset = dataset_of(record.slug)
            for metric in _METRICS:
                board = boards.leaderboard(session, record.id, metric=metric, k=CUTOFF, average="micro")
                kept = board.filter(
                    pl.col("method").is_in(list(METHODS)),
                    pl.col("level") == "query",
                    (pl.col("provenance") != "reported") | (pl.col("place") == PLACE),
                )
                if kept.filter(pl.col("method") != "full-doc").is_empty():
                    continue
                found += [
                    (
                        dataset,
                        record.title.removesuffix(" (MFTR)"),
                        record.name,
                        row["retriever_key"],
                        row["retriever"],
                        row["fine_tuned"],
                        row["method"],
                        row["provenance"],
                        "" if row["provenance"] == "reported" else row["contract"],
                        row["run_id"],
                        metric,
                        view,
                        row[view],
                        row[f"{view}_printed"] or "",
                        None,
                        None,
                        None,
                        None,
                    )
                    for row in kept.iter_rows(named=True)
                    for view in ("old", "new")
                ]
        cells = pl.DataFrame(found, schema=CELLS, orient="row")
        # A retriever that was only ever asked plainly has nothing to compare.
        cells = cells.filter((pl.col("method") != "full-doc").any().over("retriever_key"))
        wanted = cells.filter(pl.col("method") == OWN, pl.col("source") != "reported")["run_id"].unique().to_list()
        known = field_analyses.of_kind(session, AnalysisKind.TESTS, wanted)
    tests = [
        site.artifacts.get_frame(analysis.artifact).with_columns(run_id=pl.lit(run_id))
        for run_id, analysis in sorted(known.items())
    ]
    return with_places(_in_order(_with_tests(cells, tests)))


def dataset_of(slug: str) -> str:
    """What a benchmark's figures and measurements share."""
    short = slug.removeprefix(_PREFIX)
    return _SAME.get(short, short)


def _with_tests(cells: pl.DataFrame, tests: list[pl.DataFrame]) -> pl.DataFrame:
    if not tests:
        return cells
    keys = ["run_id", "metric", "view"]
    found = pl.concat(tests).select(*keys, rival="baseline", rival_value="baseline_value", p="p")
    joined = cells.drop("rival", "rival_value", "p", "p_holm").join(found, on=keys, how="left", maintain_order="left")
    adjusted: dict[int, float] = {}
    for view in ("old", "new"):
        of = joined.with_row_index("_row").filter(pl.col("view") == view, pl.col("p").is_not_null())
        adjusted.update(zip(of["_row"].to_list(), holm(of["p"].to_list()), strict=True))
    holms = [adjusted.get(row) for row in range(joined.height)]
    return joined.with_columns(p_holm=pl.Series(holms, dtype=pl.Float64)).select(*CELLS)


def _in_order(cells: pl.DataFrame) -> pl.DataFrame:
    datasets = [name for name in _ORDER if name in set(cells["dataset"])]
    datasets += [name for name in cells["dataset"].unique(maintain_order=True) if name not in datasets]
    printed = cells.filter(pl.col("source") == "reported")["retriever_key"].unique(maintain_order=True).to_list()
    places = {key: place for place, key in enumerate(_printed_order(printed))}
    return (
        cells.with_columns(
            _dataset=pl.col("dataset").replace_strict(
                {name: place for place, name in enumerate(datasets)}, return_dtype=pl.Int64, default=len(datasets)
            ),
            _retriever=pl.col("retriever_key").replace_strict(places, return_dtype=pl.Int64, default=len(places)),
            _source=pl.col("source") != "reported",
            _method=pl.col("method").replace_strict(
                {name: place for place, name in enumerate(METHODS)}, return_dtype=pl.Int64
            ),
        )
        .sort("_retriever", "retriever", "_source", "_method", "setting", "_dataset", maintain_order=True)
        .drop("_dataset", "_retriever", "_source", "_method")
    )


def _printed_order(keys: list[str]) -> list[str]:
    """The retrievers as the paper's rows come; a board comes in rank order."""
    from pipeline import published

    order = list(dict.fromkeys(row.retriever for row in published.rows() if row.place == PLACE))
    return [key for key in order if key in keys] + [key for key in keys if key not in order]
