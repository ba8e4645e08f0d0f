"""What an expansion of a benchmark will ask and cost here: at the site's prices, without what its cache answers."""

from __future__ import annotations

from pipeline.jobs.benchmark_library import Library
from pipeline.jobs.llm_answers import StoredAnswers, asking_config
from pipeline.jobs.site import Site
from pipeline.llm.estimate import seen_answer_tokens
from pipeline.toolex.estimate import StageEstimate, estimate_run
from pipeline.toolex.settings import Stage, ToolexSettings


def estimate(site: Site, benchmark: str, settings: ToolexSettings) -> list[StageEstimate]:
    """The three stages of expanding a benchmark; no model is loaded and nobody is asked.

    The length of answers is that of the answers which the same judge gave at the same stage here; a usual length where
    there are none.

    Args:
        site: its prices, its cache and the answers it has seen.
        benchmark: ``slug``, ``slug@version`` or a folder.
        settings: judges, retrievers and bounds.

    Raises:
        BenchmarkError: the folder is not sound, or the stored benchmark has no content.
        JudgeError: a price is written in another way than theirs.
        NotFound: no such stored benchmark.
    """
    config = asking_config(site.settings)
    return estimate_run(
        Library(site).benchmark(benchmark),
        settings,
        store=StoredAnswers(site.database),
        prices=config.prices,
        attempts=config.attempts,
        answer_tokens=answer_lengths(site, settings),
    )


def answer_lengths(site: Site, settings: ToolexSettings) -> dict[str, float]:
    """Mean tokens of the answers that each stage's judge gave here so far; a stage without any is left out."""
    judges = {stage.value: settings.judge(stage) for stage in Stage}
    meter = StoredAnswers(site.database).meter()
    return seen_answer_tokens([line for line in meter if judges.get(line.purpose) == line.model])
