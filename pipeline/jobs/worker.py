"""A worker: the process that does jobs.

It says every few seconds that it is alive, takes up the jobs of workers that fell silent, stops in order on SIGTERM,
and, beside ``equirank serve``, ends with the process that started it. A killed worker loses no job: DBOS knows which
steps were finished, and the rest is done again by the next one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from pipeline.errors import EnvironmentProblem
from pipeline.jobs.durable import EMBEDDED, VERSION, close_job_client, is_embedded, job_client, worker_config
from pipeline.jobs.job_client import GIVEN_UP
from pipeline.jobs.queues import QUEUES, register_queues, served
from pipeline.jobs.site import Site
from store.access import freshness, workers
from store.database import exclusive
from store.errors import StoreError

#: Longest time between two heartbeats, in seconds.
_BEAT_SECONDS = 5.0
#: Workers that may take a job over one after another before it is given up.
_MAX_TAKEOVERS = 10

Say = Callable[[str], None]


def default_queues() -> tuple[str, ...]:
    """What a worker serves when nothing is said: ``gpu`` only where there is one."""
    return tuple(queue for queue in QUEUES if queue != "gpu" or has_gpu())


def has_gpu() -> bool:
    """Whether this machine seems to have an NVIDIA GPU; torch is not loaded for the question."""
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def require_shared_store(site: Site) -> None:
    """Refuse a worker of its own on an embedded store.

    Raises:
        EnvironmentProblem: the database is a SQLite file.
    """
    if is_embedded(site):
        raise EnvironmentProblem(
            f"`equirank worker` needs a database that web server and workers share, and this one is a SQLite file "
            f"({site.database.url}). Set EQUIRANK_DATABASE_URL=postgresql://user:password@host:5432/name and "
            "EQUIRANK_ARTIFACT_URL to a place that all of them reach (s3://bucket/path, or a shared folder), for the "
            "web server too. On one machine no worker is needed: `equirank serve` has its own"
        )


def run_worker(site: Site, queues: tuple[str, ...], *, say: Say, parent: int | None = None) -> None:
    """Do jobs until told to stop (SIGTERM, SIGINT), or until ``parent`` is gone.

    Args:
        site: prepared.
        queues: what to serve.
        say: told in words what happens.
        parent: process to end with; None ends with nobody.

    Raises:
        StoreError: the database cannot be reached at the start.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def gone() -> bool:
        return stop.is_set() or (parent is not None and os.getppid() != parent)

    with _only_worker(site, gone) if is_embedded(site) else nullcontext():
        if not gone():
            _work(site, queues, say, gone, stop)


@contextmanager
def _only_worker(site: Site, gone: Callable[[], bool]) -> Iterator[None]:
    """Wait until no other worker is at this home; the lock goes with the process, however it ends."""
    site.settings.home.mkdir(parents=True, exist_ok=True)
    with (site.settings.home / "worker.lock").open("wb") as file:
        while not gone() and not _lock(file):
            time.sleep(0.5)
        yield


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _work(site: Site, queues: tuple[str, ...], say: Say, gone: Callable[[], bool], stop: threading.Event) -> None:
    _limit_threads(site.settings.worker_threads)
    host = socket.gethostname()
    name = EMBEDDED if is_embedded(site) else f"{host}-{os.getpid()}-{secrets.token_hex(3)}"
    device = "gpu" if has_gpu() else "cpu"

    def beat() -> None:
        with site.database.session() as session:
            workers.beat(session, name, host=host, pid=os.getpid(), queues=queues, device=device)

    beat()  # before any job is taken, else another worker would take it away
    register_queues(job_client(site))
    from dbos import DBOS

    from pipeline.jobs import evaluation, probe_workflow, statistics_workflow, worker_site
    from pipeline.jobs.annotations import workflow as annotation_workflow
    from pipeline.jobs.fields import analysis_workflow as field_analysis_workflow

    del evaluation, probe_workflow, annotation_workflow  # imported for their workflows
    worker_site.use_site(site)
    DBOS(config=worker_config(site, name))
    DBOS.listen_queues(served(queues))
    DBOS.launch()
    say(f"worker {name} serves {', '.join(queues)} on {device}")
    try:
        queue = "cpu" if "cpu" in queues else queues[0]

        def request_missing() -> None:
            statistics_workflow.request_missing(site, queue)
            field_analysis_workflow.request_missing(site)

        _watch(site, beat, request_missing, say, gone, stop)
    finally:
        DBOS.destroy()
        with suppress(StoreError), site.database.session() as session:
            workers.remove(session, name, os.getpid())
        close_job_client(site)
        say(f"worker {name} stopped")


