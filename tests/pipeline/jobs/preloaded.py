"""Imported by the server that forks the tests' processes, so that none of them has to: torch and litellm take 15 s.

Nothing may compute in threads here: what is forked would wait for them forever. A model loaded here would be no gain,
since forked processes compute several times slower with it.
"""

from __future__ import annotations

import bm25s
import dbos
import sentence_transformers
from numba.core.entrypoints import init_all

from pipeline.identifiers import IdTable
from pipeline.jobs import evaluation, probe_workflow, statistics_workflow, submission, worker
from pipeline.jobs.fields import analysis_workflow
from pipeline.llm import transport
from pipeline.scoring import kernel

__all__ = [
    "analysis_workflow",
    "bm25s",
    "dbos",
    "evaluation",
    "kernel",
    "probe_workflow",
    "sentence_transformers",
    "statistics_workflow",
    "submission",
    "worker",
]

transport._litellm()
# numba asks every installed package for extensions before the first kernel of a process, which takes a second.
init_all()
IdTable.from_ids(["a"]).find(["a"])
