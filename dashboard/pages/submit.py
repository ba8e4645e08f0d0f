"""Submit a run: drop a file, see how it was read and what it scores, then publish it or keep it private."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import streamlit as st

from dashboard import reading
from dashboard.components import permalinks
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import shown_errors
from dashboard.components.run_detail import read_run, run_address
from dashboard.components.run_report import show_reading, show_scores
from dashboard.components.submission_form import submission_form
from dashboard.components.untrusted import plain
from dashboard.current_site import the_site
from pipeline.jobs.first_start import demo_run
from pipeline.jobs.submission import LOCAL_PERSON, CheckedRun, check_run, submit_run
from pipeline.run import Order, Verdict
from store.records import BenchmarkRecord

TARGET = "submit_benchmark"
AS_WRITTEN = "as the file says"
_ORDERS = {
    AS_WRITTEN: "as the file says",
    "score": "by score, higher is better",
    "rank": "by rank, lower is better",
    "distance": "by distance, lower is better",
}


def choose_target() -> BenchmarkRecord | None:
    """The benchmark to score against, among those with content."""
    records = [record for record in reading.benchmarks() if record.has_content]
    if not records:
        no_benchmarks()
        return None
    first = min(records, key=lambda record: (record.is_demo, record.kind != "tool"))
    return choose_version(
        records,
        TARGET,
        first.name,
        label="Benchmark to score against",
        help="Benchmarks whose queries and labels are stored here. `equirank benchmark import` adds others.",
        width=420,
    )


def other_target(problems: Sequence[str]) -> None:
    """A button that changes to the benchmark whose ids the file has, where a problem names one."""
    for record in reading.benchmarks():
        if record.has_content and any(f"match benchmark {record.name}:" in problem for problem in problems):
            st.button(
                f"Score it against {plain(record.title)}",
                icon=":material/swap_horiz:",
                on_click=permalinks.reset({TARGET: record.name}),
                key="submit_other_target",
            )
            return


def sample_of(benchmark: BenchmarkRecord) -> Path | None:
    """The bundled sample run of a demo benchmark."""
    if not benchmark.is_demo:
        return None
    path = demo_run(f"{benchmark.kind}s")
    return path if path.is_file() else None


def rounding_note(limit: int) -> str | None:
    """Why the uploader's own line names another limit, where it does.

    The browser divides the bytes by powers of 1,000, takes the next unit beyond 500, and rounds to whole ones: 512 MiB
    are 0.54 GB, which reads "1GB per file". Streamlit has no option for that line.
    """
    if limit * 2**20 <= 500 * 1000**2:
        return None
    return f"The line in the box rounds the limit to whole gigabytes. What counts is {limit} MB."


def choose_file(benchmark: BenchmarkRecord) -> tuple[str, Path | BinaryIO, str] | None:
    """What is to be scored: a key that changes with the file, its bytes, its name."""
    nonce = st.session_state.get("submit_nonce", 0)
    limit = the_site().settings.limit_upload_mb
    uploaded = st.file_uploader(
        f"Run file, up to {limit} MB: TREC, JSON, JSON Lines, CSV, TSV or Parquet; .gz and .zst too",
        key=f"submit_file_{nonce}",
        max_upload_size=limit,
    )
    note = rounding_note(limit)
    if note is not None and uploaded is None:
        st.caption(note)
    sample = sample_of(benchmark)
    if uploaded is not None:
        st.session_state.pop("submit_sample", None)
        return uploaded.file_id, uploaded, uploaded.name
    if sample is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if st.button("Score the sample run", icon=":material/play_arrow:", key="submit_try"):
                st.session_state["submit_sample"] = benchmark.name
            st.download_button(
                "Download it",
                data=sample.read_bytes,
                file_name=sample.name,
                mime="text/plain",
                icon=":material/download:",
                on_click="ignore",
                key="submit_sample_file",
            )
        st.caption("A BM25 run of this benchmark in TREC format, one line a result: query, Q0, tool, rank, score, tag.")
        if st.session_state.get("submit_sample") == benchmark.name:
            return f"sample {benchmark.name}", sample, sample.name
    return None


def reading_options(key: str, checked: CheckedRun | None) -> tuple[Order | None, str | None]:
    """Order and part, asked for only when the file leaves them open (or when they were given)."""
    problems = [] if checked is None else [problem.message.lower() for problem in checked.reading.report.problems]
    order_key, part_key = f"submit_order_{key}", f"submit_part_{key}"
    order: Order | None = None
    part: str | None = None
    if any("order" in message for message in problems) or st.session_state.get(order_key, AS_WRITTEN) != AS_WRITTEN:
        chosen = st.selectbox(
            "How the lists are ordered", list(_ORDERS), format_func=_ORDERS.__getitem__, key=order_key
        )
        order = None if chosen == AS_WRITTEN else Order(chosen)
    if any("part" in message or "subset" in message for message in problems) or st.session_state.get(part_key):
        given = st.text_input("Part of the file (SUBSET/SPLIT)", key=part_key)
        part = given.strip() or None
    return order, part


def checked_run(
    key: str, source: Path | BinaryIO, benchmark: BenchmarkRecord, order: Order | None, part: str | None
) -> CheckedRun:
    """The file read and scored, kept in the session until something about it changes."""
    wanted = (key, benchmark.name, order, part)
    kept = st.session_state.get("submit_checked")
    if kept is not None and kept[0] == wanted:
        checked: CheckedRun = kept[1]
        return checked
    st.session_state.pop("submit_checked", None)
    bar = st.progress(0.0, "Reading the file")

    def report(done: float) -> None:
        bar.progress(min(max(done, 0.0), 1.0), "Reading the file")

    try:
        if not isinstance(source, Path):
            source.seek(0)
        checked = check_run(
            the_site(), source, benchmark.name, order=order, part=part,
            progress=report,
        )  # fmt: skip
    finally:
        bar.empty()
    st.session_state["submit_checked"] = (wanted, checked)
    return checked


def done(run_id: str) -> None:
    """What became of the submission, and where it can be seen."""
    page = read_run(run_id, person=LOCAL_PERSON)
    address = permalinks.full_address(run_address(page))
    name = plain(page.retriever.name)
    if page.run.visibility == "public":
        st.success(f"**{name}** is on the leaderboard of {plain(page.benchmark.name)}.", icon=":material/check_circle:")
        permalinks.leaderboard_link(
            label="See it on the leaderboard",
            icon=":material/leaderboard:",
            query_params={"lb_benchmark": page.benchmark.name, "run": page.run.id},
        )
        st.caption("Its permalink:")
    else:
        st.success(f"**{name}** is kept private. It is in no list; this link opens it:", icon=":material/lock:")
    st.code(address, language=None)
    st.page_link(
        "pages/run.py", label="Open the run", query_params={"run": page.run.id, "token": page.run.private_token or ""}
        if page.run.visibility == "private" else {"run": page.run.id},
    )  # fmt: skip
    if st.button("Submit another run", key="submit_again"):
        st.session_state.pop("submit_done", None)
        st.rerun()


def page() -> None:
    """Draw the page."""
    with st.container(gap="xxsmall"):
        st.title("Submit a run", anchor=False)
        st.markdown("Drop a run file: it is read, checked and scored in seconds. Nothing is stored until you say so.")
    finished = st.session_state.get("submit_done")
    if finished:
        done(finished)
        return
    benchmark = choose_target()
    if benchmark is None:
        return
    chosen = choose_file(benchmark)
    if chosen is None:
        return
    key, source, name = chosen
    previous = st.session_state.get("submit_checked")
    last = previous[1] if previous is not None and previous[0][:2] == (key, benchmark.name) else None
    order, part = reading_options(key, last)
    checked = checked_run(key, source, benchmark, order, part)
    report = checked.reading.report
    st.subheader("The file", anchor=False)
    show_reading(report)
    if report.verdict is Verdict.REFUSE:
        other_target([problem.message for problem in report.problems])
        if last is None and any("order" in p.message.lower() or "part" in p.message.lower() for p in report.problems):
            st.rerun()
        return
    st.subheader("Its scores", anchor=False)
    show_scores(checked)
    st.subheader("Publish it or keep it private", anchor=False)
    answer = submission_form(checked, key)
    if answer is None:
        return
    metadata, publish = answer
    run_id = submit_run(the_site(), checked, source, metadata, publish=publish, file_name=name)
    st.session_state["submit_done"] = run_id
    st.session_state["submit_nonce"] = st.session_state.get("submit_nonce", 0) + 1
    for kept in ("submit_checked", "submit_sample"):
        st.session_state.pop(kept, None)
    st.rerun()


with shown_errors():
    page()
