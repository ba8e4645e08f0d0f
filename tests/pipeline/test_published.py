"""The papers' own claims, recomputed from the loaded rows, and equality with the reference tables."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from pipeline.published import (
    PublishedFigure,
    PublishedRow,
    benchmarks,
    figures,
    methods,
    papers,
    retrievers,
    rows,
)
from pipeline.published.loading import check_figures, check_rows
from pipeline.scoring.illusion import GainSplit, split_gain

BASES = (
    "bm25s",
    "gte-qwen2-1.5b",
    "e5-mistral",
    "gritlm-7b",
    "nv-embed-v1",
    "qwen3-emb-0.6b",
    "qwen3-emb-4b",
    "qwen3-emb-8b",
)
GENERAL = ("bm25s", "minilm-l6", "contriever", "me5-base", "me5-large", "gte-large-v1.5", "bge-large")
BASELINES = ("full-doc", "easytool", "pluto", "onlinerag")
DATASETS = ("toolbench", "apigen", "apibank", "gorilla", "toolink", "mixed")


def row(benchmark: str, retriever: str, method: str = "full-doc") -> PublishedRow:
    (found,) = [r for r in rows() if (r.benchmark, r.retriever, r.method) == (benchmark, retriever, method)]
    return found


def macro(retriever: str, view: str, method: str = "full-doc", metric: str = "NDCG") -> float:
    value = row("tooleq", retriever, method).value(view, metric, "macro")
    assert value is not None
    return value


def micro(benchmark: str, retriever: str, method: str, metric: str, view: str = "old") -> float | None:
    return row(benchmark, retriever, method).value(view, metric, "micro")


def lift(retriever: str) -> float:
    return 100 * (macro(retriever, "new") - macro(retriever, "old"))


def gain_on_tooleq(base: str, tuned: str, average: str = "macro", domain: str = "") -> GainSplit:
    cells = [row("tooleq", r).value(v, "NDCG", average, domain) for r in (base, tuned) for v in ("old", "new")]
    return split_gain(*cells)


def gain_on_skilleq(base: str, tuned: str) -> GainSplit:
    cells = [micro("skilleq", r, "full-doc", "NDCG", v) for r in (base, tuned) for v in ("old", "new")]
    return split_gain(*cells)


def figure(key: str) -> PublishedFigure:
    (found,) = [f for f in figures() if f.key == key]
    return found


# The ToolEX paper's claims


def test_the_smallest_base_lift_is_nv_embed_4_60():
    assert min(BASES, key=lift) == "nv-embed-v1"
    assert lift("nv-embed-v1") == pytest.approx(4.60, abs=1e-9)


def test_the_largest_base_lift_is_qwen3_8b_8_53():
    assert max(BASES, key=lift) == "qwen3-emb-8b"
    assert round(lift("qwen3-emb-8b"), 2) == 8.53


def test_the_mean_base_lift_is_6_51():
    assert round(mean(map(lift, BASES)), 2) == 6.51


@pytest.mark.parametrize(
    ("retriever", "points"), [("bm25s", 6.03), ("gte-qwen2-1.5b", 5.60), ("e5-mistral", 6.33), ("gritlm-7b", 5.00)]
)
def test_base_lifts_named_in_the_text(retriever: str, points: float):
    assert round(lift(retriever), 2) == points


def test_fine_tuning_gain_of_the_small_model_shrinks_from_6_43_to_4_47():
    split = gain_on_tooleq("qwen3-emb-0.6b", "tool-embed-0.6b")
    assert round(100 * split.gain_old, 2) == 6.43
    assert round(100 * split.gain_new, 2) == 4.47
    assert round(100 * split.share, 1) == 30.6


def test_fine_tuning_gain_of_the_4b_model_shrinks_from_7_17_to_3_80():
    split = gain_on_tooleq("qwen3-emb-4b", "tool-embed-4b")
    assert round(100 * split.gain_old, 2) == 7.17
    assert round(100 * split.gain_new, 2) == 3.80
    assert round(100 * split.share, 1) == 47.0


def test_on_code_the_gain_of_the_4b_model_flips_its_sign():
    split = gain_on_tooleq("qwen3-emb-4b", "tool-embed-4b", "domain", "code")
    assert (round(100 * split.gain_old, 1), round(100 * split.gain_new, 1)) == (2.1, -0.3)
    assert split.sign_flips
    assert split.share > 1


def test_on_skilleq_the_8b_gain_mostly_stays():
    split = gain_on_skilleq("qwen3-emb-8b", "skillret-emb-8b")
    assert (round(100 * split.gain_old, 1), round(100 * split.gain_new, 1)) == (24.4, 21.0)
    assert round(100 * split.share, 1) == 13.9


def test_on_skilleq_one_label_hid_gain_of_the_small_model():
    split = gain_on_skilleq("qwen3-emb-0.6b", "skillret-emb-0.6b")
    assert (round(100 * split.gain_old, 1), round(100 * split.gain_new, 1)) == (3.3, 3.8)
    assert round(100 * split.share, 1) == -15.2


def test_sub_queries_gain_12_63_points_for_the_small_qwen():
    gain = macro("qwen3-emb-0.6b", "new", "sub-query") - macro("qwen3-emb-0.6b", "new")
    assert round(100 * gain, 2) == 12.63
    assert figure("toolex-subquery-gain").printed == f"{100 * gain:.1f}"


@pytest.mark.parametrize("domain", ["code", "web", "customized"])
def test_domain_lifts_named_in_the_text(domain: str):
    small = row("tooleq", "qwen3-emb-0.6b")
    points = 100 * (small.value("new", "NDCG", "domain", domain) - small.value("old", "NDCG", "domain", domain))
    assert figure(f"toolex-lift-{domain}").printed == f"{points:.1f}"


@pytest.mark.parametrize(
    ("slug", "items", "combinations"), [("tooleq", 4.245, 5.311), ("skilleq", 5.263, 10.773)], ids=["tooleq", "skilleq"]
)
def test_ratios_of_table_1(slug: str, items: float, combinations: float):
    (benchmark,) = [b for b in benchmarks() if b.slug == slug]
    counts = benchmark.counts
    assert round(counts["verified_items"] / counts["subqueries"], 3) == items
    assert round(counts["combinations"] / counts["queries"], 3) == combinations
    printed = {f.key.removeprefix(f"toolex-table1-{slug}-"): f for f in benchmark.statistics}
    assert abs(printed["items-per-subquery"].value - items) <= 0.05
    assert abs(printed["combinations-per-query"].value - combinations) <= 0.05


def test_ranks_of_equivalents_split_into_four_parts():
    parts = ("both", "only-ground-truth", "only-equivalent", "neither")
    values = {part: figure(f"toolex-ranks-{part}").value for part in parts}
    assert sum(values.values()) == pytest.approx(1)
    assert values["both"] + values["only-equivalent"] == pytest.approx(figure("toolex-ranks-equivalent").value)
    assert values["both"] + values["only-ground-truth"] == pytest.approx(figure("toolex-ranks-ground-truth").value)


def test_mean_lifts_recompute_within_print_where_no_remark_stands():
    for printed in (f for f in figures() if f.key.endswith("mean-lift")):
        level, domain = ("query", "") if printed.benchmark == "skilleq" else printed.subject.split(", ")[::-1]
        method = "sub-query" if level.startswith("sub-query") else "full-doc"
        cells = row(printed.benchmark, printed.retriever, method)
        average = "domain" if domain else "micro"
        again = mean(
            cells.value("new", m, average, domain) - cells.value("old", m, average, domain)
            for m in ("NDCG", "Recall", "Comp")
        )
        off = abs(again - printed.value) > 0.0005 + 1e-9
        assert not off or printed.note, printed.key


# The MFTR paper's claims


def best_baseline(slug: str, retriever: str, metric: str) -> float:
    values = [micro(slug, retriever, method, metric) for method in BASELINES]
    return max(value for value in values if value is not None)


def relative_gain(slug: str, metric: str) -> float:
    """Mean over the general retrievers of MFTR over that retriever's best baseline, in percent."""
    return 100 * mean(
        micro(slug, retriever, "mftr", metric) / best_baseline(slug, retriever, metric) - 1 for retriever in GENERAL
    )


