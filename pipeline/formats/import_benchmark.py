"""Any benchmark we know how to read, recognised by its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.benchmark import Benchmark
from pipeline.errors import BenchmarkError, UsageError
from pipeline.formats.benchmark_folder import is_benchmark_folder, read_benchmark_folder
from pipeline.formats.benchmark_toml import info_problems
from pipeline.formats.combinations_file import is_combinations_row, read_combinations_file
from pipeline.formats.hub import HALVES, HUB_ID, fetch_dataset
from pipeline.formats.loose_rows import first_keys
from pipeline.formats.messages import listing, quote
from pipeline.formats.skillret import find_skillret_files, read_skillret
from pipeline.formats.toolret import ToolRetFiles, find_toolret_files, read_toolret


def import_benchmark(
    path: Path | str,
    *,
    slug: str | None = None,
    version: str | None = None,
    title: str | None = None,
    licence: str | None = None,
    sources: Sequence[str] = (),
    corpus: str | None = None,
    parent: Benchmark | None = None,
    tools: Path | None = None,
    equivalents: Path | None = None,
    revision: str | None = None,
) -> Benchmark:
    """Read a benchmark from a folder, a file, or by the name of a data set on the hub.

    Recognised are: a benchmark folder of our own; ToolRet-shaped rows (a folder with ``queries…`` and ``tools…``, or a
    file of queries); a SkillRet folder; with ``parent``, a combinations file. The first note says which it was.

    Args:
        path: a local path, or ``owner/name``.
        slug: name to give it; default as the format has it.
        version: version to give it; default as the format has it.
        title: title to give it.
        licence: licence to state.
        sources: ToolRet-shaped rows only: keep these tasks.
        corpus: what is searched: ``test`` or ``all`` for SkillRet; ``source``, ``category`` or ``all`` for
            ToolRet-shaped rows.
        parent: the benchmark a combinations file belongs to.
        tools: ToolRet-shaped rows only: a file or folder of tools that lies elsewhere.
        equivalents: combinations file only: a file of equivalents to go with it.
        revision: hub only: the commit or tag to take.

    Raises:
        BenchmarkError: nothing known, or refused; the problems are named.
        UsageError: options that do not belong to what was found.
        EnvironmentProblem: the hub is needed and cannot be used.
    """
    local = Path(path)
    names = _Names(slug, title, version, licence)
    if not local.exists() and isinstance(path, str) and HUB_ID.fullmatch(path):
        _refuse_options("a data set on the hub", parent=parent, tools=tools, equivalents=equivalents)
        return _from_hub(path, names, sources, corpus, revision)
    if not local.exists():
        raise BenchmarkError(f"There is nothing at {path}, and it is not the name of a data set on the hub.")
    if local.is_dir() and is_benchmark_folder(local):
        _refuse_options(
            "a benchmark folder", source=sources, corpus=corpus, parent=parent, tools=tools, equivalents=equivalents
        )
        return _renamed(read_benchmark_folder(local), names)
    skillret = find_skillret_files(local) if local.is_dir() else None
    if skillret and skillret.complete:
        _refuse_options("SkillRet", source=sources, parent=parent, tools=tools, equivalents=equivalents)
        return read_skillret(
            skillret,
            corpus=corpus,
            slug=slug,
            title=title,
            version=version,
            licence=licence or "",
            revision=revision or "",
            notes=("read as SkillRet files",),
        )
    toolret = _toolret_files(local, tools)
    if _looks_like_toolret(toolret):
        _refuse_options("ToolRet-shaped rows", parent=parent, equivalents=equivalents)
        return read_toolret(
            toolret,
            sources=sources,
            corpus=corpus,
            slug=slug,
            title=title,
            version=version,
            licence=licence or "",
            revision=revision or "",
            notes=("read as ToolRet-shaped rows",),
        )
    combinations = _combinations_file(local)
    if combinations is None:
        raise BenchmarkError(_nothing_known(local, toolret))
    _refuse_options("a combinations file", source=sources, corpus=corpus, tools=tools)
    if parent is None:
        raise UsageError(f"{path} is a combinations file; name the benchmark it belongs to with the option parent.")
    return read_combinations_file(
        combinations,
        parent,
        equivalents=equivalents,
        slug=slug,
        title=title,
        version=version,
        licence=licence,
        revision=revision or "",
        notes=("read as a combinations file",),
    )


@dataclass(frozen=True)
class _Names:
    """What the caller wants the benchmark to be called; None leaves it to the format."""

    slug: str | None
    title: str | None
    version: str | None
    licence: str | None


def _from_hub(
    repository: str, names: _Names, sources: Sequence[str], corpus: str | None, revision: str | None
) -> Benchmark:
    """Download one data set, or both halves of a ToolRet-shaped one, and read it from the cache."""
    parts = HALVES.get(repository, (repository,))
    if revision is not None and len(parts) > 1:
        raise UsageError(
            f"{repository} comes in two data sets with a revision each; download them to choose revisions."
        )
    folders = [fetch_dataset(part, revision) for part in parts]
    origin = " + ".join(folder.repository for folder in folders)
    commit = " + ".join(folder.revision for folder in folders)
    notes = (f"downloaded from the hub: {origin} at {commit}",)
    toolret = find_toolret_files(*(folder.path for folder in folders))
    skillret = find_skillret_files(folders[0].path)
    if is_benchmark_folder(folders[0].path):
        _refuse_options("a benchmark folder", source=sources, corpus=corpus)
        content = _renamed(read_benchmark_folder(folders[0].path), names)
        info = replace(content.info, revision=content.info.revision or commit)
        return replace(content, info=info, notes=(*notes, *content.notes))
    if skillret.complete:
        _refuse_options("SkillRet", source=sources)
        return read_skillret(
            skillret,
            corpus=corpus,
            slug=names.slug,
            title=names.title,
            version=names.version,
            licence=names.licence or "",
            origin=origin,
            revision=commit,
            notes=(*notes, "read as SkillRet files"),
        )
    if _looks_like_toolret(toolret):
        return read_toolret(
            toolret,
            sources=sources,
            corpus=corpus,
            slug=names.slug,
            title=names.title,
            version=names.version,
            licence=names.licence or "",
            origin=origin,
            revision=commit,
            notes=(*notes, "read as ToolRet-shaped rows"),
        )
    raise BenchmarkError(_nothing_known(folders[0].path, toolret))


def _renamed(benchmark: Benchmark, names: _Names) -> Benchmark:
    """A benchmark folder under the names that the caller wants."""
    wanted = {key: value for key, value in asdict(names).items() if value is not None}
    info = replace(benchmark.info, **wanted)
    problems = info_problems(info)
    if problems:
        raise BenchmarkError("The benchmark cannot be named like this:", tuple(problems))
    return replace(benchmark, info=info, notes=("read as a benchmark folder", *benchmark.notes))


def _toolret_files(local: Path, tools: Path | None) -> ToolRetFiles:
    """Query and tool files: of a folder, or a file of queries with the tools beside it, or tools from elsewhere."""
    if local.is_dir():
        files = find_toolret_files(local)
    else:
        files = ToolRetFiles((local,), find_toolret_files(local.parent).tools)
    if tools is None:
        return files
    return replace(files, tools=find_toolret_files(tools).tools if tools.is_dir() else (tools,))


def _looks_like_toolret(files: ToolRetFiles) -> bool:
    if not files.queries or not files.tools:
        return False
    query, tool = first_keys(files.queries[0]), first_keys(files.tools[0])
    return (
        {"id", "query"} <= set(query)
        and bool({"labels", "gt_ids"} & set(query))
        and {"id", "documentation"} <= set(tool)
    )


def _combinations_file(local: Path) -> Path | None:
    """The file itself, or the one of a folder that is named like one, when its rows look right."""
    stems = ("query_combo_verified", "combinations")
    candidates = (
        [local]
        if local.is_file()
        else [local / (stem + suffix) for stem in stems for suffix in (".jsonl", ".jsonl.gz", ".parquet")]
    )
    return next((path for path in candidates if path.is_file() and is_combinations_row(first_keys(path))), None)


def _refuse_options(what: str, **options: object) -> None:
    """Refuse options that say nothing about what was found, rather than ignore them."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be used here: the path was recognised as {what}.")


def _nothing_known(local: Path, toolret: ToolRetFiles) -> str:
    if local.is_file():
        found = f"the keys of its first row are {listing(first_keys(local), 12) or 'unreadable'}"
    else:
        found = f"it holds {listing(sorted(p.name for p in local.iterdir()), 12) or 'nothing'}"
        for path in toolret.queries[:1]:
            found += f"; the keys of the first row of {quote(path.name)} are {listing(first_keys(path), 12)}"
    return (
        f"{local} is not a benchmark that can be read: {found}. Looked for: a benchmark folder (benchmark.toml with "
        "tools, queries and ground_truth); ToolRet-shaped rows (queries… with id, query, labels and tools… with id, "
        "documentation); SkillRet files (skills, queries/test, qrels/test); a combinations file (rows with query_id "
        "and tool_ids)."
    )
