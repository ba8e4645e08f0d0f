"""Hostile bytes: no exception, and no different run accepted in silence."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.formats import text_blocks
from pipeline.formats.limits import Limits
from pipeline.run import Run, RunReading, Verdict
from tests.pipeline.formats.run_targets import SCORED, full_lists, messages, read, small_target

TARGET = small_target()


def mutate(data: bytes, random_: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(random_.randint(1, 3)):
        at = random_.randrange(len(out) + 1)
        kind = random_.random()
        if kind < 0.4 and out:
            out[at % len(out)] = random_.choice(
                [0, 9, 10, 13, 32, 34, 44, 45, 46, 48, 57, 92, 101, 123, 125, 160, 194, 255]
            )
        elif kind < 0.6:
            out[at:at] = random_.choice(
                [b"\xc2\xa0", b"\xe2\x80\xa8", b"\n", b"\r\n", b" ", b"#", b'"', b"0", b"\\u0000", b"\xff\xfe"]
            )
        elif kind < 0.8:
            del out[at : at + random_.randint(1, 40)]
        elif kind < 0.9:
            out[at:at] = out[max(0, at - random_.randint(1, 80)) : at]
        else:
            del out[at:]
    return bytes(out)


def plausible(reading: RunReading) -> None:
    """What holds for any report, and for any run that is accepted."""
    report = reading.report
    assert (
        (report.verdict is Verdict.REFUSE)
        == (reading.run is None)
        == bool(report.problems)
        == (report.problem_count > 0)
    )
    assert len(report.problems) <= 20
    assert report.problem_count >= len(report.problems)
    assert all(
        problem.line is None or problem.message.startswith(f"line {problem.line}: ") for problem in report.problems
    )
    for text in (*report.notes, *(problem.message for problem in report.problems)):
        assert all(c.isprintable() for c in text), text
        assert len(text) < 1500
    if reading.run is not None:
        ordered(reading.run)


def ordered(run: Run) -> None:
    assert np.isfinite(run.scores).all()
    for q in range(len(run.offsets) - 1):
        tools, scores = (a[run.offsets[q] : run.offsets[q + 1]] for a in (run.tools, run.scores))
        assert len(set(tools.tolist())) == len(tools)
        keys = list(zip(scores.tolist(), tools.tolist(), strict=True))
        assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("name", SCORED)
def test_mutations(name: str) -> None:
    random_ = random.Random(name)
    data = SCORED[name](full_lists())
    for _ in range(400 if name != "parquet" else 150):
        changed = mutate(data, random_)
        reading = read(changed, TARGET)
        plausible(reading)


@pytest.mark.parametrize("name", ["trec", "csv"])
def test_rows_are_never_lost(name: str) -> None:
    """Every line that is not blank, a comment or a header is a row of an accepted run."""
    random_ = random.Random(5)
    data = SCORED[name](full_lists())
    accepted = 0
    for _ in range(1500):
        changed = mutate(data, random_)
        reading = read(changed, TARGET)
        if reading.run is None:
            continue
        accepted += 1
        lines = changed.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rows = [
            line
            for line in lines
            if line.strip("\ufeff \t") and not line.lstrip("\ufeff ").startswith(("#", "query_id"))
        ]
        assert len(reading.run.tools) == len(rows), changed
    assert accepted > 20


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes(data: bytes) -> None:
    plausible(read(data, TARGET))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_random_text(text: str) -> None:
    plausible(read(text.encode("utf-8", "surrogatepass"), TARGET))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(["{", "}", "[", "]", ":", ",", '"q1"', '"t01"', '"retrieval"', "1", "null", "\n", " "]),
        max_size=30,
    )
)
def test_random_json(tokens: list[str]) -> None:
    plausible(read("{" + "".join(tokens), TARGET))


@pytest.mark.parametrize("name", ["trec", "csv", "tsv"])
def test_block_borders_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file read in blocks of a few lines gives the report and the run of the file read at once."""
    random_ = random.Random(11)
    data = SCORED[name](full_lists())
    whole = text_blocks.BLOCK
    for _ in range(400):
        changed = mutate(data, random_)
        monkeypatch.setattr(text_blocks, "BLOCK", whole)
        once = read(changed, TARGET)
        monkeypatch.setattr(text_blocks, "BLOCK", random_.choice([130, 200, 333]))
        pieces = read(changed, TARGET, limits=Limits(line_bytes=60))
        if "line ends" in messages(once) + messages(pieces) or "limit for a line" in messages(pieces):
            continue
        assert once.report == pieces.report
        assert (once.run and once.run.ranking_hash) == (pieces.run and pieces.run.ranking_hash)
