"""Documents cut into what they share and what they do not."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from pipeline.scoring.document_differences import Segment, document_differences


def test_only_the_words_that_differ_are_marked():
    one, two = document_differences("Get the weather of a city.", "Get the forecast of a city, daily.")
    assert [s.text for s in one if s.differs] == ["weather"]
    assert [s.text for s in two if s.differs] == ["forecast", ", daily"]


def test_equal_and_empty_documents():
    assert document_differences("a b", "a b") == ((Segment("a b", False),), (Segment("a b", False),))
    assert document_differences("", "a") == ((), (Segment("a", True),))


@given(st.text(), st.text())
def test_segments_join_to_the_documents(first: str, second: str):
    one, two = document_differences(first, second)
    assert ("".join(s.text for s in one), "".join(s.text for s in two)) == (first, second)
    shared = ["".join(s.text for s in side if not s.differs) for side in (one, two)]
    assert shared[0] == shared[1]


def test_long_documents_are_compared_line_by_line_and_then_by_words():
    lines = [f"line {i} of a long document\n" for i in range(3_000)]
    other = [*lines[:1_500], "line 1500 of a short document\n", *lines[1_501:]]
    start = time.process_time()
    one, two = document_differences("".join(lines), "".join(other))
    assert time.process_time() - start < 2
    assert [s.text for s in one if s.differs] == ["long"]
    assert [s.text for s in two if s.differs] == ["short"]


def test_no_document_takes_long():
    dice = random.Random(5)

    def repeated(words: list[str], count: int) -> str:
        return "".join(dice.choice(words) for _ in range(count))

    start = time.process_time()
    for words in (["a\n", "b\n"], ["a ", "b "], [f"{i}\n" for i in range(150)], ["{}", '"', ":", "\n"]):
        for count in (499, 2_999, 30_000):
            document_differences(repeated(words, count), repeated(words, count))
    assert time.process_time() - start < 4
