"""Language models within an evaluation: who answers, and tools and queries put into fields by asking."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.formats.messages import plural
from pipeline.jobs.benchmark_library import load_benchmark, load_compiled
from pipeline.jobs.evaluation_request import Evaluation
from pipeline.jobs.fields import llm_texts as field_llm
from pipeline.jobs.fields.methods import LLM, ORIGINAL, RULES
from pipeline.jobs.fields.sources import FieldSources, original_set, rules_set
from pipeline.jobs.llm_answers import StoredAnswers, live_asker, site_budget
from pipeline.jobs.llm_batch import BatchRound
from pipeline.jobs.site import Site
from pipeline.llm.records import Asker
from pipeline.llm.stores import Budget
from pipeline.retrieval.progress import ProgressCallback

#: Tools or queries of one step: minutes at a provider, so that a job moves on in visible steps.
CHUNK = 256


def run_budget(site: Site, evaluation: Evaluation) -> Budget:
    """The budget of a run; what earlier jobs spent for the same run counts."""
    return site_budget(site.settings, evaluation.run_key, max_cost=evaluation.request.budget)


def run_asker(site: Site, evaluation: Evaluation, *, retry_failed: bool = False) -> Asker:
    """Asks live models within the run's budget; with ``retry_failed`` also what is recorded as failed.

    Raises:
        JudgeError: a setting cannot be used.
    """
    return live_asker(site.settings, site.database, run_budget(site, evaluation), retry_failed=retry_failed)


@contextmanager
def working_asker(
    site: Site, evaluation: Evaluation, answers: Sequence[str], *, retry_failed: bool = False
) -> Iterator[Asker | None]:
    """Who answers a job: nobody, live models, or a round of a batch.

    Args:
        site: where the answer cache is.
        evaluation: what is measured.
        answers: artifact hashes of the answers that were imported for the job.
        retry_failed: ask live models again what is recorded as failed.

    Raises:
        JudgeError: a setting or a file cannot be used.
    """
    if evaluation.options is None or not evaluation.options.asks:
        yield None
    elif not evaluation.request.batch:
        yield run_asker(site, evaluation, retry_failed=retry_failed)
    else:
        files = [site.artifacts.local_path(digest) for digest in answers]
        budget = run_budget(site, evaluation)
        with (
            tempfile.TemporaryDirectory(prefix="equirank-batch-") as folder,
            BatchRound(site, budget, files, Path(folder) / "batch.jsonl") as made,
        ):
            yield made


def stored_id(source: str) -> str:
    """The id of stored field texts, "" for texts that are made."""
    return "" if source in ("", RULES, ORIGINAL, LLM) else source


def chunks(evaluation: Evaluation) -> dict[str, list[list[int]]]:
    """What a language model puts into fields, as ``[start, stop, total]`` of each chunk; empty lists where nothing.

    In batch mode there is one empty chunk, since nobody is asked.
    """
    options, version = evaluation.options, evaluation.version
    assert options is not None
    found: dict[str, list[list[int]]] = {}
    for kind, source, count in (
        ("tools", options.tools, version.tools or 0),
        ("queries", options.queries, version.queries or 0),
    ):
        if source != LLM:
            found[kind] = []
        elif evaluation.request.batch or not count:
            found[kind] = [[0, 0, count]]
        else:
            found[kind] = [[start, min(start + CHUNK, count), count] for start in range(0, count, CHUNK)]
    return found


def ask_chunk(
    site: Site,
    evaluation: Evaluation,
    kind: str,
    start: int,
    stop: int,
    tools_id: str,
    *,
    retry_failed: bool = False,
    progress: ProgressCallback | None = None,
) -> dict[str, int]:
    """Have some tools or queries put into fields; the answers stay in the cache.

    Args:
        site: where the answer cache is.
        evaluation: what is measured.
        kind: ``tools`` or ``queries``.
        start, stop: places in byte order of the ids.
        tools_id: the tools in fields that queries are rewritten with; "" takes the rules'.
        retry_failed: ask again what is recorded as failed.
        progress: stage ``standardizing`` (questions) or ``rewriting`` (queries).

    Returns:
        ``texts`` and ``failures``.

    Raises:
        BudgetExceeded: before a call that could exceed the budget.
        JudgeError: the model cannot be asked.
    """
    if start == stop:
        return {"texts": 0, "failures": 0}
    asker = run_asker(site, evaluation, retry_failed=retry_failed)
    made = _made(site, evaluation, kind, asker, tools_id, slice(start, stop), progress)
    return {"texts": stop - start, "failures": len(made.failures)}


def chunk_words(site: Site, evaluation: Evaluation, kind: str, stop: int, total: int, done: dict[str, int]) -> str:
    """How far the asking is and what it cost, for the log."""
    spent = StoredAnswers(site.database).spent(evaluation.run_key)
    cost = f"{plural(spent.calls, 'call')}, {spent.cost:.4f} US dollars so far"
    if spent.unpriced:
        cost += f" and {plural(spent.unpriced, 'call')} of unknown price"
    failed = f", {done['failures']:,} without a valid answer" if done["failures"] else ""
    return f"{kind}: {stop:,} of {total:,} asked{failed}; {cost}"


def collect(
    site: Site,
    evaluation: Evaluation,
    kind: str,
    asker: Asker,
    tools_id: str,
    *,
    progress: ProgressCallback | None = None,
) -> str | int:
    """Store the tools or queries that a language model put into fields.

    Returns:
        The id of the stored set; or how many questions wait for a batch's answers.

    Raises:
        BudgetExceeded, JudgeError: as ``ask_chunk``, for what is not in the cache.
    """
    made = _made(site, evaluation, kind, asker, tools_id, slice(None), progress)
    if made.pending:
        return made.pending
    target = load_compiled(site, evaluation.version.id).target
    assert evaluation.options is not None
    return field_llm.store(site, evaluation.version.id, target, made, evaluation.options.llm, evaluation.request.person)


def _made(
    site: Site,
    evaluation: Evaluation,
    kind: str,
    asker: Asker,
    tools_id: str,
    part: slice,
    progress: ProgressCallback | None,
) -> field_llm.Made:
    benchmark = load_benchmark(site, evaluation.version.id)
    target = load_compiled(site, evaluation.version.id).target
    assert evaluation.options is not None
    llm = evaluation.options.llm
    if kind == "tools":
        return field_llm.standardize(benchmark, target, asker, llm, part, progress=progress)
    tools = field_llm.feedback_tools(site, benchmark, tools_id)
    return field_llm.rewrite(benchmark, target, tools, asker, llm, part, progress=progress)


def other_sources(site: Site, evaluation: Evaluation, known: FieldSources) -> FieldSources:
    """The field texts of a request once those that a language model makes are known."""
    options = evaluation.options
    assert options is not None
    tools, queries = known.tools, known.queries
    if options.tools == RULES:
        tools = rules_set(site, evaluation)
    if options.queries == ORIGINAL:
        queries = original_set(site, evaluation)
    return FieldSources(tools, queries)


def asked_sources(
    site: Site, evaluation: Evaluation, asker: Asker, *, progress: ProgressCallback | None = None
) -> FieldSources:
    """All field texts of a request, asked for here and now.

    Raises:
        BudgetExceeded, JudgeError: as ``ask_chunk``.
    """
    options = evaluation.options
    assert options is not None
    ids = {"tools": stored_id(options.tools), "queries": stored_id(options.queries)}
    for kind, cut in chunks(evaluation).items():
        if cut:
            made = collect(site, evaluation, kind, asker, ids["tools"], progress=progress)
            assert isinstance(made, str), "a live model leaves nothing pending"
            ids[kind] = made
    return other_sources(site, evaluation, FieldSources(**ids))
