"""What the figures of the MFTR lab mean, in sentences; and the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dashboard.charts.layout import shortened
from dashboard.components.numbers import MINUS, NONE, points, whole
from dashboard.components.untrusted import plain
from pipeline.formats.method_labels import TITLES
from pipeline.jobs.fields.analyses import WHOLE
from pipeline.mftr.explain import Explanation
from pipeline.mftr.learned_parameters import weight_shares
from pipeline.mftr.schema import Field
from store.access.mftr import ParameterSet

#: Method → its name in tables.
METHOD_TITLES = TITLES
_LONGEST_TEXT = 150


def number(value: float, digits: int = 3) -> str:
    """A score or weight with a real minus."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def share_text(share: float | None) -> str:
    """``21.4 %``; a dash where a weight is negative and shares mean nothing."""
    return NONE if share is None else f"{points(share)} %"


def used_shares(
    weights: tuple[float, float, float, float], unused: Sequence[str] = ()
) -> tuple[float | None, float | None, float | None, float | None]:
    """Shares of the sum over the fields in use, in the order of ``Field``.

    Args:
        weights: of the four fields.
        unused: fields in which nothing could match: their weights multiply 0, so they are no part of the sum.

    Returns:
        None for an unused field, and for every field where the weight of a used one is negative or all are 0.
    """
    kept = [0.0 if field.value in unused else weight for field, weight in zip(Field, weights, strict=True)]
    shares = weight_shares((kept[0], kept[1], kept[2], kept[3]))
    if shares is None:
        return None, None, None, None
    d, p, r, e = (None if field.value in unused else share for field, share in zip(Field, shares, strict=True))
    return d, p, r, e


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def rank_sentence(found: Explanation, tool_name: str, method: str, full_doc: bool) -> str:
    """Where both put the tool."""
    own = f"{method} ranks it **{whole(found.rank)}** of {whole(found.tools)}"
    if not full_doc:
        return f"{plain(tool_name)}: {own}. No Full-Doc run of this model and encoding is published to compare with."
    if found.full_doc_rank is None:
        base = "Full-Doc does not find it"
    else:
        base = f"Full-Doc ranks it {whole(found.full_doc_rank)}"
    return f"**{plain(tool_name)}**: {base}; {own}."


def score_sentence(found: Explanation) -> str:
    """How the score adds up."""
    parts = [
        (match.weight, f"{number(abs(match.weight))} × {number(match.scaled)} ({match.field.value})")
        for match in found.fields
        if match.weight
    ]
    total = "".join(f" {MINUS if weight < 0 else '+'} {words}" for weight, words in parts).removeprefix(" + ") or "0"
    sign = MINUS if found.bias < 0 else "+"
    bias = f" {sign} {number(abs(found.bias))} (bias)" if abs(found.bias) >= 0.0005 else ""
    penalty = f" {MINUS} {number(found.penalty)} (missing parameters)" if found.penalty else ""
    return f"Score: {total}{bias}{penalty} = **{number(found.score)}**."


def reason_sentence(found: Explanation) -> str:
    """Which field carries the tool, and which holds it back."""
    # Where nothing matches, the rank is the place of an id among equals and says nothing.
    counted = sorted((match.rank, match.field.value) for match in found.fields if match.weight and match.rank)
    if not counted:
        return "Nothing of the query matches any of its fields."
    (best, best_field), (worst, worst_field) = counted[0], counted[-1]
    said = f"By its {best_field} alone it would be at rank {whole(best)}"
    if worst > best:
        said += f", by its {worst_field} alone at {whole(worst)}"
    unmatched = [match.field.value for match in found.fields if match.weight and match.rank is None]
    if unmatched:
        said += f"; nothing matches in its {listed(unmatched)}"
    charged = [match for match in found.parameters if match.penalty > 0.0005]
    if charged:
        what = "One parameter looks" if len(charged) == 1 else f"{whole(len(charged))} parameters look"
        said += f". {what} unfilled by the query, which costs {number(found.penalty)}"
    return said + "."


