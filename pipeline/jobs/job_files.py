"""Artifacts that only jobs name: files of batches that wait for answers, and answers that were imported."""

from __future__ import annotations

from collections import defaultdict

from pipeline.jobs.durable import has_jobs, job_client
from pipeline.jobs.job_client import ANSWER_FILES
from pipeline.jobs.site import Site
from pipeline.jobs.workflow_names import EVALUATE


def job_files(site: Site) -> dict[str, tuple[str, ...]]:
    """Hash → who needs it, in words, for every job that is not done: one that failed may be tried again.

    Raises:
        DatabaseUnavailable: the jobs cannot be reached.
    """
    if not has_jobs(site):
        return {}
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for status in job_client(site).list_workflows(name=EVALUATE, load_input=False):
        ended = (status.output or {}) if status.status == "SUCCESS" else {}
        if status.status == "SUCCESS" and not ended.get("pending"):
            continue
        for digest in ended.get("batch", ()):
            owners[digest].append(f"batch file of job {status.workflow_id}")
        for digest in (status.attributes or {}).get(ANSWER_FILES, ()):
            owners[digest].append(f"answers of job {status.workflow_id}")
    return {digest: tuple(jobs) for digest, jobs in owners.items()}