def test_mftr_gains_47_98_percent_over_onlinerag_on_gorilla():
    ours, theirs = (micro("mftr-gorilla", "minilm-l6", method, "Recall") for method in ("mftr", "onlinerag"))
    assert theirs == best_baseline("mftr-gorilla", "minilm-l6", "Recall")
    assert f"{100 * (ours / theirs - 1):.2f}" == figure("mftr-gain-gorilla").printed == "47.98"


def test_mftr_gains_11_42_percent_on_apigen():
    assert f"{relative_gain('mftr-apigen', 'NDCG'):.2f}" == figure("mftr-gain-apigen").printed == "11.42"


def test_mftr_gains_28_61_percent_ndcg_on_mixed():
    assert f"{relative_gain('mftr-mixed', 'NDCG'):.2f}" == figure("mftr-gain-mixed-ndcg").printed == "28.61"


def test_mftr_gains_18_98_percent_recall_on_mixed():
    assert f"{relative_gain('mftr-mixed', 'Recall'):.2f}" == figure("mftr-gain-mixed-recall").printed == "18.98"


def test_learned_weights_sum_to_one_within_print():
    columns: dict[tuple[str, str], list[float]] = {}
    for weight in (f for f in figures() if f.place == "MFTR Table 5"):
        columns.setdefault((weight.retriever, weight.benchmark), []).append(weight.value)
    assert len(columns) == 6
    for shares in columns.values():
        assert len(shares) == 4
        assert sum(shares) == pytest.approx(1, abs=0.001 + 1e-9)
    assert sum(f.value for f in figures() if f.place == "MFTR Table 4" and f.unit == "%") == pytest.approx(1)


