"""About the method: definitions with worked examples, how rows are ranked, how to cite, the command line."""

from __future__ import annotations

import streamlit as st

from dashboard.components.failures import shown_errors
from dashboard.components.numbers import points
from dashboard.components.run_detail import text_table
from dashboard.components.worked_examples import (
    MFTR_ALPHA,
    MFTR_OPTIONAL,
    MFTR_REQUIRED,
    MFTR_TAU,
    example_averages,
    example_combinations,
    example_fields,
    example_illusion,
    example_lists,
    example_penalties,
    example_pooled,
    example_scores,
    example_split,
)
from pipeline import published

COMMANDS = """\
equirank validate RUN --benchmark B                    every problem of the file, with its line
equirank score RUN --benchmark B                       old and new scores; nothing is stored
equirank submit RUN --benchmark B --retriever NAME     store and publish; prints the permalink
equirank submit … --server URL                         the same, on another site
equirank token create LABEL                            a token that programs submit with
equirank runs list                                     what is stored here
equirank benchmark list                                benchmarks and their hashes
equirank benchmark export B FOLDER                     a benchmark as files
equirank serve                                         this site
equirank doctor --deep                                 is everything whole?"""


def page() -> None:
    """Draw the page."""
    st.title("About the method", anchor=False)
    st.markdown(
        "A query often has more than one right answer: several tools do the same thing. A benchmark that knows one "
        "label a query counts the others as mistakes. EquiRank scores every run twice: against the one label, and "
        "against every combination of tools that was verified to solve the query."
    )
    st.subheader("Old, new, lift", anchor=False)
    st.markdown(
        "- **Ground truth C\\*** is the one annotated set of tools of a query.\n"
        "- **Valid combinations Ĉ** are all sets of tools that solve it; C\\* is always among them.\n"
        "- **Old** scores the list against C\\* alone. **New** is the best score over all combinations in Ĉ, for each "
        "metric by itself. **Lift** is new − old, in points: how much one label hid.\n"
        "- **NDCG@K** rewards hits near the top, **Recall@K** is the share of a combination in the first K, "
        "**Comp@K** is 1 when a whole combination is there and else 0.\n"
        "- A combination is scored as a whole. Pooling all valid tools into one set would ask for every alternative "
        "at once, and punish a list that found one complete answer."
    )
    st.markdown(
        "**An example.** A query needs a route and the weather; its label is {maps.route, weather.now}. "
        "geo.directions is as good as maps.route, and meteo.report as weather.now, so there are four valid "
        "combinations. A retriever returns:"
    )
    left, right = st.columns(2, gap="medium")
    with left:
        text_table(example_lists(), key="about_list", label="The ranked list of the example")
    with right:
        text_table(example_scores(), key="about_scores", label="Scores of the example")
    st.caption("These figures are computed now, by the code that scores runs.")
    st.markdown(
        "**How combinations are matched.** Each combination is scored as a whole against the same list. The new score "
        "of a metric is the best of its column, so different metrics may take different combinations. Of the first "
        "three results:"
    )
    text_table(example_combinations(), key="about_combinations", label="Every combination of the example at K = 3")
    st.markdown(
        "**Why not one pool.** With three route tools that are equally good, a list of one route tool and the weather "
        "is a complete answer. A pool of all four tools would call it half of one:"
    )
    text_table(example_pooled(), key="about_pooled", label="Best combination against one pool of all valid tools")
    st.subheader("The fine-tuning illusion", anchor=False)
    split = example_split()
    st.markdown(
        "A retriever fine-tuned on a benchmark's labels may learn which of several equal tools carries the label. "
        "Against one label that looks like a gain. The **artifact** is the share of the old gain that is gone once "
        "every valid answer counts: 1 − new gain / old gain. It is undefined without an old gain, negative where one "
        "label hid gain, and above 100 % where the gain turns into a loss; it is never clipped. No share is given "
        "where the old gain is below half a point or its 95 % interval includes zero: a share of next to nothing says "
        "nothing. Of measured runs a sentence calls gain lost or hidden only where a paired test finds that old and "
        "new gain differ (5 %, Holm)."
    )
    st.markdown(
        "Three queries have two equally good tools each. The base often puts the twin without the label first; the "
        "fine-tuned retriever puts the labelled one first, and finds an answer earlier only in the third query:"
    )
    text_table(example_illusion(), key="about_illusion", label="A gain with one label and with every valid answer")
    st.markdown(
        f"{points(split.gain_old, signed=True)} points become {points(split.gain_new, signed=True)}: "
        f"**{points(split.share)} % of this gain is an artifact** of the labels."
    )
    st.subheader("How a list is ranked, and what is averaged", anchor=False)
    st.markdown(
        "- Scores are read as 32-bit numbers; the higher one comes first, and ties are broken by tool id in descending "
        "byte order, as trec_eval does. The order of the file's lines does not matter.\n"
        "- Every query of the benchmark counts. One that a run does not answer scores 0 and is shown as missing.\n"
        "- **Macro** is the mean of the domain means, **micro** the mean over queries. Each benchmark has one of them "
        "as its headline; both are shown."
    )
    text_table(example_averages(), key="about_averages", label="Macro and micro of three queries")
    st.subheader("How the leaderboard is ordered", anchor=False)
    st.markdown(
        "- Rows are ranked by the new score, or by the old one where no new score is known. Equal scores share a "
        "rank. Filters and search never move a rank.\n"
        "- A run that answers fewer than half of the queries is marked partial and not ranked.\n"
        "- Sub-query runs are asked with needs written from the labels. They show a ceiling and are ranked apart.\n"
        "- A row is the newest published run of a retriever, method, setting and source; older ones stay under it.\n"
        "- Figures printed in a paper are shown with the digits printed there. No ranking lies behind them, so they "
        "have no interval. Where a printed figure cannot be right, a remark says why; the figure stays as printed.\n"
        "- Whether a retriever was trained on the benchmark is yes, no or unknown; it is never assumed."
    )
    st.subheader("Multi-field retrieval (MFTR), in short", anchor=False)
    st.markdown(
        "A tool's documentation is put into four fields: description, parameters, response and examples. A query is "
        "rewritten into the needs behind it and the arguments it gives. Each field is scored by itself (the best need "
        "counts; for parameters, the mean over them of the best argument *s*), and the score is the weighted sum of "
        "the fields less a **penalty** for parameters that the query does not supply: a parameter is charged "
        "σ(α(τ − *s*)) × its charge, which is close to the whole charge below τ and close to nothing above it. "
        "Weights, τ and charges are learned."
    )
    st.markdown(
        "“How warm is it in Oslo?” gives a city. Both tools fit, and by the weighted sum the second one fits better; "
        "but it cannot be called without the id of a station, and the penalty puts it second:"
    )
    left, right = st.columns(2, gap="medium")
    with left:
        text_table(example_fields(), key="about_fields", label="Field scores, penalty and score of two tools")
    with right:
        text_table(example_penalties(), key="about_penalties", label="What each parameter is charged")
    st.caption(
        f"τ = {MFTR_TAU}, α = {MFTR_ALPHA:g}; a missing required parameter is charged {MFTR_REQUIRED}, an optional one "
        f"{MFTR_OPTIONAL}. Weights and scores are made up for this example."
    )
    st.subheader("From the command line", anchor=False)
    st.markdown("Everything here can be done without the site. `B` is a stored benchmark or a folder.")
    st.code(COMMANDS, language=None)
    st.subheader("For programs", anchor=False)
    st.markdown(
        "What the pages show is at `/api/v1`: `/benchmarks`, `/leaderboard`, `/runs/{id}`, `/runs/{id}/queries`, "
        "`/runs/{id}/card` and `/queries/{benchmark}/{id}`, as JSON, CSV or Parquet (`Accept` or `?format=`), with "
        "ETags and pages. Figures are fractions; unknown is null. `POST /api/v1/submissions` takes a run file with a "
        "token and answers with its report. `/api/v1/openapi.json` describes all of it."
    )
    st.subheader("How to cite", anchor=False)
    st.markdown("Cite the paper that a benchmark or a method comes from, and name the benchmark version you used.")
    for paper in published.papers():
        st.code(paper.bibtex, language="bibtex", wrap_lines=True)


with shown_errors(), st.container(width=860):
    page()
