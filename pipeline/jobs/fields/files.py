"""Files of the published MFTR data for a benchmark: read and checked against it, or made for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.benchmark import Benchmark
from pipeline.errors import MftrError, UsageError
from pipeline.formats.messages import listing, plural, quote
from pipeline.jobs.fields import texts as field_texts
from pipeline.jobs.fields.folder import Texts
from pipeline.mftr.files import (
    RewrittenQueries,
    StandardizedDocuments,
    id_coverage,
    read_rewritten,
    read_standardized,
    write_rewritten,
)
from pipeline.mftr.learned_parameters import LearnedFolds, LearnedParameters, LearnedTable, read_learned
from pipeline.retrieval.documents import run_target
from pipeline.retrieval.registry import RetrieverEntry


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Tools and queries in fields for a benchmark.

    Attributes:
        standardized: the file that was read; None where the rules made the tools.
        rewritten: the file that was read; None where the queries stand for themselves.
        notes: what is missing, in sentences.
    """

    texts: Texts
    standardized: StandardizedDocuments | None
    rewritten: RewrittenQueries | None
    notes: tuple[str, ...]


def read_texts(benchmark: Benchmark, standardized: Path | None, rewritten: Path | None) -> ReadTexts:
    """Read what files there are; the rules and the queries themselves stand for the others.

    Raises:
        MftrError: a file cannot be read, or belongs to another benchmark.
    """
    notes: list[str] = []
    documents = queries = None
    tools = field_texts.rule_based_tools(benchmark) if standardized is None else []
    asked = field_texts.original_queries(benchmark) if rewritten is None else []
    if standardized is not None:
        documents, said = tools_for(standardized, benchmark.tools["tool_id"].to_list())
        tools, notes = list(documents.tools), notes + said
    if rewritten is not None:
        queries, said = queries_for(rewritten, benchmark.queries["query_id"].to_list())
        asked, notes = list(queries.queries), notes + said
    return ReadTexts(Texts(tools, asked), documents, queries, tuple(notes))


def tools_for(path: Path, tool_ids: Sequence[str]) -> tuple[StandardizedDocuments, list[str]]:
    """The standardized documents of a benchmark's tools, and what is missing or left aside, in sentences.

    Raises:
        MftrError: the file cannot be read, or has not one of the tools.
    """
    read = read_standardized(path)
    notes = _checked(path, [tool.tool_id for tool in read.tools], tool_ids, "tool")
    known = set(tool_ids)
    return replace(read, tools=tuple(tool for tool in read.tools if tool.tool_id in known)), notes


def queries_for(path: Path, query_ids: Sequence[str]) -> tuple[RewrittenQueries, list[str]]:
    """The rewritten queries of a benchmark; likewise."""
    read = read_rewritten(path)
    notes = _checked(path, [*(query.query_id for query in read.queries), *read.failures], query_ids, "query")
    known = set(query_ids)
    queries = tuple(query for query in read.queries if query.query_id in known)
    return replace(read, queries=queries, failures={k: v for k, v in read.failures.items() if k in known}), notes


def _checked(path: Path, given: Sequence[str], wanted: Sequence[str], noun: str) -> list[str]:
    """A published file may hold several benchmarks: what belongs to another is left aside."""
    coverage = id_coverage(given, wanted, noun)
    if not coverage.known:
        raise MftrError(f"{path.name} does not belong to this benchmark: {' '.join(coverage.messages)}")
    many = "queries" if noun == "query" else f"{noun}s"
    notes = [f"{path.name}: {coverage.messages[0]}"] if coverage.missing else []
    if coverage.unknown:
        several = plural(len(coverage.unknown), f"{noun} belongs", f"{many} belong")
        notes.append(f"{path.name}: {several} to another benchmark and {'is' if len(coverage.unknown) == 1 else 'are'} "
                     "left aside")  # fmt: skip
    return notes


def write_folds(path: Path, benchmark: Benchmark, read: ReadTexts, learned: LearnedFolds) -> None:
    """Write the queries with the fold that each belongs to, so that the weights can be applied to them later.

    Raises:
        MftrError: the file cannot be written.
    """
    target = run_target(benchmark)
    fold_of = dict(zip(target.queries.ids, learned.fold_of.tolist(), strict=True))
    queries = tuple(replace(query, test_fold=fold_of[query.query_id]) for query in read.texts.queries)
    before = read.rewritten
    beside = {} if before is None else before.beside
    failures = {} if before is None else before.failures
    try:
        write_rewritten(path, RewrittenQueries(queries, failures, beside))
    except OSError as error:
        raise MftrError(f"{path} cannot be written ({error.strerror})") from None


def read_weights(
    path: Path, benchmark: Benchmark, model: RetrieverEntry, of: str = ""
) -> tuple[LearnedParameters, ...]:
    """The folds of one data set and model of a weights file.

    Args:
        path: in the published shape.
        benchmark: whose slug names the data set.
        model: whose key, alias or repository names the model; the length or batch size behind ``__`` is passed over.
        of: ``DATASET/MODEL`` as the file spells them; "" finds them by the other arguments.

    Raises:
        MftrError: the file cannot be read, or what is looked for is not in it.
        UsageError: ``of`` is not of this form.
    """
    table = read_learned(path)
    dataset, _, name = of.partition("/")
    if of and not name:
        raise UsageError(f"--weights-of takes DATASET/MODEL as the file spells them; found {quote(of)}")
    return _folds(table, path, dataset or _dataset(table, path, benchmark.info.slug), name, model)


def _dataset(table: LearnedTable, path: Path, slug: str) -> str:
    if slug in table:
        return slug
    if len(table) == 1:
        return next(iter(table))
    raise MftrError(
        f"{path.name} has weights for {listing(list(table))} and none for {quote(slug)}: say which with --weights-of "
        "DATASET/MODEL"
    )


def _folds(
    table: LearnedTable, path: Path, dataset: str, name: str, model: RetrieverEntry
) -> tuple[LearnedParameters, ...]:
    models = table.get(dataset, {})
    if name:
        found = [name] if name in models else []
    else:
        names = {part.casefold() for part in (model.key, *model.aliases, model.hf_id.rpartition("/")[2]) if part}
        found = [key for key in models if key.rpartition("__")[0].casefold() in names or key.casefold() in names]
    if len(found) != 1:
        raise MftrError(
            f"{path.name} has weights of {listing(list(models)) or 'no model'} for {quote(dataset)}, and "
            f"{'several' if found else 'none'} of them for {quote(name or model.name)}: say which with --weights-of "
            "DATASET/MODEL"
        )
    return models[found[0]]