def is_scaled(found: Explanation) -> bool:
    """Whether fields are weighed by other numbers than the retriever gave them."""
    return any(abs(match.scaled - match.score) >= 0.0005 for match in found.fields if match.weight)


def scaling_sentence(found: Explanation, kind: str) -> str:
    """What the scaled scores are; empty where scores are weighed as they are."""
    if not is_scaled(found):
        return ""
    return (
        f"Scaled: how many standard deviations the score lies above the mean of all {kind}s with the field, for this "
        "query (z-score); this puts fields of different spread on one scale, and it is what is weighed."
    )


def charge_sentence(found: Explanation) -> str:
    """How a score becomes a penalty."""
    if not any(match.missing for match in found.parameters):
        return "Nothing is charged here."
    return (
        f"Missing rises smoothly as the score of the best argument falls: 50 % where it is exactly τ = "
        f"{number(found.tau, 2)}, towards 100 % below and 0 % above (a sigmoid). Penalty: that share of the charge "
        "learned for required or for optional parameters. Without arguments every score is 0."
    )


def _explained_shares(found: Explanation, unused: Sequence[str]) -> dict[Field, float | None]:
    weights = {match.field: match.weight for match in found.fields}
    d, p, r, e = (weights.get(field, 0.0) for field in Field)
    return dict(zip(Field, used_shares((d, p, r, e), unused), strict=True))


def share_sentence(found: Explanation, unused: Sequence[str] = ()) -> str:
    """What a share is part of, and why there is none where the table has a dash.

    Args:
        found: whose weights.
        unused: by ``unused_fields``.
    """
    said = f"Share: of the sum of the weights{' of the fields in use' if unused else ''}"
    negative = [match.field.value for match in found.fields if match.weight < 0 and match.field.value not in unused]
    if negative:
        what = "weight" if len(negative) == 1 else "weights"
        verb = "is" if len(negative) == 1 else "are"
        return f"{said}; {NONE} here, since the {what} of {listed(negative)} {verb} negative and the sum has no parts."
    if all(share is None for share in _explained_shares(found, unused).values()):
        return f"{said}; {NONE} here, since that sum is 0."
    if unused:
        return f"{said}; {NONE} for {listed(list(unused))}, where nothing can match in this run."
    return f"{said}."


def field_table(found: Explanation, unused: Sequence[str] = ()) -> pl.DataFrame:
    """One row a field, as the paper's Table 4, with the scaled score where that is weighed; texts are others'.

    Args:
        found: what is explained.
        unused: by ``unused_fields``; they have no share.
    """
    rows = []
    scaled = is_scaled(found)
    shares = _explained_shares(found, unused)
    for match in found.fields:
        parameters = match.field is Field.PARAMETERS
        asked = "" if parameters else match.query_text
        says = ""
        if parameters and found.parameters:
            fits = [p for p in found.parameters if p.argument]
            best = max(fits or found.parameters, key=lambda p: p.score)
            asked, says = best.argument, best.name
        elif not parameters:
            says = match.tool_text
        rows.append(
            {
                "Field": match.field.value,
                "The query asks": shortened(" ".join(asked.split()), _LONGEST_TEXT) or NONE,
                "The document says": shortened(" ".join(says.split()), _LONGEST_TEXT) or NONE,
                "Score": number(match.score),
                **({"Scaled": number(match.scaled)} if scaled else {}),
                "Rank": whole(match.rank),
                "Weight": number(match.weight),
                "Share": share_text(shares[match.field]),
            }
        )
    return pl.DataFrame(rows)


def parameter_table(found: Explanation) -> pl.DataFrame:
    """One row a parameter: who fills it, and what it costs."""
    return pl.DataFrame(
        [
            {
                "Parameter": match.name,
                "Required": "yes" if match.required else "no",
                "Filled best by": shortened(" ".join(match.argument.split()), _LONGEST_TEXT) or NONE,
                "Score": number(match.score),
                "Missing": f"{points(match.missing, 0)} %",
                "Penalty": number(match.penalty),
            }
            for match in found.parameters
        ]
    )