def test_mixed_is_the_five_datasets_together():
    counts = {b.slug: b.counts for b in benchmarks() if b.paper.key == "MFTR"}
    mixed = counts.pop("mftr-mixed")
    assert mixed == {name: sum(c[name] for c in counts.values()) for name in ("queries", "tools")}


# Shape of the tables


def test_every_printed_row_is_there_once():
    assert Counter(r.place for r in rows()) == {
        "ToolEX Table 2": 20,
        "ToolEX Table 3": 9,
        "MFTR Table 2": 270,
        "MFTR Table 3": 2 * 8 * 3,
    }
    assert sum(v.average == "domain" for r in rows() for v in r.values if r.place == "ToolEX Table 2") == 60 * 6
    assert len({(r.benchmark, r.retriever, r.method) for r in rows()}) == len(rows())


def test_new_is_never_below_old():
    pairs = 0
    for r in rows():
        old = {(v.metric, v.k, v.average, v.domain): v.value for v in r.values if v.view == "old"}
        for v in (v for v in r.values if v.view == "new"):
            assert v.value >= old[v.metric, v.k, v.average, v.domain]
            pairs += 1
    assert pairs == 20 * 3 * 4 + 9 * 3


def test_comp_exceeds_recall_only_where_a_remark_says_so():
    odd = []
    for r in rows():
        recall = {(v.view, v.average, v.domain): v for v in r.values if v.metric == "Recall"}
        for v in (v for v in r.values if v.metric == "Comp"):
            other = recall[v.view, v.average, v.domain]
            if v.value > other.value:
                odd.append((r.retriever, r.level, v.view, v.domain, bool(other.note)))
    assert odd == [("nv-embed-v1", "query", "new", "code", True)]


def test_macro_is_computed_from_unrounded_domains_and_micro_is_absent_on_tooleq():
    for r in (r for r in rows() if r.benchmark == "tooleq"):
        assert {v.average for v in r.values} == {"macro", "domain"}
        assert all(v.computed == (v.average == "macro") == (v.printed == "") for v in r.values)
        for view in ("old", "new"):
            domains = [r.value(view, "Comp", "domain", d) for d in ("code", "web", "customized")]
            assert r.value(view, "Comp", "macro") == pytest.approx(mean(domains), abs=1e-15)


def test_mftr_rows_have_no_new_view():
    assert {v.view for r in rows() if r.benchmark.startswith("mftr-") for v in r.values} == {"old"}
    assert row("mftr-apigen", "bm25s").value("new", "NDCG", "micro") is None


def test_onlinerag_with_bm25_is_null_not_zero():
    empty = [(r.retriever, r.method) for r in rows() for v in r.values if v.value is None]
    assert empty == [("bm25s", "onlinerag")] * 12
    assert {v.printed for r in rows() for v in r.values if v.value is None} == {"-"}


def test_printed_digits_keep_their_zeros():
    cell = row("mftr-gorilla", "bm25s").values[1]
    assert (cell.metric, cell.value, cell.printed, cell.printed_percent) == ("Recall", 0.352, "0.3520", "35.20")
    cell = row("tooleq", "nv-embed-v1").values[8]
    assert (cell.metric, cell.value, cell.printed, cell.printed_percent) == ("Recall", 0.63, "63.0", "63.0")


def test_daggers_stand_only_on_mftr_rows():
    marked = Counter(r.method for r in rows() for v in r.values if v.mark == "†")
    assert set(marked) == {"mftr"}
    assert {v.mark for r in rows() for v in r.values} == {"", "†"}


