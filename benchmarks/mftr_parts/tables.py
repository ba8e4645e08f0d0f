"""Tables of what was measured: scores, differences with intervals and tests, single rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
from printing.intervals import percent, points

from mftr_parts.measuring import METRICS, ROWS, Measurement, Scores
from pipeline.formats.tables import TableFormat, write_table
from pipeline.retrieval.models import ModelSpec
from pipeline.scoring.holm import holm
from pipeline.scoring.randomization import paired_test, shrink_test
from pipeline.scoring.statistics import difference_interval, illusion_intervals


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
