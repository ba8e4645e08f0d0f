"""Evaluate a model: pick a benchmark and a retriever, see what it takes, start it, watch it, read what it scored.

The form and the job are both states of the address: ``?job=…`` is a job, everything else the form.
"""

from __future__ import annotations

import streamlit as st

from dashboard import reading
from dashboard.components import permalinks
from dashboard.components.benchmark_choice import choose_version
from dashboard.components.empty import no_benchmarks
from dashboard.components.failures import show, shown_errors
from dashboard.components.job_view import show_job
from dashboard.components.method_choice import ChosenMethod, asking_sentence, choose_method, choose_weights
from dashboard.components.model_choice import PREFIX, ChosenModel, choose_model
from dashboard.components.moments import duration
from dashboard.components.numbers import whole
from dashboard.components.probe_view import probe_button, show_probe
from dashboard.components.run_detail import read_run
from dashboard.components.untrusted import plain
from dashboard.components.worker_state import has_gpu_worker, known_workers, show_workers
from dashboard.current_site import the_site
from pipeline.errors import EquiRankError
from pipeline.jobs import job_client
from pipeline.jobs.estimate import Estimate, estimate
from pipeline.jobs.evaluation_request import EvaluationRequest, permissions
from pipeline.jobs.fields.methods import FieldMethod
from pipeline.jobs.submission import LOCAL_PERSON
from pipeline.retrieval.contract import Dtype, Preset
from pipeline.retrieval.models import resolve_model
from pipeline.retrieval.retrieve import Method
from store.errors import NotFound, StoreError
from store.records import BenchmarkRecord

JOB = "job"
#: Where ``probe_view`` keeps the last probe, which outlives the form.
_PROBE = "ev_probe"

_PRESETS = {
    Preset.CARD: "Encodes as the model card says.",
    Preset.PAPER: "Encodes as the papers' harness did, to compare with their figures.",
}
_LEARNS = {"one label": "ground_truth", "every valid tool": "equivalents"}
_AS_PRESET = "as the preset says"


def choose_benchmark() -> BenchmarkRecord | None:
    """A benchmark with content; ToolEq's figures alone cannot be measured against."""
    records = [record for record in reading.benchmarks() if record.has_content]
    if not records:
        no_benchmarks()
        return None
    first = next((record.name for record in records if not record.is_demo), records[0].name)
    return choose_version(records, PREFIX + "benchmark", first, label="Benchmark")


def choose_options(benchmark: BenchmarkRecord, model: ChosenModel) -> ChosenMethod:
    """Method with its options, encoding, instruction and what only some models have."""
    dense = model.known is None or model.known.entry.dense
    chosen_method = choose_method(benchmark, dense=dense)
    method, said = chosen_method.method, dict(chosen_method.said)
    if method is Method.ADAPTER:
        learns = permalinks.segments("The adapter learns", list(_LEARNS), PREFIX + "learns", "one label")
        said["positives"] = _LEARNS[learns]
    with st.container(gap="xsmall"):
        preset = permalinks.segments("Encoding", [str(p) for p in Preset], PREFIX + "preset", str(Preset.CARD))
        st.caption(_PRESETS[Preset(preset)])
    said["preset"] = preset
    weights = choose_weights(benchmark, chosen_method, _contract_hash(model, preset))
    if weights:
        said["weights"] = weights
    if not (isinstance(method, FieldMethod) and method.needs.fields):
        # MFTR and its variants make queries of their own.
        said["instruction"] = permalinks.switch(
            "Give queries their instruction", PREFIX + "instruction",
            help="Puts the instruction that a query comes with before it, where the benchmark has one.",
        )  # fmt: skip
    with st.popover("More options", icon=":material/tune:", type="tertiary"):
        said["depth"] = permalinks.number(
            "Results kept for a query", PREFIX + "depth", 1, the_site().settings.limit_depth, 100
        )
        if dense:
            chosen = permalinks.select(
                "Number format", [_AS_PRESET, *(str(d) for d in Dtype)], PREFIX + "dtype", _AS_PRESET,
                help="bfloat16 is about 2.5 times as fast on processors that have it; scores may move in the third "
                "decimal.",
            )  # fmt: skip
            said["dtype"] = "" if chosen == _AS_PRESET else chosen
    return ChosenMethod(method, said, chosen_method.missing)


