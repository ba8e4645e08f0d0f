"""Texts in fields and the parameters learned over them: stored once under a name that follows from their content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlmodel import Session, col

from store.access.texts import has_unseen
from store.artifacts import ArtifactStore
from store.database import exclusive
from store.errors import InvalidRecord, NotFound
from store.field_text_models import FieldTextKind, FieldTexts, FieldTextSource, LearnedParameters, ParameterSource
from store.records import record

_LONGEST_LABEL = 200


@dataclass(frozen=True)
class FieldTextsRecord:
    """The tools or queries of a benchmark version in fields; see ``store.field_text_models.FieldTexts``."""

    id: str
    benchmark_version_id: int
    kind: str
    source: str
    model: str
    prompts: tuple[str, ...]
    rules_version: str
    artifact: str
    items: int
    filled: int
    failures: int
    counts: Mapping[str, Any]
    label: str
    person: str
    created_at: datetime


@dataclass(frozen=True)
class FoldParameters:
    """What one fold learned; see ``store.field_text_models.LearnedParameters``.

    Attributes:
        weights: of description, parameters, response and examples.
    """

    fold: int
    weights: tuple[float, float, float, float]
    tau: float
    alpha: float
    required_penalty: float
    optional_penalty: float
    bias: float = 0.0


@dataclass(frozen=True)
class ParameterSet:
    """The folds of one training, or of one imported file.

    Attributes:
        id: names the set; follows from everything below but the date.
        tools, queries: ids of the field texts.
        folds: ascending by fold; an imported set may lack some.
        fold_count: folds in all.
    """

    id: str
    benchmark_version_id: int
    contract_hash: str
    tools: str
    queries: str
    settings: Mapping[str, Any]
    source: ParameterSource
    fold_count: int
    folds: tuple[FoldParameters, ...]
    created_at: datetime | None = field(default=None, compare=False)


def field_text_id(
    benchmark_version_id: int,
    kind: str,
    source: str,
    artifact: str,
    *,
    model: str = "",
    prompts: Sequence[str] = (),
    rules_version: str = "",
) -> str:
    """The name of field texts: 32 hex digits over what they hold and where they come from."""
    return _digest([benchmark_version_id, kind, source, artifact, model, sorted(prompts), rules_version])


def add_field_texts(session: Session, row: FieldTexts, *, artifacts: ArtifactStore) -> FieldTextsRecord:
    """Store field texts; the same again returns the row that is there. ``row.id`` is set here.

    Args:
        session: of ``Database.session``.
        row: everything but its id.
        artifacts: where the frame is.

    Raises:
        InvalidRecord: a value is outside its closed set, the counts contradict each other, or the label cannot be
            shown in one line.
        ArtifactMissing, ArtifactDamaged: the frame is not whole.
    """
    if row.kind not in list(FieldTextKind) or row.source not in list(FieldTextSource):
        raise InvalidRecord(f"there are no field texts of kind {row.kind!r} and source {row.source!r}")
    if not (0 <= row.filled <= row.items and 0 <= row.failures <= row.items):
        raise InvalidRecord(f"{row.filled} filled and {row.failures} failed of {row.items} texts cannot be")
    if len(row.label) > _LONGEST_LABEL or has_unseen(row.label):
        raise InvalidRecord(f"a label is at most {_LONGEST_LABEL} characters, without line ends or control characters")
    artifacts.require(row.artifact)
    row.id = field_text_id(
        row.benchmark_version_id,
        row.kind,
        row.source,
        row.artifact,
        model=row.model,
        prompts=row.prompts,
        rules_version=row.rules_version,
    )
    exclusive(session, f"field texts {row.id}")
    found = session.get(FieldTexts, row.id)
    if found is None:
        session.add(row)
        session.flush()
        found = row
    return record(FieldTextsRecord, found)


def field_texts(session: Session, field_texts_id: str) -> FieldTextsRecord:
    """Field texts by id, or by the first eight or more digits of one.

    Raises:
        NotFound: there are none, or several begin so.
    """
    found = session.get(FieldTexts, field_texts_id)
    if found is None and _may_begin_an_id(field_texts_id):
        query = select(FieldTexts).where(col(FieldTexts.id).startswith(field_texts_id)).limit(2)
        several = list(session.scalars(query))
        found = several[0] if len(several) == 1 else None
    if found is None:
        raise NotFound(f"there are no field texts {field_texts_id!r}")
    return record(FieldTextsRecord, found)


def list_field_texts(
    session: Session, *, benchmark_version_id: int | None = None, kind: FieldTextKind | str | None = None
) -> list[FieldTextsRecord]:
    """Field texts, the newest first."""
    query = select(FieldTexts)
    if benchmark_version_id is not None:
        query = query.where(col(FieldTexts.benchmark_version_id) == benchmark_version_id)
    if kind is not None:
        query = query.where(col(FieldTexts.kind) == str(kind))
    rows = session.scalars(query.order_by(col(FieldTexts.created_at).desc(), col(FieldTexts.id)))
    return [record(FieldTextsRecord, row) for row in rows]


def parameter_set_id(
    benchmark_version_id: int,
    contract_hash: str,
    tools: str,
    queries: str,
    settings: Mapping[str, Any],
    source: ParameterSource | str,
    imported: Sequence[FoldParameters] = (),
) -> str:
    """The name of a parameter set: 32 hex digits over what decides it.

    Args:
        benchmark_version_id, contract_hash, tools, queries, settings: see ``ParameterSet``.
        source: learned ones follow from the other arguments; imported ones from their values too.
        imported: the values, for imported ones.
    """
    values = [_values(fold) for fold in imported] if source == ParameterSource.IMPORTED else []
    return _digest([benchmark_version_id, contract_hash, tools, queries, dict(settings), str(source), values])


def add_parameters(session: Session, made: ParameterSet) -> ParameterSet:
    """Store a parameter set; when its id is there already, that set is returned and nothing changes.

    Raises:
        InvalidRecord: there is no fold, a fold is repeated or out of range, or a number is not finite.
        NotFound: the field texts are not stored.
    """
    numbers = [fold.fold for fold in made.folds]
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= n < made.fold_count for n in numbers):
        raise InvalidRecord(f"the folds {numbers} are not distinct numbers from 0 to {made.fold_count - 1}")
    for fold in made.folds:
        if len(fold.weights) != 4 or not all(map(math.isfinite, _values(fold)[1:])):
            raise InvalidRecord(f"the parameters of fold {fold.fold} hold a number that is not finite")
    for texts in (made.tools, made.queries):
        field_texts(session, texts)
    exclusive(session, f"parameters {made.id}")
    known = _parameters(session, made.id)
    if known is not None:
        return known
    settings = dict(made.settings)
    for fold in made.folds:
        session.add(
            LearnedParameters(
                set_id=made.id,
                benchmark_version_id=made.benchmark_version_id,
                contract_hash=made.contract_hash,
                tools=made.tools,
                queries=made.queries,
                settings_hash=_digest(settings),
                settings=settings,
                source=str(made.source),
                fold=fold.fold,
                folds=made.fold_count,
                weights=list(fold.weights),
                bias=fold.bias,
                tau=fold.tau,
                alpha=fold.alpha,
                required_penalty=fold.required_penalty,
                optional_penalty=fold.optional_penalty,
            )
        )
    session.flush()
    stored = _parameters(session, made.id)
    assert stored is not None
    return stored


def parameters(session: Session, set_id: str) -> ParameterSet:
    """A parameter set by id, or by the first eight or more digits of one.

    Raises:
        NotFound: there is none, or several begin so.
    """
    found = _parameters(session, set_id)
    if found is None and _may_begin_an_id(set_id):
        column = col(LearnedParameters.set_id)
        several = list(session.scalars(select(column).where(column.startswith(set_id)).distinct().limit(2)))
        found = _parameters(session, several[0]) if len(several) == 1 else None
    if found is None:
        raise NotFound(f"there are no learned parameters {set_id!r}")
    return found


def list_parameters(session: Session, *, benchmark_version_id: int | None = None) -> list[ParameterSet]:
    """Parameter sets, the newest first."""
    query = select(LearnedParameters)
    if benchmark_version_id is not None:
        query = query.where(col(LearnedParameters.benchmark_version_id) == benchmark_version_id)
    query = query.order_by(col(LearnedParameters.created_at).desc(), col(LearnedParameters.set_id))
    found: dict[str, list[LearnedParameters]] = {}
    for row in session.scalars(query):
        found.setdefault(row.set_id, []).append(row)
    return [_set(rows) for rows in found.values()]


def _may_begin_an_id(text: str) -> bool:
    return len(text) >= 8 and text.isalnum()


def _parameters(session: Session, set_id: str) -> ParameterSet | None:
    rows = list(session.scalars(select(LearnedParameters).where(col(LearnedParameters.set_id) == set_id)))
    return _set(rows) if rows else None


def _set(rows: list[LearnedParameters]) -> ParameterSet:
    first = rows[0]
    folds = [
        FoldParameters(
            fold=row.fold,
            weights=(row.weights[0], row.weights[1], row.weights[2], row.weights[3]),
            tau=row.tau,
            alpha=row.alpha,
            required_penalty=row.required_penalty,
            optional_penalty=row.optional_penalty,
            bias=row.bias,
        )
        for row in sorted(rows, key=lambda row: row.fold)
    ]
    return ParameterSet(
        id=first.set_id,
        benchmark_version_id=first.benchmark_version_id,
        contract_hash=first.contract_hash,
        tools=first.tools,
        queries=first.queries,
        settings=dict(first.settings),
        source=ParameterSource(first.source),
        fold_count=first.folds,
        folds=tuple(folds),
        created_at=first.created_at,
    )


def _values(fold: FoldParameters) -> list[float]:
    rest = [fold.tau, fold.alpha, fold.required_penalty, fold.optional_penalty, fold.bias]
    return [float(fold.fold), *fold.weights, *rest]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