def test_fine_tuned_retrievers_name_their_base():
    bases = {r.key: r.base for r in retrievers() if r.base}
    assert bases == {
        "tool-embed-0.6b": "qwen3-emb-0.6b",
        "tool-embed-4b": "qwen3-emb-4b",
        "skillret-emb-0.6b": "qwen3-emb-0.6b",
        "skillret-emb-8b": "qwen3-emb-8b",
        "colt": "contriever",
    }
    assert {r.key for r in retrievers() if r.fine_tuned} == {*bases, "toolbench-ir"}


def test_contamination_is_unknown_unless_a_source_says_otherwise():
    assert row("tooleq", "tool-embed-4b").contamination == "yes"
    assert row("mftr-toolbench", "colt").contamination == "yes"
    assert row("mftr-gorilla", "colt").contamination == "unknown"
    assert row("tooleq", "qwen3-emb-4b").contamination == "unknown"
    assert row("skilleq", "bm25s").contamination == "no"


def test_every_retriever_and_method_listed_is_used():
    assert {r.retriever for r in rows()} == {r.key for r in retrievers()}
    assert {r.method for r in rows()} == {m.key for m in methods()}


def test_papers_can_be_cited():
    for paper in papers():
        assert paper.arxiv in paper.link
        assert paper.title in paper.bibtex


# Validation


def test_validation_finds_what_is_wrong():
    good = row("skilleq", "bm25s")
    cell = good.values[0]
    wrong = (
        replace(good, retriever="nobody"),
        replace(good, benchmark="nowhere"),
        replace(good, method="nohow"),
        replace(good, values=(replace(cell, value=1.2, printed="120"),)),
        replace(good, values=(replace(cell, value=0.43),)),
        replace(good, values=(replace(cell, average="domain", domain="code"),)),
    )
    text = "\n".join(check_rows(wrong))
    for expected in (
        "unknown retriever",
        "unknown benchmark",
        "unknown method",
        "outside [0, 1]",
        "printed '42.0'",
        "domain 'code'",
        "occurs 3 times",
    ):
        assert expected in text
    assert check_rows((good,)) == []


def test_validation_of_figures_finds_repeats_and_unknown_names():
    good = figure("mftr-pluto-calls")
    problems = check_figures((good, good, replace(good, key="other", retriever="nobody")))
    assert any("occurs 2 times" in p for p in problems)
    assert any("other" in p and "unknown" in p for p in problems)


# Equality with the reference tables


