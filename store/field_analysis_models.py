"""The SQL table of what was analysed beside a run over fields: single fields, variants, masked documents, tests."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlmodel import Field

from store.models import Table, _one_of, utc_now


class AnalysisKind(StrEnum):
    """What is analysed.

    ``fields``: each field alone (MFTR paper, Figure 4). ``variants``: the parts of MFTR put together in other ways
    (Table 3). ``masking``: raw documents without one top-level key (Figure 1). ``tests``: against the strongest
    baseline (the † of Table 2).
    """

    FIELDS = "fields"
    VARIANTS = "variants"
    MASKING = "masking"
    TESTS = "tests"


class FieldAnalysis(Table, table=True):
    """One analysis of one run; made again where what it was computed from has changed.

    Attributes:
        computed_from: hash of the code's version and of everything else that it follows from.
        artifact: hash of the frame; its columns are the kind's (``pipeline.jobs.fields.analyses``).
    """

    __tablename__ = "field_analysis"
    __table_args__ = (_one_of("kind", AnalysisKind),)

    run_id: str = Field(primary_key=True, foreign_key="run.id")
    kind: str = Field(primary_key=True)
    computed_from: str
    artifact: str
    made_at: datetime = Field(default_factory=utc_now)
