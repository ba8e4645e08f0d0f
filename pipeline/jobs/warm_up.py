"""Compile the kernels before anybody waits for them.

numba compiles a kernel when it is first called, some 30 seconds for all of them, and keeps the machine code on disk;
with it there, this takes about a second.
"""

from __future__ import annotations

from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.jobs.submission import check_run


def warm_up(site: Site) -> None:
    """Read and score a bundled run, which calls every kernel that a submission needs; nothing is stored."""
    checked = check_run(site, demo_run("tools"), "demo-tools")
    assert checked.per_query is not None
