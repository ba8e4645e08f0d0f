"""The figures both papers print, read from data files beside this package; no store, no network.

``rows()`` are leaderboard rows of provenance ``reported``; ``figures()`` are everything else the papers print:
table statistics, printed mean lifts, learned weights, facts from the text. Values are fractions, and the digits as
printed are kept beside them.
"""

from __future__ import annotations

from pipeline.published.catalogue import benchmarks, methods, papers, retrievers
from pipeline.published.loading import figures, rows
from pipeline.published.records import (
    PublishedBenchmark,
    PublishedFigure,
    PublishedMethod,
    PublishedPaper,
    PublishedRetriever,
    PublishedRow,
    PublishedValue,
)

__all__ = [
    "PublishedBenchmark",
    "PublishedFigure",
    "PublishedMethod",
    "PublishedPaper",
    "PublishedRetriever",
    "PublishedRow",
    "PublishedValue",
    "benchmarks",
    "figures",
    "methods",
    "papers",
    "retrievers",
    "rows",
]
