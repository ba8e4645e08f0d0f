"""Compile the kernels before anybody waits for them.

numba compiles a kernel when it is first called, some 30 seconds for all of them, and keeps the machine code on disk
beside the sources. A stamp in the home's cache says that this was done for this version, so that later starts do not
spend a second on it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from pipeline.jobs.first_start import demo_run
from pipeline.jobs.site import Site
from pipeline.kernel_cache import sources_hash
from store.cache import FileCache


def warm_up(site: Site, say: Callable[[str], None]) -> None:
    """Read and score a bundled run, which calls every kernel that a submission needs; nothing is stored.

    Args:
        site: with the demo benchmarks.
        say: told in words what is being done, when there is anything to do.
    """
    stamps = FileCache.from_settings(site.settings, "prepared")
    stamp = f"kernels-{sources_hash()}-{version('numba')}"
    if stamps.get(stamp) is not None:
        return
    say("making the scoring kernels ready (half a minute, at the first start only)")
    from pipeline.jobs.submission import check_run

    checked = check_run(site, demo_run("tools"), "demo-tools")
    assert checked.per_query is not None
    stamps.put_bytes(stamp, b"")
