from __future__ import annotations

import numpy as np
import pytest

from pipeline.baselines.pluto import Fill, PlutoSettings, min_max, ordered
from pipeline.baselines.pluto_grounding import GroundingSettings, ground
from pipeline.baselines.pluto_retrieval import retrieve_pluto
from pipeline.baselines.text_scores import text_scores
from pipeline.errors import JudgeError, UsageError
from pipeline.retrieval.models import resolve_model
from tests.pipeline.baselines.judge import LLM, Recorded, fenced, sensible
from tests.pipeline.retrieval.small import benchmark, ranking

TOOLS = {
    "mail": "Send an e-mail message to a recipient",
    "rain": "Weather forecast and rain for a city",
    "yen": "Convert money between currencies",
    "zzz": "",
}
QUERIES = {
    "q1": ("Tell my boss by mail whether it rains in Oslo", ["mail", "rain"]),
    "q2": ("How many dollars are 50 euros?", ["yen"]),
}
ACTIONS = {
    "Tell": ["get the weather forecast for a city", "send an e-mail message to a recipient"],
    "How": ["convert money between currencies"],
}
BM25 = resolve_model("bm25")


def planner(question):
    """Plans each query's actions one after another, then stops; keeps tools that share two words with the action."""
    if question.schema_name != "pluto_plan":
        return sensible(question.schema_name, question.messages[-1].content)
    parts = fenced(question.messages[-1].content)
    plan = ACTIONS[parts["task"].split()[0]]
    left = [action for action in plan if action not in parts["actions_so_far"]]
    return {"stop": not left, "action": left[0] if left else ""}


def run(answer=planner, settings=None, tools=TOOLS, queries=QUERIES, **options):
    asker = Recorded(answer)
    found = retrieve_pluto(benchmark(tools, queries), BM25, asker, LLM, settings=settings, **options)
    return found, asker


def test_kept_tools_come_by_hop_then_the_full_doc_ranking():
    found, asker = run()
    lists = ranking(found.retrieval)
    assert lists["q1"][:2] == ["rain", "mail"]
    assert lists["q2"] == ["yen"]
    # Two use-case-less hops: q1 plans three times and selects twice, q2 plans twice and selects once.
    cost = found.retrieval.efficiency
    assert cost.llm_calls_per_query == pytest.approx((3 + 2 + 2 + 1) / 2)
    assert cost.llm_seconds_per_query == pytest.approx(2.0 * 8 / 2)
    requests = [question for question in asker.asked if question.schema_name in ("pluto_plan", "pluto_select")]
    assert len(requests) == 5 * 5 + 3
    assert any(f"{len(requests)} requests" in note for note in found.retrieval.notes)


def test_all_queries_advance_together():
    _, asker = run()
    plans = [batch for batch in asker.batches if batch[0].schema_name == "pluto_plan"]
    assert [len(batch) for batch in plans] == [10, 10, 5]
    assert {question.sampling.temperature for batch in plans for question in batch} == {0.7}
    assert [question.sampling.draw for question in plans[0]] == [0, 1, 2, 3, 4] * 2
    assert len({question.key for question in plans[0]}) == 10


def test_without_filling_a_list_ends_with_the_kept_tools():
    found, _ = run(settings=PlutoSettings(fill=Fill.NONE))
    assert ranking(found.retrieval) == {"q1": ["rain", "mail"], "q2": ["yen"]}


def test_the_same_seed_gives_the_same_run_whatever_else_is_asked():
    def varied(question):
        if question.schema_name != "pluto_plan":
            return sensible(question.schema_name, question.messages[-1].content)
        return {"stop": False, "action": f"{list(TOOLS.values())[question.sampling.draw % 3]}"}

    first, _ = run(varied, PlutoSettings(hops=1, fill=Fill.NONE))
    again, _ = run(varied, PlutoSettings(hops=1, fill=Fill.NONE))
    alone, _ = run(varied, PlutoSettings(hops=1, fill=Fill.NONE), queries={"q2": QUERIES["q2"]})
    assert first.retrieval.run.ranking_hash == again.retrieval.run.ranking_hash
    assert ranking(alone.retrieval)["q2"] == ranking(first.retrieval)["q2"]
    hashes = {
        run(varied, PlutoSettings(hops=1, fill=Fill.NONE, seed=seed))[0].retrieval.run.ranking_hash for seed in range(8)
    }
    assert len(hashes) > 1


def speechless_for(*tasks):
    """No valid answer to the plans of these queries, by their first word."""

    def answer(question):
        planning = question.schema_name == "pluto_plan"
        if planning and fenced(question.messages[-1].content)["task"].split()[0] in tasks:
            return None
        return planner(question)

    return answer


def test_no_votes_end_the_plan_and_are_recorded():
    found, _ = run(speechless_for("Tell"))
    assert [(failed.subject, failed.what) for failed in found.failures] == [("q1", "planning hop 1")]
    lists = ranking(found.retrieval)
    assert lists["q1"][0] in ("rain", "mail")  # what is left is the Full-Doc ranking
    assert any("1 question got no valid answer" in note for note in found.retrieval.notes)
    empty, _ = run(speechless_for("Tell"), PlutoSettings(fill=Fill.NONE))
    assert ranking(empty.retrieval) == {"q1": [], "q2": ["yen"]}