def weight_frame(learned: ParameterSet, unused: Sequence[str] = ()) -> pl.DataFrame:
    """Weight of each field with its share, in each fold and of the means (Table 5).

    Args:
        learned: the folds.
        unused: by ``unused_fields``; they have no share, and their rows say so.
    """
    names = [f"{field.value} (not in use)" if field.value in unused else field.value for field in Field]
    columns: dict[str, list[str]] = {"Field": names}
    for fold in learned.folds:
        columns[f"Fold {fold.fold + 1}"] = _with_shares(fold.weights, unused)
    columns["Mean"] = _with_shares(mean_weights(learned), unused)
    return pl.DataFrame(columns)


def _with_shares(weights: tuple[float, float, float, float], unused: Sequence[str]) -> list[str]:
    """``0.842 (55.6 %)``; the weight alone where a share means nothing."""
    return [
        number(weight) if share is None else f"{number(weight)} ({share_text(share)})"
        for weight, share in zip(weights, used_shares(weights, unused), strict=True)
    ]


def mean_weights(learned: ParameterSet) -> tuple[float, float, float, float]:
    """The mean over the folds, a weight a field."""
    means = [sum(fold.weights[i] for fold in learned.folds) / len(learned.folds) for i in range(4)]
    return means[0], means[1], means[2], means[3]


def penalty_frame(learned: ParameterSet) -> pl.DataFrame:
    """What missing parameters cost, fold by fold."""
    return pl.DataFrame(
        [
            {
                "Fold": str(fold.fold + 1),
                "τ": number(fold.tau),
                "sharpness α": number(fold.alpha, 0),
                "required and missing": number(fold.required_penalty),
                "optional and missing": number(fold.optional_penalty),
                "bias": number(fold.bias),
            }
            for fold in learned.folds
        ]
    )


def weight_sentence(learned: ParameterSet, kind: str, unused: Sequence[str] = ()) -> str:
    """What was learned, in words.

    Args:
        learned: the folds.
        kind: what is retrieved: ``tool`` or ``skill``.
        unused: fields in which nothing could match, by ``unused_fields``: their weights are no finding.
    """
    used = [(place, field) for place, field in enumerate(Field) if field.value not in unused]
    means = mean_weights(learned)
    said = []
    of = " of the fields in use" if unused else ""
    negative = [(means[place], field) for place, field in used if means[place] < 0]
    shares = [
        (share, field) for share, field in zip(used_shares(means, unused), Field, strict=True) if share is not None
    ]
    if negative:
        low = min(negative, key=lambda pair: pair[0])
        said.append(
            f"The mean weight of {low[1].value} is negative ({number(low[0])}): a better match there counts against a "
            f"{kind}, so shares of the whole mean nothing here."
        )
    elif len(shares) > 1:
        order = sorted(shares, key=lambda pair: -pair[0])
        said.append(
            f"**{order[0][1].value.capitalize()} carries most: {points(order[0][0])} % of the mean weight{of}**, "
            f"{order[-1][1].value} least ({points(order[-1][0])} %)."
        )
    below = sum(fold.weights[place] < 0 for fold in learned.folds for place, _ in used)
    if below:
        weights = whole(len(used) * len(learned.folds))
        verb = "is" if below == 1 else "are"
        said.append(
            f"In the folds {whole(below)} of the {weights} weights{of} {verb} negative; such a fold has no shares."
        )
    if unused:
        reasons = [
            "no query has arguments" if name == Field.PARAMETERS else f"no {kind} has a text in {name}"
            for name in unused
        ]
        said.append(
            f"Nothing can match in {listed(list(unused))} here ({listed(reasons)}): "
            f"{'these weights' if len(unused) > 1 else 'this weight'} stayed where training began and multiply 0."
        )
    return " ".join(said)


def unused_fields(run_is_rewritten: bool, figures: pl.DataFrame | None) -> list[str]:
    """Fields in which nothing can match: parameters where no query has arguments, others where no document has a text.

    Args:
        run_is_rewritten: whether a language model rewrote the queries.
        figures: the analysis ``fields`` of the run; None while there is none.
    """
    empty = set() if figures is None else set(figures.filter(pl.col("tools") == 0)["key"])
    return [
        field.value for field in Field if field.value in empty or (field is Field.PARAMETERS and not run_is_rewritten)
    ]


