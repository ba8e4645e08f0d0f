"""SkillRet's files, versions 1.0 and 1.1: skills, test queries and their labels.

Layout, below the given folder or its ``data``: ``skills.jsonl`` (all skills) or ``skills/{train,test}.jsonl``,
``queries/test.jsonl``, ``qrels/test.jsonl``; each may be ``.jsonl``, ``.jsonl.gz`` or ``.parquet``. What is searched is
part of the benchmark's identity: the official test searches the test skills, SkillEq searches all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.benchmark import Benchmark, BenchmarkInfo, Kind
from pipeline.errors import BenchmarkError
from pipeline.formats.benchmark_validation import validate_benchmark
from pipeline.formats.loose_rows import LooseRows, Row
from pipeline.formats.messages import listing, plural, quote
from pipeline.formats.skill_document import join_skill_document
from pipeline.formats.source_table import ProblemList

_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
#: (test queries, test labels) → published version.
_RELEASES = {(4997, 8347): "1.0", (4392, 7187): "1.1"}
#: Skills in the test corpus of a published version.
_TEST_SKILLS = {"1.0": 6660, "1.1": 6006}
#: The domain of a query whose skills belong to several major classes.
SEVERAL = "several"

_SKILL_KEYS = {"id", "name", "description", "skill_md", "author", "major"}
_QUERY_KEYS = {"id", "query", "skill_ids"}
_QREL_KEYS = {"query_id", "skill_id", "relevance"}


class SkillCorpus(StrEnum):
    """Which skills are searched."""

    TEST = "test"
    ALL = "all"


@dataclass(frozen=True)
class SkillRetFiles:
    """The files found; an empty tuple where there is none."""

    all_skills: tuple[Path, ...]
    test_skills: tuple[Path, ...]
    queries: tuple[Path, ...]
    qrels: tuple[Path, ...]

    @property
    def complete(self) -> bool:
        """Whether a benchmark can be made of them."""
        return bool((self.all_skills or self.test_skills) and self.queries and self.qrels)


def find_skillret_files(folder: Path) -> SkillRetFiles:
    """Look for SkillRet's files in a folder and its ``data``."""

    def first(*stems: str) -> tuple[Path, ...]:
        candidates = (
            base / (stem + suffix) for base in (folder / "data", folder) for stem in stems for suffix in _SUFFIXES
        )
        return next(((path,) for path in candidates if path.is_file()), ())

    train, test = first("skills/train"), first("skills/test")
    everything = first("skills", "skills/all") or (train + test if train and test else ())
    return SkillRetFiles(everything, test, first("queries/test"), first("qrels/test"))


def read_skillret(
    files: SkillRetFiles,
    *,
    corpus: SkillCorpus | str | None = None,
    slug: str | None = None,
    title: str | None = None,
    version: str | None = None,
    licence: str = "",
    origin: str = "SkillRet",
    revision: str = "",
    notes: Sequence[str] = (),
) -> Benchmark:
    """Read SkillRet's files into a benchmark.

    A skill's ``major`` class is its domain; a query has the domain of its skills, or ``several``. How name,
    description and document are kept is said in ``skill_document``.

    Args:
        files: see ``find_skillret_files``.
        corpus: ``test`` or ``all``; may be left out only when one of them is there.
        slug: default ``skillret``.
        title: default the slug with its first letters large.
        version: default ``<release>-<corpus>``, the release recognised by its counts.
        licence: as the data set states it.
        origin: where the files come from; becomes part of ``source``.
        revision: the commit or tag of the data set, if known.
        notes: what was noticed before.

    Raises:
        BenchmarkError: the corpus or the version is unclear, or the rows are refused.
    """
    problems, found = ProblemList(), list(notes)
    chosen = _chosen_corpus(files, corpus)
    skills = LooseRows(files.test_skills if chosen is SkillCorpus.TEST else files.all_skills, "tools", problems)
    queries = LooseRows(files.queries, "queries", problems)
    qrels = LooseRows(files.qrels, "ground_truth", problems)
    for rows, keys in ((skills, _SKILL_KEYS), (queries, _QUERY_KEYS), (qrels, _QREL_KEYS)):
        rows.note_unknown(keys, found)
    skill_rows = _distinct(skills, found)
    release = _RELEASES.get((len(queries.rows), len(qrels.rows)))
    if release and chosen is SkillCorpus.TEST and len(skill_rows) != _TEST_SKILLS[release]:
        expected = f"{_TEST_SKILLS[release]:,}"
        problems.add(
            f"queries and labels are those of v{release}, whose test corpus has {expected} skills, but "
            f"{len(skill_rows):,} were found; do not mix versions",
            "tools",
        )
    majors = {skills.text(row, "id", required=True): skills.text(row, "major") for row in skill_rows}
    truth, truth_rows = _ground_truth(queries, qrels)
    descriptions = [skills.text(row, "description") for row in skill_rows]
    texts = [skills.text(row, "skill_md", required=True) for row in skill_rows]
    documents = [join_skill_document(d, text) for d, text in zip(descriptions, texts, strict=True)]
    added = sum(document is not text for document, text in zip(documents, texts, strict=True))
    if added:
        found.append(f"{plural(added, 'document')} did not give the row's description; it was put before the document")
    query_ids = [queries.text(row, "id", required=True) for row in queries.rows]
    domains = [_domain([majors.get(skill, "") for skill in truth.get(query, [])]) for query in query_ids]
    tables = {
        "tools": skills.source_table(
            {
                "tool_id": [skills.text(row, "id") for row in skill_rows],
                "documentation": documents,
                "name": [skills.text(row, "name") for row in skill_rows],
                "domain": [skills.text(row, "major") for row in skill_rows],
                "source": ["skillret"] * len(skill_rows),
                "provider": [skills.text(row, "author") for row in skill_rows],
            },
            skill_rows,
        ),
        "queries": queries.source_table(
            {
                "query_id": query_ids,
                "text": [queries.text(row, "query", required=True) for row in queries.rows],
                "domain": domains,
                "source": ["skillret"] * len(query_ids),
            },
            queries.rows,
        ),
        "ground_truth": qrels.source_table(
            {"query_id": list(truth), "tool_ids": list(truth.values())}, [truth_rows[query] for query in truth]
        ),
    }
    problems.raise_if_any("The SkillRet files cannot be read as they are:")
    if version is None and release is None:
        raise BenchmarkError(
            f"The files hold {len(queries.rows):,} test queries and {len(qrels.rows):,} labels, which is neither "
            "SkillRet v1.0 (4,997 and 8,347) nor v1.1 (4,392 and 7,187); say which version this is."
        )
    several = domains.count(SEVERAL)
    if several:
        found.append(f'{plural(several, "query", "queries")} need skills of several major classes: domain "{SEVERAL}"')
    name = slug or "skillret"
    label = f"v{release} " if release else ""
    info = BenchmarkInfo(
        slug=name,
        title=title or ("SkillRet" if name == "skillret" else name),
        kind=Kind.SKILL,
        version=version or f"{release}-{chosen}",
        licence=licence,
        source=f"{origin} {label}({chosen} skills searched: {len(skill_rows):,})",
        revision=revision,
    )
    return validate_benchmark(info, tables, found)


