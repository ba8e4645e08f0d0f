"""A finished expansion and a downstream study for pages that show them, stored without asking anybody."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pipeline.jobs.downstream import import_study
from pipeline.jobs.site import Site
from pipeline.toolex.provenance import CANDIDATE_RANKS, PROVENANCE, QUERY_STATES
from pipeline.toolex.settings import ToolexSettings
from store.access import annotations, benchmarks
from store.annotation_models import Annotation

#: Of the expansion.
EXPANSION_ID = "e" * 32


def finished_expansion(site: Site, parent: str, made: str) -> str:
    """Say that a stored version was made from another one by an expansion; nothing is known of its questions."""
    settings = ToolexSettings()
    frames = {"provenance": PROVENANCE, "ranks": CANDIDATE_RANKS, "states": QUERY_STATES}
    named = {name: site.artifacts.put_frame(pl.DataFrame(schema=schema)) for name, schema in frames.items()}
    with site.database.session() as session:
        before, after = benchmarks.get(session, parent), benchmarks.get(session, made)
        row = Annotation(
            id=EXPANSION_ID,
            benchmark_version_id=before.id,
            # Not the version's own name, which is taken by now.
            version=f"{after.version}-expanded",
            settings=settings.as_json(),
            settings_hash=settings.hash,
        )
        annotations.add(session, row)
        annotations.finish(session, EXPANSION_ID, after.id, named, artifacts=site.artifacts)
    return EXPANSION_ID


def stored_study(site: Site, folder: Path) -> None:
    """A downstream study of two settings over two tasks, of no benchmark in particular."""
    file = folder / "study.csv"
    file.write_text("task,category,setting,passed\n1,G1-Inst,a,1\n1,G1-Inst,b,0\n2,G1-Inst,a,1\n2,G1-Inst,b,1\n")
    import_study(site, file, "Two tasks")
