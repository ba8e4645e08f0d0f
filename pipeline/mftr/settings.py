"""How MFTR scores and trains: one record for the published way (``PAPER``), ours (``V2``) and every ablation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from pipeline.errors import UsageError
from pipeline.formats.messages import quote
from pipeline.mftr.schema import Field


class Penalty(StrEnum):
    """How parameters that no argument matches are charged (MFTR §3.4.2).

    ``missing`` follows the paper's words and published figures: σ(α(τ − s_p)). Equation 5 prints the opposite sign,
    which charges well-matched parameters; ``printed-sign`` computes that, to show that it is an erratum.
    """

    MISSING = "missing"
    PRINTED_SIGN = "printed-sign"
    NONE = "none"


class Weighting(StrEnum):
    """Learned field weights, or the plain mean of the fields without training."""

    LEARNED = "learned"
    MEAN = "mean"


class AbsentField(StrEnum):
    """The score of a tool in a field that its document leaves empty: 0, or the query's mean over the other tools."""

    ZERO = "zero"
    CORPUS_MEAN = "corpus-mean"


class EmptyArguments(StrEnum):
    """A query without arguments: every parameter counts as missing, or no parameter is charged."""

    FULL_PENALTY = "full-penalty"
    NO_PENALTY = "no-penalty"


class FieldScale(StrEnum):
    """Field scores as they are, or with mean 0 and deviation 1 over the corpus for each field and query."""

    RAW = "raw"
    Z_SCORE = "z-score"


@dataclass(frozen=True)
class MftrSettings:
    """Every choice of scoring and training; part of the identity of a run.

    Attributes:
        fields: those that count; the others have weight 0.
        weighting: see ``Weighting``; with ``mean`` nothing is trained and there is no penalty.
        penalty: see ``Penalty``.
        absent_field: see ``AbsentField``; tools without parameters are never charged.
        empty_arguments: see ``EmptyArguments``.
        scaled_lexical_parameters: whether BM25's parameter scores get mean 0 and deviation 1 for each query.
        tau_clamped: whether τ stays in [0, 1].
        field_scale: see ``FieldScale``.
        nonnegative: whether field weights stay at or above 0.
        equivalents_removed: whether verified equivalents are no negatives.
        tool_disjoint: whether a fold is trained without queries that share a labelled tool with its test queries.
        alpha: sharpness of the penalty.
        tau_initial: τ before training.
        required_initial: charge of a missing required parameter before training.
        optional_initial: the same of an optional one.
        folds: of the cross-validation.
        epochs: passes over the pairs.
        batch: pairs of one step.
        learning_rate: of Adam.
        negatives: hard negatives of a query.
        negative_depth: how many BM25 results they are taken from.
        seed: of folds, initial weights and order.
    """

    fields: tuple[Field, ...] = tuple(Field)
    weighting: Weighting = Weighting.LEARNED
    penalty: Penalty = Penalty.MISSING
    absent_field: AbsentField = AbsentField.ZERO
    empty_arguments: EmptyArguments = EmptyArguments.FULL_PENALTY
    scaled_lexical_parameters: bool = False
    tau_clamped: bool = True
    field_scale: FieldScale = FieldScale.RAW
    nonnegative: bool = False
    equivalents_removed: bool = False
    tool_disjoint: bool = False
    alpha: float = 15.0
    tau_initial: float = 0.3
    required_initial: float = 0.2
    optional_initial: float = 0.1
    folds: int = 5
    epochs: int = 5
    batch: int = 256
    learning_rate: float = 0.1
    negatives: int = 64
    negative_depth: int = 150
    seed: int = 42

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            UsageError: no fields, or a count below its smallest sensible value.
        """
        if not self.fields:
            raise UsageError("MFTR needs at least one field.")
        for name, least in (("folds", 2), ("epochs", 1), ("batch", 1), ("negatives", 1), ("negative_depth", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"The MFTR setting {name} is {getattr(self, name)}; it must be at least {least}.")

    @property
    def penalised(self) -> bool:
        """Whether the score has a penalty at all."""
        return self.penalty is not Penalty.NONE and self.weighting is Weighting.LEARNED

    def contract_hash(self, base: str) -> str:
        """sha256 hex of the retriever's contract hash and every setting."""
        return hashlib.sha256(
            f"equirank mftr 1\n{base}\n{json.dumps(asdict(self), sort_keys=True)}".encode()
        ).hexdigest()


#: As published.
PAPER = MftrSettings()
#: Ours; measured against ``PAPER`` in ``benchmarks/mftr.md``.
V2 = MftrSettings(
    absent_field=AbsentField.CORPUS_MEAN,
    empty_arguments=EmptyArguments.NO_PENALTY,
    scaled_lexical_parameters=True,
    tau_clamped=False,
    field_scale=FieldScale.Z_SCORE,
    equivalents_removed=True,
)

PRESETS = {"paper": PAPER, "v2": V2}

#: ``v2`` is not worse than ``paper`` where the 95 % interval of its difference in NDCG@10 ends above minus this.
NOT_WORSE_MARGIN = 0.01


def preset_by_measurement(lower_ends: Iterable[float]) -> str:
    """The preset that is taken where nobody names one: ours only if it is not worse anywhere it was measured.

    Args:
        lower_ends: of the 95 % intervals of NDCG@10, ``v2`` minus ``paper``, one for each corpus, retriever and kind
            of labels; fractions.
    """
    ends = list(lower_ends)
    return "v2" if ends and min(ends) >= -NOT_WORSE_MARGIN else "paper"


#: What ``preset_by_measurement`` says of ``benchmarks/mftr.md``; a test applies it to that table.
DEFAULT_PRESET = "paper"


def preset(name: str) -> MftrSettings:
    """The settings of ``--mftr``.

    Raises:
        UsageError: there is no such preset.
    """
    if name not in PRESETS:
        raise UsageError(f"Unknown MFTR preset {quote(name)}; choose {' or '.join(PRESETS)}.")
    return PRESETS[name]