@pytest.mark.parametrize(
    ("fill", "name"), [(Fill.FULL_DOC, "Full-Doc under the name of PLUTo"), (Fill.NONE, "a run without results")]
)
def test_a_model_that_plans_nothing_makes_no_run(fill, name):
    with pytest.raises(JudgeError, match=f"planned none of 2 queries, so this would be {name}; the last: no answer"):
        run(speechless_for("Tell", "How"), PlutoSettings(fill=fill))


def test_some_votes_are_enough():
    def partly(question):
        return None if question.schema_name == "pluto_plan" and question.sampling.draw else planner(question)

    found, _ = run(partly, PlutoSettings(fill=Fill.NONE))
    assert ranking(found.retrieval) == {"q1": ["rain", "mail"], "q2": ["yen"]}
    assert found.failures == ()


def test_a_failed_selection_keeps_all_that_was_retrieved():
    found, _ = run(
        lambda question: None if question.schema_name == "pluto_select" else planner(question),
        PlutoSettings(retrieved=2, fill=Fill.NONE),
    )
    assert [failed.what for failed in found.failures if failed.subject == "q2"] == ["selecting tools at hop 1"]
    assert ranking(found.retrieval)["q2"][0] == "yen" and len(ranking(found.retrieval)["q2"]) == 2


def test_numbers_of_tools_that_were_not_shown_are_not_in_the_schema():
    _, asker = run(settings=PlutoSettings(retrieved=2))
    shown = [question for question in asker.asked if question.schema_name == "pluto_select"]
    assert shown[0].schema["properties"]["relevant"]["items"]["enum"] == [1, 2]


def test_repeated_actions_stop_the_plan():
    def stubborn(question):
        if question.schema_name == "pluto_plan":
            return {"stop": False, "action": "convert money between currencies"}
        return planner(question)

    found, asker = run(stubborn, queries={"q2": QUERIES["q2"]})
    assert found.retrieval.efficiency.llm_calls_per_query == 3  # plan, select, plan: nothing new
    assert sum(question.schema_name == "pluto_select" for question in asker.asked) == 1


def test_a_batch_waits_at_every_step_and_ends_like_a_live_run():
    answered: set[str] = set()

    def batch(question):
        return planner(question) if question.key in answered else ...

    waits = []
    for _ in range(12):
        found, asker = run(batch)
        if found.retrieval is not None:
            break
        waits.append(found.pending)
        answered |= {question.key for question in asker.asked}
    live, _ = run()
    assert found.retrieval.run.ranking_hash == live.retrieval.run.ranking_hash
    assert waits == [3, 10, 2, 10, 1, 5]


def test_one_tool_and_a_corpus_of_blank_texts():
    one, _ = run(tools={"yen": TOOLS["yen"]}, queries={"q2": ("How many dollars are 50 euros?", ["yen"])})
    assert ranking(one.retrieval) == {"q2": ["yen"]}
    blank, asker = run(tools={"a": "", "b": " "}, queries={"q2": ("How many?", ["a"])})
    assert not any(question.schema_name == "pluto_use_cases" for question in asker.asked)
    assert set(ranking(blank.retrieval)["q2"]) <= {"a", "b"}


def test_settings_that_mean_nothing():
    with pytest.raises(UsageError, match="at least 1"):
        PlutoSettings(hops=0)
    with pytest.raises(UsageError, match="more than 12 actions"):
        PlutoSettings(draws=12)


def test_a_better_description_is_kept_and_a_worse_one_is_not():
    documents = ["alpha", "beta", "gamma delta"]
    names = ["a", "b", "c"]
    cases = {"alpha": ["gamma delta please"], "beta": ["beta"], "gamma delta": ["alpha"]}
    edits = {"alpha": "gamma delta please alpha", "gamma delta": "nothing of use"}

    def answer(question):
        document = fenced(question.messages[-1].content)["documentation"]
        if question.schema_name == "pluto_use_cases":
            return {"use_cases": cases[document]}
        return {"description": edits[document]}

    asker = Recorded(answer)
    tools = ground(
        documents,
        names,
        lambda rows: text_scores(rows, BM25, BM25.contract()),
        asker,
        LLM,
        GroundingSettings(poor_rank=1),
    )
    assert tools.descriptions == ["gamma delta please alpha", "beta", "gamma delta"]
    assert (tools.edited, tools.questions, tools.pending) == (1, 5, 0)
    edited = [question for question in asker.asked if question.schema_name == "pluto_edit"]
    shown = fenced(edited[0].messages[-1].content)
    assert shown["found_instead"] == "gamma delta" and shown["requests"] == "- gamma delta please"


def test_tools_whose_questions_fail_keep_their_documents():
    tools = ground(
        ["one thing", "another thing"],
        ["a", "b"],
        lambda rows: text_scores(rows, BM25, BM25.contract()),
        Recorded(lambda question: None),
        LLM,
    )
    assert tools.descriptions == ["one thing", "another thing"] and tools.use_cases == [(), ()]
    assert [failed.subject for failed in tools.failures] == ["a", "b"]


def test_min_max():
    np.testing.assert_array_equal(
        min_max(np.array([[1, 3, 2], [5, 5, 5]], dtype=np.float32)), np.array([[0, 1, 0.5], [0, 0, 0]])
    )
    assert min_max(np.zeros((2, 0), dtype=np.float32)).shape == (2, 0)


def test_scores_say_the_place_and_never_rise():
    out = ordered([[4, 2], []], None, 10)
    assert out.counts.tolist() == [2, 0]
    assert out.tools[0].tolist() == [4, 2] and out.scores[0].tolist() == [2, 1]