def reference(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "reference" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def key_of(printed: str) -> str:
    (found,) = [r.key for r in retrievers() if printed in r.printed]
    return found


SIX = [(f"{m[0].lower()}10_{v}", m, v) for m in ("NDCG", "Recall", "Comp") for v in ("old", "new")]


@pytest.mark.shared
def test_toolex_table_2_equals_the_reference(shared: Path):
    lines = reference(shared, "toolex_table2.csv")
    assert len(lines) == 60
    for line in lines:
        query = line["level"] == "query"
        cells = row("tooleq", key_of(line["model"]), "full-doc" if query else "sub-query")
        assert cells.level == ("query" if query else "sub-query")
        domain = line["category_as_printed"].lower()
        for column, metric, view in SIX:
            assert cells.value(view, metric, "domain", domain) == pytest.approx(float(line[column]) / 100, abs=1e-12)
        delta = figure(f"toolex-table2-{cells.level}-{cells.retriever}-{domain}-mean-lift")
        assert delta.value == pytest.approx(float(line["delta_printed"]) / 100, abs=1e-12)


@pytest.mark.shared
def test_suspected_corrections_are_remarks_and_nothing_more(shared: Path):
    for line in reference(shared, "toolex_table2_suspected_corrections.csv"):
        method = "full-doc" if line["level"] == "query" else "sub-query"
        cells = row("tooleq", key_of(line["model"]), method)
        domain = line["category_as_printed"].lower()
        if line["note"]:
            assert any(v.note for v in cells.values if v.domain == domain), line


@pytest.mark.shared
def test_toolex_table_3_equals_the_reference(shared: Path):
    lines = reference(shared, "toolex_table3.csv")
    assert len(lines) == 9
    for line in lines:
        cells = row("skilleq", key_of(line["model"]))
        for column, metric, view in SIX:
            assert cells.value(view, metric, "micro") == pytest.approx(float(line[column]) / 100, abs=1e-12)
        delta = figure(f"toolex-table3-{cells.retriever}-mean-lift")
        assert delta.value == pytest.approx(float(line["delta_printed"]) / 100, abs=1e-12)


@pytest.mark.shared
def test_toolex_table_1_equals_the_reference(shared: Path):
    lines = reference(shared, "toolex_table1.csv")
    for slug in ("tooleq", "skilleq"):
        (benchmark,) = [b for b in benchmarks() if b.slug == slug]
        assert [f.value for f in benchmark.statistics] == [float(line[slug]) for line in lines]


@pytest.mark.shared
def test_mftr_table_1_equals_the_reference(shared: Path):
    for dataset, line in zip(DATASETS, reference(shared, "mftr_table1.csv"), strict=True):
        (benchmark,) = [b for b in benchmarks() if b.slug == f"mftr-{dataset}"]
        assert [f.printed for f in benchmark.statistics] == [
            line[c] for c in ("queries", "tools", "tools_per_query", "tool_source")
        ]


def method_of(printed: str) -> str:
    (found,) = [m.key for m in methods() if printed in m.printed]
    return found


@pytest.mark.shared
def test_mftr_table_2_equals_the_reference(shared: Path):
    lines = reference(shared, "mftr_table2.csv")
    assert len(lines) == 270
    for line in lines:
        cells = row(f"mftr-{line['dataset'].lower()}", key_of(line["retriever"]), method_of(line["method"]))
        found = {v.metric.lower(): v for v in cells.values}
        for metric in ("ndcg", "recall"):
            expected = line[f"{metric}10"]
            assert found[metric].value == (float(expected) if expected else None)
            assert (found[metric].mark == "†") == (line[f"{metric}10_significant"] == "True")


@pytest.mark.shared
def test_mftr_table_3_equals_the_reference(shared: Path):
    for line in reference(shared, "mftr_table3.csv"):
        for dataset in ("toolbench", "apigen", "apibank"):
            value = micro(f"mftr-{dataset}", key_of(line["retriever"]), method_of(line["variant"]), "NDCG")
            assert value == float(line[f"{dataset}_ndcg10"])


@pytest.mark.shared
def test_mftr_table_4_equals_the_reference(shared: Path):
    finals = {"final_rank_mftr": "mftr-final-rank", "final_rank_full_doc": "full-doc-final-rank"}
    for line in reference(shared, "mftr_table4.csv"):
        name = line["field"]
        rank = figure(f"mftr-table4-{finals.get(name, f'{name}-field-rank')}")
        assert rank.value == float(line["field_rank"])
        if line["field_weight_pct"]:
            assert figure(f"mftr-table4-{name}-learned-weight").printed == line["field_weight_pct"]


@pytest.mark.shared
def test_mftr_table_5_equals_the_reference(shared: Path):
    lines = reference(shared, "mftr_table5.csv")
    assert len(lines) == sum(f.place == "MFTR Table 5" for f in figures())
    for line in lines:
        slug = f"mftr-{line['dataset'].lower()}"
        weight = figure(f"mftr-table5-{key_of(line['retriever'])}-{slug}-{line['field']}")
        assert weight.value == pytest.approx(float(line["weight_pct"]) / 100, abs=1e-12)


@pytest.mark.shared
def test_facts_equal_the_reference(shared: Path):
    def digits(text: str) -> str:
        return text.replace(" ", "")

    expected = Counter(
        (line["paper"], digits(line["value"]), line["unit"], line["derived"] == "yes")
        for line in reference(shared, "published_facts.csv")
    )
    found = Counter((f.paper, digits(f.printed), f.unit, f.derived) for f in figures() if " Table " not in f.place)
    assert found == expected


@pytest.mark.shared
def test_retrievers_are_those_of_the_catalogue(shared: Path):
    catalogue = {line["key"]: line for line in reference(shared, "model_catalogue.csv")}
    assert {r.key for r in retrievers()} == set(catalogue)
    for retriever in retrievers():
        stated = catalogue[retriever.key]
        assert stated["hf_id"].startswith(retriever.hf_id or "bm25s")
        assert (retriever.dimension is None) == (stated["dim"] == "-")
        if retriever.dimension is not None:
            assert stated["dim"].split(" ")[0] == str(retriever.dimension)
        if retriever.parameters is not None:
            scale = {"M": 1e6, "B": 1e9}[stated["params"][-1]]
            assert retriever.parameters == pytest.approx(float(stated["params"][:-1].split("-")[-1]) * scale)
