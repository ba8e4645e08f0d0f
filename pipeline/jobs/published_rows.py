"""Both papers' printed tables as ``reported`` rows of the leaderboard."""

from __future__ import annotations

from pipeline import published
from pipeline.jobs.site import Site
from store.access import benchmarks, figures, reported, retrievers
from store.models import BenchmarkVersion, Retriever
from store.records import Summary


def load_published(site: Site) -> reported.ReportedChanges:
    """Make the stored reported rows and figures those of the data files; nothing changes when they are."""
    with site.database.session() as session:
        versions = {
            item.slug: benchmarks.upsert_description(session, _version(item)).id for item in published.benchmarks()
        }
        keys = {item.key: retrievers.upsert(session, _retriever(item)).id for item in published.retrievers()}
        queries = {item.slug: item.counts.get("queries") for item in published.benchmarks()}
        rows = [
            reported.ReportedRow(
                benchmark_version_id=versions[row.benchmark],
                retriever_id=keys[row.retriever],
                place=row.place,
                method=row.method,
                level=row.level,
                summaries=tuple(
                    _summary(value, queries[row.benchmark]) for value in row.values if value.value is not None
                ),
                trained_on_benchmark=row.contamination,
                notes=row.notes,
                queries_total=queries[row.benchmark],
            )
            for row in published.rows()
        ]
        changes = reported.upsert_reported(session, rows, remove_others=True)
        figures.replace_figures(session, [_figure(item) for item in published.figures()])
    return changes


def _version(item: published.PublishedBenchmark) -> BenchmarkVersion:
    return BenchmarkVersion(
        slug=item.slug,
        version=item.version,
        title=item.title,
        kind=item.kind.value,
        source=item.citation,
        headline=item.headline.value,
        queries=item.counts.get("queries"),
        tools=item.counts.get("tools"),
        subqueries=item.counts.get("subqueries"),
        equivalents=item.counts.get("verified_items"),
        combinations=item.counts.get("combinations"),
        domains=[{"name": name, "n": None} for name in item.domains],
        statistics={"all": {_statistic(figure, item): _number(figure) for figure in item.statistics}, "domains": {}},
        ks=[10],
        citation=item.paper.bibtex,
        notes=[f"The old labels are those of {item.old_labels}.", *item.notes],
    )


def _statistic(figure: published.PublishedFigure, benchmark: published.PublishedBenchmark) -> str:
    """The name that ``benchmark_statistics`` gives to the same figure."""
    return figure.key.split(f"-{benchmark.slug}-", 1)[-1].replace("-", "_")


def _number(figure: published.PublishedFigure) -> float | int | str:
    if figure.value is None:
        return figure.printed
    return int(figure.value) if figure.value.is_integer() and "." not in figure.printed else figure.value


def _retriever(item: published.PublishedRetriever) -> Retriever:
    return Retriever(
        key=item.key,
        name=item.name,
        family=item.family,
        parameters=item.parameters,
        dimension=item.dimension,
        fine_tuned=item.fine_tuned,
        base_key=item.base,
        open_weights=item.open_weights,
        licence=item.licence,
        link=item.link,
        notes=" ".join(note for note in (item.parameters_note, item.licence_note, item.trained_on_note) if note),
    )


def _summary(value: published.PublishedValue, queries: int | None) -> Summary:
    """A cell as a stored figure; ``printed`` is in points, as the site shows every figure, with its † mark."""
    assert value.value is not None
    return Summary(
        view=value.view,
        metric=value.metric,
        k=value.k,
        average=value.average,
        domain=value.domain,
        value=value.value,
        n=None if value.average == "domain" else queries,
        printed=None if value.computed else value.printed_percent + value.mark,
        note=value.note or None,
    )


def _figure(item: published.PublishedFigure) -> figures.Figure:
    names = {item.slug: item.title for item in published.benchmarks()}
    names |= {item.key: item.name for item in published.retrievers()}
    about = [names[key] for key in (item.benchmark, item.retriever) if key]
    return figures.Figure(
        key=item.key,
        paper=item.paper,
        place=item.place,
        subject=": ".join([*about, item.subject]),
        figure=item.figure,
        value=item.value,
        printed=item.printed,
        unit=item.unit,
        derived=item.derived,
        note=item.note,
        numbers=item.values,
        benchmark=item.benchmark,
        retriever=item.retriever,
    )
