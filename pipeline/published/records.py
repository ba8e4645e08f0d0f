"""What a published figure is: frozen records, fractions with the printed digits beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.benchmark import Average, Kind
from pipeline.published.files import DASH, parse_printed

View = Literal["old", "new"]
Metric = Literal["NDCG", "Recall", "Comp"]
Level = Literal["query", "sub-query"]
Averaged = Literal["macro", "micro", "domain"]
TrainedOn = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class PublishedPaper:
    """One of the two papers.

    Attributes:
        key: ``ToolEX`` or ``MFTR``, the first word of every ``place``.
        arxiv: arXiv id without a version.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    arxiv: str

    @property
    def link(self) -> str:
        """Address of the abstract."""
        return f"https://arxiv.org/abs/{self.arxiv}"

    @property
    def bibtex(self) -> str:
        """A BibTeX entry."""
        return (
            f"@misc{{{self.key.lower()}{self.year},\n"
            f"  title         = {{{self.title}}},\n"
            f"  author        = {{{' and '.join(self.authors)}}},\n"
            f"  year          = {{{self.year}}},\n"
            f"  eprint        = {{{self.arxiv}}},\n"
            f"  archivePrefix = {{arXiv}}\n}}"
        )


@dataclass(frozen=True)
class PublishedFigure:
    """A printed figure that is no leaderboard cell: a statistic, a mean lift, a learned weight, a fact of the text.

    Attributes:
        key: unique name, stable between versions.
        paper: ``ToolEX`` or ``MFTR``.
        place: ``ToolEX Table 1``, ``MFTR §5.5``, …
        subject: what the figure is about, in words.
        figure: what is counted or measured, in words.
        value: None for a text, a list or a range. A fraction where ``unit`` is ``%`` or ``pp``.
        values: the numbers of a list or range in printed order, else empty; same scale as ``value``.
        printed: as printed, without the unit.
        unit: ``%``, ``pp``, ``s``, ``rank``, ``queries``, …; empty for a text.
        derived: whether it was computed from printed figures and is not printed itself.
        note: a remark of ours on a figure that cannot be right or looks odd, else empty.
        benchmark: slug it belongs to, else empty.
        retriever: key it belongs to, else empty.
    """

    key: str
    paper: str
    place: str
    subject: str
    figure: str
    value: float | None
    printed: str
    unit: str
    derived: bool = False
    note: str = ""
    benchmark: str = ""
    retriever: str = ""
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class PublishedBenchmark:
    """A benchmark known by its counts and figures only: no queries, no tools, no labels.

    Attributes:
        headline: the average that ranks its leaderboard.
        domains: the benchmark's own strings, in printed order; empty when none are reported.
        counts: ``queries``, ``tools`` (skills where kind is skill) and, for ToolEX, ``subqueries``,
            ``verified_items``, ``combinations``.
        paper: the paper that reports it.
        old_labels: name of the one-label benchmark behind the old view.
        new_labels: name of the benchmark behind the new view; empty when only old figures are printed.
        statistics: the figures of the paper's Table 1 for this benchmark.
        notes: remarks of ours on counts and claims.
    """

    slug: str
    title: str
    kind: Kind
    version: str
    headline: Average
    domains: tuple[str, ...]
    counts: Mapping[str, int]
    paper: PublishedPaper
    old_labels: str
    new_labels: str
    statistics: tuple[PublishedFigure, ...]
    notes: tuple[str, ...]

    @property
    def citation(self) -> str:
        """The paper in one line."""
        return f"{self.paper.title} ({self.paper.key}), {self.paper.year}. arXiv:{self.paper.arxiv}"


