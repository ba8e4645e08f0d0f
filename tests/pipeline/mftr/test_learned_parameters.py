"""Learned parameters: the published shape, shares, and use by test fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import MftrError
from pipeline.mftr.learned_parameters import (
    LearnedFolds,
    LearnedParameters,
    learned_json,
    mean_of_fields,
    negative_weight_notes,
    parse_learned,
    published_folds,
    read_learned,
    weight_shares,
    write_learned,
)
from pipeline.mftr.schema import Field, RewrittenQuery

FOLD = {
    "base_weight": [[1.5, -0.5, 0.25, 2.0]],
    "base_bias": [0.125],
    "tau": 0.5,
    "w_req": 2.0,
    "w_opt": 0.0,
    "alpha": 15.0,
}


def table(**changes: Any) -> dict[str, Any]:
    return {"small": {"bm25__0": {"0": FOLD, "1": {**FOLD, **changes}}}}


def test_the_published_shape_goes_in_and_out_unchanged(tmp_path: Path) -> None:
    given = table(tau=0.25)
    parsed = parse_learned(given)
    assert parsed["small"]["bm25__0"][1] == LearnedParameters((1.5, -0.5, 0.25, 2.0), 0.125, 0.25, 2.0, 0.0, 15.0)
    assert learned_json(parsed) == given
    write_learned(parsed, tmp_path / "learned.json")
    assert json.loads((tmp_path / "learned.json").read_text(encoding="utf-8")) == given
    assert read_learned(tmp_path / "learned.json") == parsed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the file: expected an object, found list"),
        ({"small": 3}, "small: expected an object, found int"),
        ({"small": {"m": {"1": FOLD}}}, 'small / m: folds must be 0, 1, 2, …; found "1"'),
        ({"small": {"m": {}}}, "folds must be 0"),
        (table(base_weight=[1, 2, 3, 4]), "fold 1: base_weight must be one list of four numbers"),
        (table(base_weight=[[1, 2, 3, "4"]]), 'base_weight must be a number from -1e+09 to 1e+09; found "4"'),
        (table(base_weight=[[1, 2, 3, True]]), "base_weight must be a number"),
        (table(base_bias=0.1), "base_bias must be a list of one number"),
        (table(tau=None), 'tau must be a number from -1e+09 to 1e+09; found "None"'),
        (table(tau=float("nan")), "tau must be a number"),
        (table(tau=float("inf")), "tau must be a number"),
        (table(tau=10**400), 'found "a very large number"'),
        # In float32 the scores would be infinite, or no number at all.
        (table(base_weight=[[1e300, -1e300, 0, 0]]), "base_weight must be a number"),
        (table(w_req=1e38), "w_req must be a number from 0 to 1e+09"),
        (table(w_req=-1), "w_req must be a number from 0 to 1e+09"),
    ],
)
def test_what_is_wrong_is_named(content: Any, message: str) -> None:
    with pytest.raises(MftrError) as error:
        parse_learned(content)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "not valid JSON at line 1, column 2"),
        (b"", "not valid JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"small": {}, "small": {}}', 'the key "small" occurs twice'),
        (b'{"small": NaN}', "NaN is not a JSON value"),
        (None, "No such file"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, raw: bytes | None, said: str) -> None:
    path = tmp_path / "broken.json"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(MftrError, match=r"broken\.json") as error:
        read_learned(path)
    assert said in str(error.value)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "marked.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(table()).encode())
    assert read_learned(path) == parse_learned(table())


def test_shares_and_their_guard() -> None:
    assert weight_shares((1, 2, 1, 0)) == (0.25, 0.5, 0.25, 0.0)
    assert weight_shares((1, -0.1, 1, 1)) is None
    assert weight_shares((0, 0, 0, 0)) is None
    one, two = LearnedParameters((1, 0, 0, 1)), LearnedParameters((3, 0, 0, -1))
    assert LearnedFolds((one, two), mean_of_fields(0).fold_of).shares == (1.0, 0.0, 0.0, 0.0)


def test_weights_below_0_are_told_by_field_and_fold() -> None:
    rows = ((-1.0, -1.0, 0.0, 2.0), (0.5, -1.0, 0.0, -0.1), (-0.5, 1.0, 0.0, 3.0))
    learned = LearnedFolds(tuple(LearnedParameters(row) for row in rows), np.zeros(4, dtype=np.int64))
    (note,) = negative_weight_notes(learned, [Field.DESCRIPTION, Field.RESPONSE, Field.EXAMPLES])
    assert "(that of description in 2 of 3, that of examples in 1 of 3 folds)" in note
    assert negative_weight_notes(learned, [Field.RESPONSE]) == ()


def test_the_plain_mean_of_some_fields() -> None:
    learned = mean_of_fields(3, (Field.DESCRIPTION, Field.EXAMPLES))
    assert learned.folds == (LearnedParameters((0.5, 0.0, 0.0, 0.5)),)
    assert learned.fold_of.tolist() == [0, 0, 0]


def test_parameters_apply_by_test_fold_and_a_missing_fold_is_named() -> None:
    folds = [LearnedParameters((i, 0, 0, 0)) for i in range(2)]
    queries = [RewrittenQuery("a", (), (), 1), RewrittenQuery("b", (), (), 0)]
    assert published_folds(folds, queries).fold_of.tolist() == [1, 0]
    for wrong in (None, 2, -1):
        with pytest.raises(MftrError, match=r'1 of 3 queries have no test_fold from 0 to 1, the first is "c"'):
            published_folds(folds, [*queries, RewrittenQuery("c", (), (), wrong)])
