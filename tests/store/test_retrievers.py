from __future__ import annotations

import threading

import pytest

from store.access import retrievers, runs
from store.errors import InvalidRecord, NotFound
from store.models import Retriever, Run, State, Visibility
from store.records import Summary


def test_a_registry_entry_is_updated_in_place(database):
    with database.session() as session:
        first = retrievers.upsert(session, Retriever(key="qwen3-0.6b", name="Qwen3 0.6B"))
        entry = Retriever(
            key="qwen3-0.6b", name="Qwen3-Embedding-0.6B", family="Qwen3", parameters=7_568_000_000, dimension=1024,
            fine_tuned=False, open_weights=True,
        )  # fmt: skip
        second = retrievers.upsert(session, entry)
    assert second.id == first.id
    with database.reading() as session:
        stored = retrievers.get(session, "qwen3-0.6b")
        assert stored == second == retrievers.get_by_id(session, first.id)
        assert (stored.parameters, stored.fine_tuned, stored.base_key) == (7_568_000_000, False, None)
        listed = retrievers.list_retrievers(session)
        assert listed.to_dicts() == [vars(stored)]
        with pytest.raises(NotFound, match="other"):
            retrievers.get(session, "other")


def test_a_submitted_name_finds_its_retriever(database):
    with database.session() as session:
        known = retrievers.upsert(session, Retriever(key="minilm", name="all-MiniLM-L6-v2"))
        assert retrievers.ensure_for_name(session, " All-MiniLM-L6-V2 ").id == known.id
        assert retrievers.ensure_for_name(session, "minilm").id == known.id


def test_names_that_share_a_key_stay_two_retrievers(database):
    with database.session() as session:
        names = ["My Model", "my_model", "my--model", "模型", "検索"]
        made = [retrievers.ensure_for_name(session, name) for name in names]
        again = [retrievers.ensure_for_name(session, name) for name in names]
    assert [item.key for item in made] == ["my-model", "my-model-2", "my-model-3", "retriever", "retriever-2"]
    assert again == made
    assert [item.name for item in made] == names


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\u202eb", "a\x00b"])
def test_names_that_cannot_be_shown_are_refused(database, name):
    with database.session() as session, pytest.raises(InvalidRecord):
        retrievers.ensure_for_name(session, name)


def test_one_name_from_many_processes_is_one_retriever(database):
    keys: list[str] = []
    errors: list[BaseException] = []
    barrier = threading.Barrier(6)

    def submit(name: str) -> None:
        try:
            barrier.wait()
            with database.session() as session:
                keys.append(retrievers.ensure_for_name(session, name).key)
        except BaseException as error:
            errors.append(error)

    names = ["New Model", "new  model", "NEW MODEL", "new-model!", "New Model", "new-model!"]
    threads = [threading.Thread(target=submit, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(set(keys)) == ["new-model", "new-model-2"]
    with database.reading() as session:
        assert retrievers.list_retrievers(session).height == 2


def test_a_name_that_only_a_hidden_run_bears_is_nobodys_to_see(database, benchmark, ranking, artifacts):
    def stored(name: str, **how: str) -> str:
        with database.session() as session:
            tuned = retrievers.ensure_for_name(session, name)
            retrievers.upsert(session, Retriever(key=tuned.key, name=name, base_key="base"))
            run = Run(
                benchmark_version_id=benchmark.id, retriever_id=tuned.id, provenance="uploaded",
                ranking_artifact=ranking, **how,
            )  # fmt: skip
            runs.add_run(session, run, [Summary("old", "NDCG", 10, "micro", 0.5)], artifacts=artifacts)
            return tuned.key

    shown = stored("Shown", state=State.PUBLISHED.value)
    hidden = [
        stored("Private", state=State.PUBLISHED.value, visibility=Visibility.PRIVATE.value),
        stored("Withdrawn", state=State.WITHDRAWN.value),
        stored("Scored"),
    ]
    with database.reading() as session:
        assert retrievers.get_public(session, shown).name == "Shown"
        for key in (*hidden, "none"):
            with pytest.raises(NotFound, match=key):
                retrievers.get_public(session, key)
        assert retrievers.get_public(session, hidden[0], described=hidden).name == "Private"
        assert [item.key for item in retrievers.tuned_from(session, "base")] == [shown]
        described = retrievers.tuned_from(session, "base", described=hidden[:1])
        assert [item.name for item in described] == ["Private", "Shown"]