@dataclass(frozen=True)
class PublishedRetriever:
    """A retriever named in a published table.

    Attributes:
        key: the registry's key.
        family: one family, one colour.
        printed: the names the papers print.
        fine_tuned: trained for tool or skill retrieval.
        base: key of the model it was fine-tuned from, where that is listed here; else None.
        parameters: number of weights, None where not stated.
        dimension: length of an embedding, None for BM25.
        open_weights: None where there are no weights.
        licence: name, or ``not stated``.
        trained_on: benchmark slug → ``yes`` or ``no``; see ``contamination``.
        trained_on_any: the answer for benchmarks that ``trained_on`` does not list.
    """

    key: str
    name: str
    family: str
    printed: tuple[str, ...]
    fine_tuned: bool
    licence: str
    link: str
    base: str | None = None
    hf_id: str = ""
    parameters: int | None = None
    parameters_note: str = ""
    dimension: int | None = None
    open_weights: bool | None = None
    licence_note: str = ""
    trained_on: Mapping[str, TrainedOn] = field(default_factory=dict)
    trained_on_any: TrainedOn = "unknown"
    trained_on_note: str = ""

    def contamination(self, benchmark: str) -> TrainedOn:
        """Whether it was trained on the benchmark's own data; ``unknown`` unless a source says so."""
        return self.trained_on.get(benchmark, self.trained_on_any)


@dataclass(frozen=True)
class PublishedMethod:
    """How a row was retrieved.

    Attributes:
        printed: the names the papers print.
        ablation: a variant that exists to explain MFTR.
    """

    key: str
    title: str
    description: str
    printed: tuple[str, ...]
    ablation: bool


@dataclass(frozen=True)
class PublishedValue:
    """One cell of a table, or a macro mean of its cells.

    Attributes:
        view: ``old`` (one label) or ``new`` (all valid combinations).
        k: cutoff.
        average: ``macro``, ``micro``, or ``domain`` for one domain's mean.
        domain: the domain's string, empty unless ``average`` is ``domain``.
        value: a fraction in [0, 1]; None where the paper prints a dash.
        printed: the digits as printed (``45.2`` for 0.452, ``0.5573``, ``-``); empty for a computed value.
        unit: ``%`` where the paper prints hundredths (ToolEX), empty where it prints fractions (MFTR).
        note: a remark of ours on a figure that cannot be right or looks odd, else empty.
        computed: True for the macro mean, which no paper prints: the exact mean of the printed domains.
        mark: ``†`` where MFTR marks its gain over the strongest baseline as significant
            (randomization test, p < 0.05), else empty.
    """

    view: View
    metric: Metric
    k: int
    average: Averaged
    domain: str
    value: float | None
    printed: str
    unit: Literal["%", ""]
    note: str = ""
    computed: bool = False
    mark: str = ""

    @property
    def printed_value(self) -> float | None:
        """The fraction the printed digits stand for; None for a dash or a computed value."""
        return float(parse_printed(self.printed, self.unit == "%")) if self._has_digits else None

    @property
    def printed_percent(self) -> str:
        """The printed digits as hundredths, none lost and none added: ``0.5570`` is ``55.70``; else as ``printed``."""
        if self.unit == "%" or not self._has_digits:
            return self.printed
        return f"{parse_printed(self.printed, False).scaleb(2):f}"

    @property
    def _has_digits(self) -> bool:
        return self.printed not in ("", DASH)


@dataclass(frozen=True)
class PublishedRow:
    """One retriever with one method on one benchmark, as one paper reports it: a run without a ranking.

    Attributes:
        benchmark: slug.
        retriever: key.
        method: key.
        level: ``sub-query`` rows retrieve with sub-queries written from the labels: an oracle-assisted ceiling.
        place: ``ToolEX Table 2``, …
        notes: remarks of ours on the whole row.
        contamination: whether the retriever was trained on the benchmark's own data.
    """

    benchmark: str
    retriever: str
    method: str
    level: Level
    place: str
    notes: tuple[str, ...]
    values: tuple[PublishedValue, ...]
    contamination: TrainedOn = "unknown"

    def value(self, view: View, metric: Metric, average: Averaged, domain: str = "", k: int = 10) -> float | None:
        """The fraction of one cell, None where it is not printed (nor computed)."""
        for cell in self.values:
            if (cell.view, cell.metric, cell.average, cell.domain, cell.k) == (view, metric, average, domain, k):
                return cell.value
        return None