def figures_by_row(frame: pl.DataFrame, metric: str) -> pl.DataFrame:
    """``key``, ``label``, ``old``, ``new`` and ``tools`` of one metric, in the analysis's order."""
    of = frame.filter(pl.col("metric") == metric)
    wide = of.pivot("view", index=["key", "label", "tools"], values="value", maintain_order=True)
    missing = [pl.lit(None, dtype=pl.Float64).alias(view) for view in ("old", "new") if view not in wide.columns]
    return wide.with_columns(missing)


def field_sentence(rows: pl.DataFrame, figure_name: str) -> str:
    """The best single field against all of them together, under both labels."""
    whole_row = rows.filter(pl.col("key") == WHOLE).row(0, named=True)
    every = rows.filter(pl.col("key") != WHOLE)
    alone = every.drop_nulls(["old", "new"])
    silent = [field for field in every["label"] if field not in set(alone["label"])]
    by = f" By {' or '.join(silent)} alone there is nothing to rank by." if silent else ""
    if alone.is_empty():
        return by.strip()
    best = alone.sort("new", descending=True).row(0, named=True)
    gain, old_gain = whole_row["new"] - best["new"], whole_row["old"] - float(alone["old"].max())  # type: ignore[arg-type]
    lead = (
        f"**Together the fields beat the best of them alone** ({best['label']}) by {points(gain, signed=True)} points"
        if gain > 0.0005
        else f"**{best['label'].capitalize()} alone does as well as all fields together** "
        f"({points(gain, signed=True)} points for all)"
    )
    by_label = points(old_gain, signed=True)
    return f"{lead} of {figure_name} by every valid answer; by one label the difference is {by_label}.{by}"


def variant_sentence(rows: pl.DataFrame, figure_name: str, rewritten: bool) -> str:
    """What MFTR adds over Full-Doc and which row is best, under both labels."""
    by_key = {row["key"]: row for row in rows.iter_rows(named=True)}
    parts = []
    base, own = by_key.get("full-doc"), by_key.get("mftr")
    if base and own:
        new, old = own["new"] - base["new"], own["old"] - base["old"]
        verb = "gains" if new >= 0 else "loses"
        parts.append(
            f"**MFTR {verb} {points(abs(new))} points of {figure_name} over Full-Doc** by every valid answer, "
            f"{points(old, signed=True)} by one label."
        )
    best = rows.sort("new", descending=True).row(0, named=True)
    parts.append(f"The best row is {best['label']} ({points(best['new'])}).")
    if not rewritten:
        parts.append(
            "No query was rewritten here, so each stands for itself in every field: Rewrite Only, Stand. + Rewrite "
            "and Weighting + Rewrite need a language model, and Weighting + Stand. is MFTR itself."
        )
    return " ".join(parts)


def masking_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """``name``, ``old`` and ``new``: change against the whole document as a fraction, the greatest loss first."""
    base = rows.filter(pl.col("key") == WHOLE).row(0, named=True)
    changes = [
        (pl.when(pl.lit(bool(base[view]))).then(pl.col(view) / (base[view] or 1.0) - 1)).alias(view)
        for view in ("old", "new")
    ]
    masked = rows.filter(pl.col("key") != WHOLE).with_columns(changes)
    return masked.select(name="label", old="old", new="new", tools="tools").sort("new", "name", nulls_last=True)


def masking_sentence(rows: pl.DataFrame, figure_name: str) -> str:
    """Which key matters most, and whether one is better left out."""
    if rows.is_empty():
        return ""
    least, most = rows.row(0, named=True), rows.row(-1, named=True)
    said = f"Without **{plain(least['name'])}** {figure_name} changes by {points(least['new'], signed=True)} %"
    if rows.height > 1:
        said += f", without **{plain(most['name'])}** by {points(most['new'], signed=True)} %"
    said += " (every valid answer)."
    helped = rows.filter(pl.col("new") > 0.0005)
    if helped.height:
        said += " Where the change is above 0, the whole document is better without the field: that text misleads."
    return said
