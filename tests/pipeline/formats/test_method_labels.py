"""Short names of methods: what the field calls them, and only what is unusual."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline import published
from pipeline.formats.method_labels import method_label, method_title, method_words
from pipeline.formats.paired_table import row_names

V2 = "card, MFTR v2, rule-based documents, original query"


@pytest.mark.parametrize(
    ("method", "contract", "label"),
    [
        ("full-doc", "", "Full-Doc"),
        ("full-doc", "card", "Full-Doc"),
        ("full-doc", "paper, with instruction", "Full-Doc, paper encoding, with instruction"),
        ("weighting-only", "paper, MFTR v2, original query", "Weighting Only, paper encoding, MFTR v2"),
        ("sub-query", "card", "Sub-query"),
        ("mftr", V2, "MFTR v2"),
        ("mftr", "card, MFTR paper, documents by openai/x, original query", "MFTR paper, documents by openai/x"),
        ("pluto", "card, PLUTo paper, asks openai/x", "PLUTo paper, asks openai/x"),
        ("my own way", "", "my own way"),
    ],
)
def test_a_label_says_the_method_and_what_is_unusual(method: str, contract: str, label: str) -> None:
    assert method_label(method, contract) == label


def test_the_words_say_everything() -> None:
    assert method_words("mftr", V2) == f"MFTR ({V2})"
    assert method_words("full-doc", "") == "Full-Doc"
    assert (
        method_words("full-doc", "paper, with instruction") == "Full-Doc (encoded as in the papers, with instruction)"
    )


def test_every_method_of_the_papers_has_its_printed_title() -> None:
    for method in published.methods():
        if method.printed:
            assert method_title(method.key) == method.printed[0]


def test_rows_of_one_retriever_are_told_apart_by_short_labels() -> None:
    usual = {"retriever": "MiniLM-L6", "provenance": "measured", "place": ""}
    rows = [
        {"method": "full-doc", "contract": "card"},
        {"method": "mftr", "contract": V2},
        {"method": "mftr", "contract": V2.replace("v2", "paper")},
        {"method": "full-doc", "contract": "card", "provenance": "reported", "place": "Table 2"},
        {"method": "full-doc", "contract": ""},
    ]
    assert row_names(pl.DataFrame([usual | row for row in rows])) == [
        "MiniLM-L6 · Full-Doc (card) (measured)",
        "MiniLM-L6 · MFTR v2",
        "MiniLM-L6 · MFTR paper",
        "MiniLM-L6 · Full-Doc (Table 2)",
        "MiniLM-L6 · Full-Doc (measured)",
    ]
