"""The skill demo benchmark keeps its own promises: counts, real documents, reachable labels, whole products."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import pipeline.demo
from pipeline.benchmark import TABLES, Average, Kind
from pipeline.formats.benchmark_folder import verify_benchmark
from pipeline.formats.skill_document import split_skill_document
from tests.pipeline.demo_checks import Bm25, minilm_top

Row = dict[str, Any]
Key = tuple[str, int]
DEMO = Path(pipeline.demo.__file__).parent
FOLDER = DEMO / "skills"
DEPTH = 20


@pytest.fixture(scope="module")
def tables() -> dict[str, list[Row]]:
    return {name: [json.loads(line) for line in (FOLDER / f"{name}.jsonl").open(encoding="utf-8")] for name in TABLES}


@pytest.fixture(scope="module")
def valid(tables: dict[str, list[Row]]) -> dict[Key, list[str]]:
    """Verified set of each sub-query, the labelled skill first, in file order."""
    sets: dict[Key, list[str]] = defaultdict(list)
    for row in tables["equivalents"]:
        if row["verdict"] == "valid":
            sets[row["query_id"], row["position"]].append(row["tool_id"])
    return dict(sets)


@pytest.fixture(scope="module")
def texts(tables: dict[str, list[Row]]) -> dict[str, str]:
    """What a full-document retriever reads of each skill: ``name | description | skill_md``."""
    found = {}
    for row in tables["tools"]:
        description, skill_md = split_skill_document(row["documentation"])
        found[row["tool_id"]] = f"{row['name']} | {description} | {skill_md}"
    return found


@pytest.fixture(scope="module")
def bm25(texts: dict[str, str]) -> Bm25:
    return Bm25(list(texts), list(texts.values()))


def test_the_folder_verifies_without_a_remark() -> None:
    benchmark, notes = verify_benchmark(FOLDER)
    info = benchmark.info
    assert (info.slug, info.title, info.kind, info.version) == ("demo-skills", "Demo skills", Kind.SKILL, "1")
    assert (info.licence, info.source) == ("CC0-1.0", "written for EquiRank")
    assert info.effective_headline is Average.MICRO
    assert (benchmark.notes, notes) == ((), ())


def test_rows_have_the_fields_of_the_format(tables: dict[str, list[Row]]) -> None:
    for name, rows in tables.items():
        assert {tuple(row) for row in rows} == {tuple(TABLES[name])}, name


def test_counts(tables: dict[str, list[Row]], valid: dict[Key, list[str]]) -> None:
    skills, queries, truth = tables["tools"], tables["queries"], tables["ground_truth"]
    assert len(skills) >= 60
    assert len(queries) >= 55
    sizes = Counter(len(row["tool_ids"]) for row in truth)
    assert set(sizes) == {1, 2, 3}
    assert sizes[2] >= 12
    assert sizes[3] >= 5
    assert {skill["domain"] for skill in skills} == {query["domain"] for query in queries}
    per_domain = Counter(query["domain"] for query in queries)
    assert len(per_domain) == 6
    assert min(per_domain.values()) >= 8
    area = {skill["tool_id"]: skill["source"] for skill in skills}
    interchangeable = {area[row["tool_id"]] for row in tables["subqueries"] if len(valid[_key(row)]) > 1}
    assert len(interchangeable) >= 15
    assert {len(found) for found in valid.values()} == {1, 2, 3}
    alone = [row for row in truth if all(len(valid[row["query_id"], p]) == 1 for p in range(len(row["tool_ids"])))]
    assert len(alone) >= 10, "queries without any equivalent"
    assert any(len(row["tool_ids"]) > 1 for row in alone)
    verdicts = Counter(row["verdict"] for row in tables["equivalents"])
    assert verdicts["invalid"] >= 100
    assert verdicts["unsure"] >= 1


def test_the_label_of_a_skill_depends_on_the_query(tables: dict[str, list[Row]]) -> None:
    """The same pair of skills is interchangeable for one sub-query and not for another, so labels are no clusters."""
    truth = {_key(row): row["tool_id"] for row in tables["subqueries"]}
    verdicts: dict[frozenset[str], set[str]] = defaultdict(set)
    for row in tables["equivalents"]:
        verdicts[frozenset((truth[_key(row)], row["tool_id"]))].add(row["verdict"])
    assert sum({"valid", "invalid"} <= found for found in verdicts.values()) >= 8


def test_documents_are_whole_skills(tables: dict[str, list[Row]]) -> None:
    lengths = []
    for row in tables["tools"]:
        _, front_matter, body = row["documentation"].split("---\n", 2)
        fields = yaml.safe_load(front_matter)
        assert set(fields) == {"name", "description"}
        assert fields["name"] == row["name"]
        assert row["tool_id"] == f"{row['provider']}/{row['name']}"
        assert split_skill_document(row["documentation"]) == (fields["description"], row["documentation"])
        assert re.search(r"^# ", body, re.MULTILINE)
        lengths.append(len(body.split()))
    assert min(lengths) >= 120
    assert max(lengths) <= 500
    assert np.quantile(lengths, 0.95) > 1.6 * np.median(lengths), "skills of very different length"


def test_documents_are_not_copies_of_one_another(tables: dict[str, list[Row]]) -> None:
    """No two skills share more than a few runs of five words: they were written, not permuted."""
    shingles = []
    for row in tables["tools"]:
        words = re.findall(r"\w+", row["documentation"].casefold())
        shingles.append(set(zip(*(words[i:] for i in range(5)), strict=False)))
    for i, one in enumerate(shingles):
        for j, other in enumerate(shingles[:i]):
            assert len(one & other) <= 4, (tables["tools"][i]["tool_id"], tables["tools"][j]["tool_id"], one & other)


def test_ids_are_distinct_known_and_plain(tables: dict[str, list[Row]]) -> None:
    skills = [row["tool_id"] for row in tables["tools"]]
    queries = [row["query_id"] for row in tables["queries"]]
    assert len(set(skills)) == len(skills)
    assert len({row["name"] for row in tables["tools"]}) == len(skills)
    assert len(set(queries)) == len(queries)
    assert len({row["text"] for row in tables["queries"]}) == len(queries)
    assert not [i for i in skills + queries if not re.fullmatch(r"[a-z0-9/-]+", i)]
    assert [row["query_id"] for row in tables["ground_truth"]] == queries
    known = set(skills)
    for name in ("subqueries", "equivalents", "combinations"):
        assert {row["query_id"] for row in tables[name]} == set(queries), name
    assert {row["tool_id"] for name in ("subqueries", "equivalents") for row in tables[name]} <= known
    assert {i for name in ("ground_truth", "combinations") for row in tables[name] for i in row["tool_ids"]} <= known


def test_subqueries_map_one_to_one_onto_the_ground_truth_without_naming_it(tables: dict[str, list[Row]]) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    names = {row["name"] for row in tables["tools"] if "-" in row["name"]}
    names |= {name.replace("-", " ") for name in names if name.count("-") > 1}
    providers = {row["provider"] for row in tables["tools"]}
    for row in tables["subqueries"]:
        assert row["position"] == len(found[row["query_id"]])
        found[row["query_id"]].append(row["tool_id"])
        assert not [n for n in names | providers if re.search(rf"\b{n}\b", row["text"].casefold())], row["text"]
    assert found == {row["query_id"]: row["tool_ids"] for row in tables["ground_truth"]}


def test_every_verdict_has_a_reason_and_nothing_computed_is_typed(tables: dict[str, list[Row]]) -> None:
    truth = {_key(row): row["tool_id"] for row in tables["subqueries"]}
    seen: set[tuple[Key, str]] = set()
    for row in tables["equivalents"]:
        seen_key = (_key(row), row["tool_id"])
        assert seen_key not in seen
        seen.add(seen_key)
        assert row["origin"] == ("ground_truth" if truth[_key(row)] == row["tool_id"] else "human")
        assert row["judge"] == "EquiRank authors"
        assert re.fullmatch(r"[A-Z][^\n]{15,}\.", row["reason"])
        assert row["retrieval_rank"] is None
        both = row["same_operation"], row["inputs_available"]
        assert row["verdict"] == ("unsure" if None in both else "valid" if all(both) else "invalid"), row
    assert set(truth.items()) <= seen
    for row in tables["combinations"]:
        assert row["rrf_score"] is None
        assert row["judge"] == "EquiRank authors"
        assert row["reason"].endswith(".")
        assert (row["verdict"] == "valid") == (row["coverage"] and row["dependency_consistent"])


def test_combinations_are_the_product_of_the_verified_sets(
    tables: dict[str, list[Row]], valid: dict[Key, list[str]]
) -> None:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in tables["combinations"]:
        rows[row["query_id"]].append(row)
    for label in tables["ground_truth"]:
        query, truth = label["query_id"], label["tool_ids"]
        choices = product(*(valid[query, position] for position in range(len(truth))))
        # A set with a repeated skill would shrink and inflate scores: it is dropped, as in the pipeline.
        expected = {frozenset(choice) for choice in choices if len(set(choice)) == len(truth)}
        written = [frozenset(row["tool_ids"]) for row in rows[query]]
        assert len(written) == len(set(written)) <= 100
        assert set(written) == expected
        assert [row["is_ground_truth"] for row in rows[query]] == [True] + [False] * (len(written) - 1)
        assert (rows[query][0]["tool_ids"], rows[query][0]["verdict"]) == (truth, "valid")
        for row in rows[query]:
            assert all(skill in valid[query, position] for position, skill in enumerate(row["tool_ids"]))
    rejected = [row for row in tables["combinations"] if row["verdict"] == "invalid"]
    assert sum(not row["dependency_consistent"] for row in rejected) >= 20
    assert sum(not row["coverage"] for row in rejected) >= 3
    assert max(map(len, rows.values())) >= 12


def test_broken_chains_name_both_skills(tables: dict[str, list[Row]]) -> None:
    """A combination rejected because one skill cannot read what the other leaves says which two."""
    for row in tables["combinations"]:
        if not row["dependency_consistent"]:
            names = [i.split("/")[1] for i in row["tool_ids"]]
            named = [n for n in names if re.search(rf"\b{n}\b", row["reason"])]
            assert len(named) == 2, row["reason"]


def test_sample_run_is_what_bm25_finds(tables: dict[str, list[Row]], bm25: Bm25) -> None:
    """``sample_skills_run.trec`` holds bm25's top 20 for each query, scores as shortest float32 text."""
    run: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for line in (DEMO / "sample_skills_run.trec").read_text(encoding="utf-8").splitlines():
        query, q0, skill, rank, score, tag = line.split(" ")
        run[query].append((skill, float(score)))
        assert (q0, int(rank), tag) == ("Q0", len(run[query]), "bm25-sample")
        assert str(np.float32(score)) == score
    assert list(run) == [query["query_id"] for query in tables["queries"]]
    for query in tables["queries"]:
        written, found = run[query["query_id"]], bm25.top(query["text"], DEPTH)
        assert [skill for skill, _ in written] == [skill for skill, _ in found]
        np.testing.assert_allclose([score for _, score in written], [score for _, score in found], rtol=1e-5)
        for (a, high), (b, low) in pairwise(written):
            assert high > low or (high == low and a.encode() > b.encode())