def _contract_hash(model: ChosenModel, preset: str) -> str:
    """How the model encodes; "" where that is not known before it is tried or not allowed here."""
    if model.known is None:
        return ""
    try:
        found = resolve_model(model.known.entry.key, permissions=permissions(the_site().settings))
    except EquiRankError:
        return ""
    return found.contract(preset).hash


@st.cache_data(ttl=20, max_entries=64, show_spinner="Counting what there is to encode")
def _estimate(place: str, request: EvaluationRequest) -> Estimate:
    """Kept for a moment: every click on the page asks again."""
    del place
    return estimate(the_site(), request)


def estimate_sentence(found: Estimate) -> str:
    """What a job takes, in words."""
    texts = f"{whole(found.documents)} documents and {whole(found.queries)} queries"
    if not found.to_encode:
        held = "" if found.tokens == 0 and found.documents == 0 else f"{texts}, nothing to encode."
        return f"**About {duration(found.seconds)}** once it starts: {held}"
    total = found.documents + found.queries
    cached = total - found.to_encode
    rest = f"; the embeddings of the other {whole(cached)} are here already" if cached > 0 else ""
    return (
        f"**About {duration(found.seconds)}** once it starts: {texts}, of which {whole(found.to_encode)} texts are to "
        f"encode, roughly {whole(round(found.tokens, -3) or found.tokens)} tokens{rest}."
    )


def known_result(run_id: str) -> None:
    """The same was measured before: where to find it."""
    st.success("**This was measured before**, so there is nothing to do.", icon=":material/check_circle:")
    try:
        run = read_run(run_id, person=LOCAL_PERSON).run
    except NotFound:
        st.caption("Its run is private and belongs to somebody else.")
        return
    private = run.visibility == "private" and run.private_token
    st.page_link(
        "pages/run.py", label="Open the run", icon=":material/open_in_full:",
        query_params={"run": run.id} | ({"token": run.private_token} if private and run.private_token else {}),
    )  # fmt: skip


def form() -> None:
    """Choose, see the estimate, start."""
    with st.container(gap="xxsmall"):
        st.title("Evaluate a model", anchor=False)
        st.markdown(
            "The model ranks every tool for every query, and its ranking is scored against one label and against "
            "every valid answer. The result stays private until you publish it."
        )
    workers = known_workers()
    permalinks.start_anew(PREFIX, keep=[_PROBE])
    left, right = st.columns(2, gap="medium")
    with left:
        benchmark = choose_benchmark()
        if benchmark is None:
            return
        model = choose_model(gpu=has_gpu_worker(workers))
    with right:
        options = choose_options(benchmark, model)
    if not model.name:
        st.info("Name the model to see what its evaluation takes.", icon=":material/edit:")
        return
    if model.known is not None and not model.known.allowed:
        return
    request = EvaluationRequest(
        benchmark.name, model.name, endpoint_url=model.endpoint_url, person=LOCAL_PERSON, **options.said
    )  # fmt: skip
    try:
        found = _estimate(the_site().database.url, request)
    except (EquiRankError, StoreError) as error:
        show(str(error))
        return
    if found.run_id is not None:
        known_result(found.run_id)
        return
    shown = model.known.entry.notes if model.known is not None else ""
    for note in found.notes:
        if note != shown:
            st.caption(plain(note))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        blocked = bool(options.missing)
        if st.button("Start", type="primary", icon=":material/play_arrow:", key="ev_start", disabled=blocked):
            job_id = job_client.submit(the_site(), request)
            st.switch_page("pages/evaluate.py", query_params={JOB: job_id})
        if model.known is None:
            probe_button(request)
        st.markdown(" ".join(part for part in (estimate_sentence(found), asking_sentence(found)) if part))
    if options.missing:
        st.info(plain(options.missing), icon=":material/key_off:")
    if model.known is None:
        show_probe(request)
    show_workers(workers, found.queue)


def one_job(job_id: str) -> None:
    """A job, and the ways on from it."""
    try:
        show_job(job_id)
    except NotFound as error:
        st.title("No such job", anchor=False)
        st.markdown(plain(str(error)[:1].upper() + str(error)[1:]) + ".")
    with st.container(horizontal=True, gap="medium"):
        st.page_link("pages/evaluate.py", label="Evaluate another model", icon=":material/add:")
        st.page_link("pages/jobs.py", label="All jobs", icon=":material/list:")


def page() -> None:
    """Draw the page."""
    job_id = st.query_params.get(JOB)
    if job_id:
        one_job(job_id)
    else:
        form()


with shown_errors():
    page()
