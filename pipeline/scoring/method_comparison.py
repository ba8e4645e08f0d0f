"""Methods compared on the same retriever, as in the MFTR paper's Table 2: best, second, gain over the best baseline."""

from __future__ import annotations

import polars as pl

#: The method that the others are baselines of.
OWN = "mftr"
BASELINES = ("full-doc", "easytool", "pluto", "onlinerag")
METHODS = (*BASELINES, OWN)

#: What one cell competes within: figures of a paper and of this site are different evidence.
_GROUP = ["retriever_key", "dataset", "metric", "view", "source"]


def with_places(cells: pl.DataFrame) -> pl.DataFrame:
    """Mark the best and the second-best figure per retriever, dataset, metric, view and source.

    Equal figures share a place; a figure that is alone has none.

    Args:
        cells: ``retriever_key``, ``dataset``, ``metric``, ``view``, ``source`` and ``value`` (null where there is
            none), one row a cell.

    Returns:
        The same rows with ``best`` and ``second``.
    """
    place = pl.col("value").rank("dense", descending=True).over(_GROUP)
    several = pl.col("value").count().over(_GROUP) > 1
    return cells.with_columns(
        best=(several & (place == 1)).fill_null(False), second=(several & (place == 2)).fill_null(False)
    )


def gains_over_baseline(cells: pl.DataFrame) -> pl.DataFrame:
    """MFTR against the strongest baseline of the same retriever.

    Args:
        cells: as for ``with_places``, with ``method`` and ``retriever``.

    Returns:
        One row a retriever, dataset, metric, view and source that has both, in the order of the cells: the group,
        ``retriever``, ``value``, ``baseline`` (its method), ``baseline_value`` and ``gain`` (their ratio − 1; null
        where the baseline is 0). Of several settings of MFTR the first counts.
    """
    known = cells.filter(pl.col("value").is_not_null())
    own = known.filter(pl.col("method") == OWN).unique(_GROUP, keep="first", maintain_order=True)
    rivals = (
        known.filter(pl.col("method").is_in(list(BASELINES)))
        .sort("value", descending=True, maintain_order=True)
        .unique(_GROUP, keep="first", maintain_order=True)
        .select(*_GROUP, baseline="method", baseline_value="value")
    )
    joined = own.select(*_GROUP, "retriever", "value").join(rivals, on=_GROUP, how="inner", maintain_order="left")
    ratio = pl.when(pl.col("baseline_value") > 0).then(pl.col("value") / pl.col("baseline_value") - 1)
    return joined.with_columns(gain=ratio)


def mean_gains(gains: pl.DataFrame) -> pl.DataFrame:
    """The mean gain over retrievers, as the paper states it.

    Args:
        gains: of ``gains_over_baseline``, the retrievers that count.

    Returns:
        One row a dataset, metric, view and source: these, ``gain`` and ``retrievers``.
    """
    by = ["dataset", "metric", "view", "source"]
    return gains.group_by(by, maintain_order=True).agg(
        pl.col("gain").mean(), pl.col("gain").count().cast(pl.Int64).alias("retrievers")
    )
