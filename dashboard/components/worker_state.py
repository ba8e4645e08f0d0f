"""Whether somebody is there to do jobs, in words."""

from __future__ import annotations

import streamlit as st

from dashboard.components.moments import duration
from dashboard.current_site import the_site
from pipeline.jobs.durable import is_embedded
from store.access import workers
from store.records import WorkerRecord


def known_workers() -> list[WorkerRecord]:
    """All workers that did not stop in order, the one heard last first."""
    with the_site().database.reading() as session:
        return workers.list_workers(session)


def is_alive(worker: WorkerRecord) -> bool:
    """Whether its heartbeat is recent."""
    return worker.silent_s <= the_site().settings.worker_lost_seconds


def has_gpu_worker(known: list[WorkerRecord]) -> bool:
    """Whether a living worker serves the queue of GPUs."""
    return any(is_alive(worker) and "gpu" in worker.queues for worker in known)


def show_workers(known: list[WorkerRecord], queue: str | None = None) -> bool:
    """One line on the workers; a warning with what to do where none does the work.

    Args:
        known: of ``known_workers``.
        queue: the queue that matters here; None for any.

    Returns:
        Whether a living worker is there.
    """
    living = [worker for worker in known if is_alive(worker) and (queue is None or queue in worker.queues)]
    if living:
        first = living[0]
        others = f", and {len(living) - 1} more" if len(living) > 1 else ""
        st.caption(
            f"A worker is there: heard {duration(first.silent_s)} ago, computes on the {first.device.upper()}{others}."
        )
        return True
    silent = [worker for worker in known if queue is None or queue in worker.queues]
    if silent:
        what = f"**The worker has been silent for {duration(silent[0].silent_s)}.** It died or is cut off."
    elif queue is None or not known:
        what = "**No worker is running.**"
    else:
        what = f"**No worker serves the queue {queue}.**"
    st.warning(f"{what} Jobs wait until one is there; nothing is lost. {_how_to_start(queue)}", icon=":material/pause:")
    return False


def _how_to_start(queue: str | None) -> str:
    if is_embedded(the_site()):
        return "`equirank serve` starts one beside the site, and starts it again when it stops."
    return "Start one with `equirank worker" + (f" --queues {queue}`." if queue else "`.")
