from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from sqlalchemy.exc import IntegrityError

from store.access import doctor, mftr
from store.errors import ArtifactMissing, InvalidRecord, NotFound
from store.field_text_models import FieldTexts, ParameterSource


@pytest.fixture
def texts(benchmark, artifacts):
    """Makes unsaved field texts; keywords replace fields."""

    def make(**fields):
        content = pl.DataFrame({"id": ["t1"], "fields": ['{"description": "a"}'], "failure": [None]})
        defaults = {
            "id": "",
            "benchmark_version_id": benchmark.id,
            "kind": "tools",
            "source": "rule-based",
            "rules_version": "1",
            "artifact": artifacts.put_frame(content),
            "items": 30,
            "filled": 29,
        }
        return FieldTexts(**defaults | fields)

    return make


def fold(number, **values):
    numbers = {"weights": (1.0, -2.0, 3.0, 0.5), "tau": 0.3, "alpha": 15.0, "required_penalty": 0.2}
    return mftr.FoldParameters(fold=number, **numbers | {"optional_penalty": 0.1} | values)


def test_field_texts_are_stored_once_under_their_content(database, artifacts, texts):
    with database.session() as session:
        first = mftr.add_field_texts(session, texts(label="first"), artifacts=artifacts)
        again = mftr.add_field_texts(session, texts(label="second", person="somebody"), artifacts=artifacts)
        assert again == first and first.label == "first", "the same content is there already and stays as it is"
        others = [
            mftr.add_field_texts(session, texts(**other), artifacts=artifacts)
            for other in (
                {"rules_version": "2"},
                {"source": "llm", "model": "a/b", "prompts": ["x@1"], "failures": 1},
                {"source": "llm", "model": "a/b", "prompts": ["x@2"], "failures": 1},
                {"source": "llm", "model": "a/c", "prompts": ["x@1"]},
                {"kind": "queries", "source": "original query"},
            )
        ]
        assert len({first.id, *(other.id for other in others)}) == 6
    with database.reading() as session:
        assert mftr.field_texts(session, first.id) == first == mftr.field_texts(session, first.id[:12])
        assert {found.id for found in mftr.list_field_texts(session)} == {first.id, *(other.id for other in others)}
        assert [found.kind for found in mftr.list_field_texts(session, kind="queries")] == ["queries"]
        for wrong in ("", "nothing", first.id[:4], "_" * 32, "%" * 8):
            with pytest.raises(NotFound):
                mftr.field_texts(session, wrong)
        assert doctor.check_integrity(session, artifacts).ok
        assert first.artifact in doctor.referenced(session)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "skills"},
        {"source": "guessed"},
        {"filled": 31},
        {"failures": -1},
        {"label": "two\nlines"},
        {"label": "x" * 201},
    ],
)
def test_field_texts_that_contradict_themselves_are_refused(database, artifacts, texts, wrong):
    with pytest.raises(InvalidRecord), database.session() as session:
        mftr.add_field_texts(session, texts(**wrong), artifacts=artifacts)
    with pytest.raises(ArtifactMissing), database.session() as session:
        mftr.add_field_texts(session, texts(artifact="0" * 64), artifacts=artifacts)


def test_the_tables_themselves_keep_the_closed_sets(database, texts):
    with pytest.raises(IntegrityError), database.session() as session:
        session.add(texts(id="x", source="guessed"))


def test_parameters_are_never_overwritten(database, artifacts, texts, benchmark):
    with database.session() as session:
        tools = mftr.add_field_texts(session, texts(), artifacts=artifacts).id
        queries = mftr.add_field_texts(session, texts(kind="queries", source="original query"), artifacts=artifacts).id
    settings = {"preset": "paper", "seed": 42}

    def made(source, folds):
        set_id = mftr.parameter_set_id(benchmark.id, "c" * 64, tools, queries, settings, source, folds)
        return mftr.ParameterSet(set_id, benchmark.id, "c" * 64, tools, queries, settings, source, 5, tuple(folds))

    learned = made(ParameterSource.LEARNED, [fold(4), fold(0, tau=-1.5)])
    with database.session() as session:
        first = mftr.add_parameters(session, learned)
        assert [f.fold for f in first.folds] == [0, 4] and first.folds[0].tau == -1.5
        changed = replace(learned, folds=(fold(0, tau=9.0),))
        assert changed.id == learned.id
        assert mftr.add_parameters(session, changed) == first
        imported = mftr.add_parameters(session, made(ParameterSource.IMPORTED, [fold(0)]))
        other = mftr.add_parameters(session, made(ParameterSource.IMPORTED, [fold(0, tau=0.4)]))
        assert len({first.id, imported.id, other.id}) == 3, "imported ones are named by their values"
    with database.reading() as session:
        assert mftr.parameters(session, first.id) == first
        assert len(mftr.list_parameters(session, benchmark_version_id=benchmark.id)) == 3
        assert mftr.parameters(session, first.id[:8]) == first, "one set of two folds"
        for wrong in ("nothing", "nothing else", first.id[:7], first.id[:8] + "%", "%" * 8):
            with pytest.raises(NotFound):
                mftr.parameters(session, wrong)
    for wrong in ([], [fold(0), fold(0)], [fold(5)], [fold(0, tau=float("nan"))], [fold(0, weights=(1.0,))]):
        with pytest.raises(InvalidRecord), database.session() as session:
            mftr.add_parameters(session, replace(learned, id="new", folds=tuple(wrong)))
    with pytest.raises(NotFound), database.session() as session:
        mftr.add_parameters(session, replace(learned, id="new", tools="nothing"))