def test_lexical_search_finds_label_and_equivalent_apart(
    tables: dict[str, list[Row]], valid: dict[Key, list[str]], bm25: Bm25
) -> None:
    """Some queries lead bm25's top 10 to an equivalent and not to the label, others the other way round."""
    text = {query["query_id"]: query["text"] for query in tables["queries"]}
    only_equivalent = only_truth = 0
    for row in tables["subqueries"]:
        others = set(valid[_key(row)]) - {row["tool_id"]}
        top = {skill for skill, _ in bm25.top(text[row["query_id"]], 10)}
        only_equivalent += row["tool_id"] not in top and bool(others & top)
        only_truth += row["tool_id"] in top and bool(others) and not others & top
    assert only_equivalent >= 5
    assert only_truth >= 5


@pytest.mark.slow
def test_every_valid_equivalent_is_retrieved_by_bm25_or_minilm(
    tables: dict[str, list[Row]], texts: dict[str, str], bm25: Bm25
) -> None:
    subqueries = {_key(row): row["text"] for row in tables["subqueries"]}
    nearest = minilm_top(list(texts), list(texts.values()), list(subqueries.values()), DEPTH)
    dense = dict(zip(subqueries, nearest, strict=True))
    lexical = {key: [skill for skill, _ in bm25.top(text, DEPTH)] for key, text in subqueries.items()}
    found: Counter[tuple[bool, bool]] = Counter()
    for row in tables["equivalents"]:
        if row["verdict"] == "valid" and row["origin"] != "ground_truth":
            by = row["tool_id"] in lexical[_key(row)], row["tool_id"] in dense[_key(row)]
            assert any(by), row
            found[by] += 1
    assert found[False, True] >= 1, "an equivalent that only the dense retriever reaches"


def _key(row: Row) -> Key:
    return row["query_id"], row["position"]
