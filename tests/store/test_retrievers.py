from __future__ import annotations

import threading

import pytest

from store.access import retrievers
from store.errors import InvalidRecord, NotFound
from store.models import Retriever


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