def _chosen_corpus(files: SkillRetFiles, corpus: SkillCorpus | str | None) -> SkillCorpus:
    there = [c for c, paths in ((SkillCorpus.TEST, files.test_skills), (SkillCorpus.ALL, files.all_skills)) if paths]
    if corpus is None:
        if len(there) == 1:
            return there[0]
        raise BenchmarkError(
            "Say which skills are searched: test (the official test corpus) or all (as SkillEq does); "
            "the corpus is part of the benchmark's identity."
        )
    if corpus not in list(SkillCorpus):
        raise BenchmarkError(f"Unknown corpus {quote(corpus)} for SkillRet; choose test or all.")
    if SkillCorpus(corpus) not in there:
        wanted = "skills/test" if corpus == SkillCorpus.TEST else "skills, or skills/train and skills/test,"
        raise BenchmarkError(f"The corpus {corpus} needs the file {wanted} (.jsonl or .parquet), which is not there.")
    return SkillCorpus(corpus)


def _distinct(skills: LooseRows, notes: list[str]) -> list[Row]:
    """Without skills that another file repeats value for value; anything else repeated is refused later."""
    seen: dict[object, Row] = {}
    kept = []
    for row in skills.rows:
        identifier = row.values.get("id")
        first = seen.setdefault(identifier, row) if isinstance(identifier, str) else row
        if first is row or first.file == row.file or first.values != row.values:
            kept.append(row)
    if len(kept) < len(skills.rows):
        notes.append(f"{plural(len(skills.rows) - len(kept), 'skill')} stood unchanged in a second file; kept once")
    return kept


def _ground_truth(queries: LooseRows, qrels: LooseRows) -> tuple[dict[str, list[str]], dict[str, Row]]:
    """Query → skills, in the order of the query's ``skill_ids``, and the row that names the query first."""
    truth: dict[str, list[str]] = defaultdict(list)
    places: dict[str, Row] = {}
    for row in qrels.rows:
        query, skill = qrels.text(row, "query_id", required=True), qrels.text(row, "skill_id", required=True)
        relevance = row.values.get("relevance", 1)
        if isinstance(relevance, bool) or not isinstance(relevance, int | float):
            qrels.refuse(row, f"relevance is {quote(repr(relevance))}; write a number")
        elif relevance > 0:
            truth[query].append(skill)
            places.setdefault(query, row)
    for row in queries.rows:
        listed = queries.texts(row, "skill_ids")
        query = queries.text(row, "id")
        labelled = truth.get(query, [])
        if listed and labelled and set(listed) != set(labelled):
            queries.refuse(
                row,
                f"skill_ids ({listing(listed, 4)}) and the labels ({listing(labelled, 4)}) of query {quote(query)} "
                "differ; the files may be of two versions",
            )
        elif listed and labelled:
            truth[query] = sorted(labelled, key=listed.index)
    return dict(truth), places


def _domain(majors: list[str]) -> str:
    distinct = set(majors)
    return distinct.pop() if len(distinct) == 1 else SEVERAL if distinct else ""