def _watch(
    site: Site,
    beat: Callable[[], None],
    request_missing: Callable[[], object],
    say: Say,
    gone: Callable[[], bool],
    stop: threading.Event,
) -> None:
    """Beat and sweep until it is time to go; a database that is away for a while ends nothing."""
    stamp = ""
    every = min(_BEAT_SECONDS, site.settings.worker_lost_seconds / 4)
    due = time.monotonic() + every
    while not gone():
        stop.wait(0.5)
        if time.monotonic() < due:
            continue
        due = time.monotonic() + every
        try:
            beat()
            if not is_embedded(site):
                take_over(site, say)
            with site.database.reading() as session:
                now = freshness.runs_stamp(session)
            if now != stamp:
                request_missing()
                stamp = now
        except StoreError as error:
            say(f"the database does not answer ({error}); trying again")
        except Exception as error:  # the job database's driver, which raises what it likes
            say(f"the jobs do not answer ({type(error).__name__}); trying again")


def take_over(site: Site, say: Say) -> list[str]:
    """Put the jobs of workers that fell silent back into their queues; returns their ids.

    One worker does so at a time: the jobs are listed under the lock, and once resumed they are nobody's.
    """
    client = job_client(site)
    with site.database.session() as session:
        exclusive(session, "take over jobs")
        known = workers.list_workers(session)
        limit = site.settings.worker_lost_seconds
        living = {worker.id for worker in known if worker.silent_s <= limit}
        running = client.list_workflows(status="PENDING", app_version=VERSION, load_input=False, load_output=False)
        lost = [status for status in running if status.executor_id not in living]
        for status in lost:
            attributes = status.attributes or {}
            times = int(attributes.get("takeovers", 0)) + 1
            if times > _MAX_TAKEOVERS:
                why = (
                    f"{_MAX_TAKEOVERS} workers died one after another while they did this job, as when their memory "
                    "is too small for the model: choose a smaller model or more memory, then try again"
                )
                client.update_workflow_attributes(status.workflow_id, {GIVEN_UP: why}, merge=True)
                client.cancel_workflow(status.workflow_id, cancel_children=True)
                say(f"gave up job {status.workflow_id}")
                continue
            client.update_workflow_attributes(status.workflow_id, {"takeovers": times}, merge=True)
            client.resume_workflow(status.workflow_id, queue_name=status.queue_name)
            say(f"took over job {status.workflow_id} of worker {status.executor_id}, which fell silent")
        # Kept for a day, so that `equirank doctor` can name them.
        workers.forget(session, [worker.id for worker in known if worker.silent_s > max(limit, 86_400)])
    return [status.workflow_id for status in lost]


def _limit_threads(threads: int) -> None:
    """Before torch and numba are imported, which read these at import."""
    if threads:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(threads)


def main() -> None:
    """The worker beside ``equirank serve``, which starts it as ``python -m pipeline.jobs.worker PARENT_PID``."""
    from pipeline.jobs.demo_runs import submit_demo_runs
    from pipeline.jobs.site import open_site

    parent = int(sys.argv[1])
    os.nice(5)  # the pages go first

    def say(line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    try:
        site = open_site()
        with suppress(StoreError):
            submit_demo_runs(site)
        run_worker(site, default_queues(), say=say, parent=parent)
    except Exception as error:
        say(f"the worker stopped: {error}")
        code = 1
    else:
        code = 0
    sys.stderr.flush()
    # Threads that are amid a batch would hold the exit up; what they do is done again.
    os._exit(code)


if __name__ == "__main__":
    main()
