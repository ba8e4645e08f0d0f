"""The validation policy: what is refused, normalised and accepted, and in which words."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.formats.limits import Limits
from pipeline.formats.run_file import read_run
from pipeline.run import Order, RunReading, Verdict
from tests.pipeline.formats.run_targets import (
    as_lists,
    full_lists,
    make_target,
    messages,
    nested,
    parquet,
    read,
    small_target,
    trec,
)

LINES = trec(full_lists()).decode().splitlines()


def with_line(number: int, text: str) -> str:
    return "\n".join([*LINES[: number - 1], text, *LINES[number:]]) + "\n"


def refused(reading: RunReading, *mentions: str, line: int | None = None) -> None:
    assert reading.report.verdict is Verdict.REFUSE
    assert reading.run is None
    assert reading.report.problems
    text = messages(reading)
    for mention in mentions:
        assert mention in text, text
    if line is not None:
        assert line in [problem.line for problem in reading.report.problems], text
        assert f"line {line}: " in text


def normalised(reading: RunReading, *mentions: str) -> None:
    assert reading.report.verdict is Verdict.NORMALISE, messages(reading)
    for mention in mentions:
        assert mention in " | ".join(reading.report.notes)
    plain = read("\n".join(LINES), small_target()).run
    assert plain is not None
    assert reading.run is not None
    assert reading.run.ranking_hash == plain.ranking_hash
    assert np.array_equal(reading.run.scores, plain.scores)


@pytest.mark.parametrize(
    ("line", "mentions"),
    [
        ("q1 Q0 t01 5 0.5", ("5 columns, expected 6",)),
        ("q1 Q0 t 01 5 0.5 tag", ("7 columns", "spaces")),
        ("q1 Q0 t01 5 abc tag", ('score "abc" is not a number',)),
        ("q1 Q0 t01 5 0,9 tag", ("decimal point",)),
        ("q1 Q0 t01 5 1_0 tag", ("underscore",)),
        ("q1 Q0 t01 5 0x10 tag", ("hexadecimal",)),
        ("q1 Q0 t01 5 ٣ tag", ("ASCII digits",)),
        ("q1 Q0 t01 5 nan tag", ("not a finite number",)),
        ("q1 Q0 t01 5 1e400 tag", ('"1e400" is not finite',)),
        ("q1 Q0 t01 5 1e39 tag", ('"1e39" is not finite',)),
        ("q1 Q0 t01 5 3.4028235677973366e38 tag", ("not finite",)),
        ("q1 Q0 t01 one 0.5 tag", ('rank "one"',)),
        ("q1 Q0 t01 99999999999 0.5 tag", ("rank",)),
        ("q1 Q0 t0\u00001 5 0.5 tag", ("U+0000 (NUL)",)),
        ("q1 Q0 t0\u00071 5 0.5 tag", ("U+0007",)),
        ("q1 Q0 t0\u007f1 5 0.5 tag", ("U+007F",)),
        ("q1 Q0 t0\u00851 5 0.5 tag", ("U+0085",)),
        ("q1 Q0\u00a0t01 5 0.5 tag", ("U+00A0 (no-break space)",)),
        ("q1 Q0 t01 5 0.5 ta\u2028g", ("U+2028 (line separator)",)),
        ("q1 Q0 t01 5 0.5 ta\ufeffg", ("U+FEFF",)),
        ("q1 Q0 t01 5\r 0.5 tag", ("U+000D",)),
        ("q1 Q0 t99 5 0.5 tag", ('tool id "t99" is not in small@1', "nearest known")),
        ("q1 Q0 T01 5 0.5 tag", ("T01", "case")),
        ("q1 Q0 t01\u200b 5 0.5 tag", ("t01U+200B",)),
        ("q9 Q0 t01 5 0.5 tag", ('query id "q9"',)),
        ("q1 Q0 t01 5 0.5 other", ("several run tags", '"tag"', '"other"')),
        ("q1 Q0 t01 5 0.5 " + "x" * 70_000, ("longer than the limit for a line",)),
    ],
)
def test_bad_line(line: str, mentions: tuple[str, ...]) -> None:
    refused(read(with_line(17, line), small_target()), *mentions, line=17)


def test_invalid_utf8_names_line_and_byte() -> None:
    for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"):
        data = with_line(9, "q1 Q0 t@1 5 0.5 tag").encode().replace(b"@", bad)
        refused(read(data, small_target()), "UTF-8", f"byte 0x{bad[0]:02X} at byte 8", line=9)


def test_duplicates_name_both_lines() -> None:
    refused(read("\n".join([*LINES, LINES[4]]), small_target()), "duplicate", "first on line 5", line=len(LINES) + 1)


def test_every_problem_is_counted_and_twenty_are_shown() -> None:
    reading = read("\n".join(line.replace(" tag", "") for line in LINES), small_target())
    assert reading.report.problem_count == len(LINES)
    assert [problem.line for problem in reading.report.problems] == list(range(1, 21))


def test_problems_come_in_file_order() -> None:
    lines = list(LINES)
    lines[3] += " extra"
    lines[7] = lines[7].replace(" t", " zz", 1)
    lines[11] = lines[10]
    lines[15] = lines[15].replace(" 0.", " x.")
    reading = read("\n".join(lines), small_target())
    assert [problem.line for problem in reading.report.problems] == [4, 8, 12, 16]


def test_five_unknown_ids_are_shown() -> None:
    lines = [line.replace(" t", " z", 1) for line in LINES[:12]] + LINES[12:]
    reading = read("\n".join(lines), small_target())
    assert [problem.line for problem in reading.report.problems] == [None, 1, 2, 3, 4, 5]
    assert "7 more tool ids" in messages(reading)
    assert reading.report.problem_count == 12


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("\r\n".join(LINES) + "\r\n", "36 lines"),
        ("\r".join(LINES) + "\r", "old-Mac"),
        ("\r".join(LINES), "old-Mac"),
        ("\ufeff" + "\n".join(LINES), "byte order mark"),
        ("\n\n  \n" + "\n".join(LINES) + "\n\t\n", "4 blank lines"),
        ("# a comment of more than six words here\n#\n" + "\n".join(LINES), "2 comment lines"),
        ("query_id\tQ0\tdocno\trank\tscore\ttag\n" + "\n".join(LINES), "header row"),
        ("\n".join(" ".join([*line.split()[:3], "0", *line.split()[4:]]) for line in LINES), "rank column is the same"),
        ("\n".join(" ".join([*(c := line.split())[:3], str(int(c[3]) - 1), *c[4:]]) for line in LINES), "start at 0"),
        ("\n".join(" ".join([*(c := line.split())[:3], str(int(c[3]) * 2), *c[4:]]) for line in LINES), "gaps"),
    ],
)
def test_normalised(text: str, mention: str) -> None:
    normalised(read(text, small_target()), mention)


def test_header_only_on_the_first_line() -> None:
    refused(read(with_line(2, "qid Q0 docid rank score tag"), small_target()), 'score "score"', line=2)


def test_mixed_line_ends() -> None:
    refused(read("\r".join(LINES[:20]) + "\n" + "\n".join(LINES[20:]), small_target()))


@pytest.mark.parametrize("line_ends", ["\n", "\r\n", "\r"])
def test_truncated_last_line(line_ends: str) -> None:
    text = line_ends.join(LINES)
    refused(read(text[:-9], small_target()), "truncated", line=36)


@pytest.mark.parametrize("cut", ["#12 Q0 t02 2 0.4 ru", "#12 Q0 t02", "#12 ", "#12", "#1", "#"])
def test_a_truncated_row_of_an_id_with_a_number_sign_is_no_comment(cut: str) -> None:
    target = make_target(["#12", "q1"], [f"t{number:02}" for number in range(1, 11)])
    whole = "#12 Q0 t01 1 0.5 run\n"
    reading = read(whole + cut, target)
    if cut.endswith("ru"):
        assert reading.report.problem_count  # six columns: another run tag
    else:
        refused(reading, "truncated", line=2)


def test_a_row_that_lost_columns_is_no_comment_whatever_its_id() -> None:
    target = make_target(["#12", "q1"], [f"t{number:02}" for number in range(1, 11)])
    refused(read("#12 Q0 t01 1 0.5 run\n#12 Q0 t02\nq1 Q0 t01 1 0.5 run\n", target), "expected 6", line=2)
    told = read("# 12 is no id\n#12 Q0 t01 1 0.5 run\n#13\nq1 Q0 t01 1 0.5 run\n", target)
    assert told.run is not None
    assert "2 comment lines passed over" in told.report.notes


def test_a_comment_with_six_columns_is_a_row() -> None:
    refused(read("# my run of last week\n" + "\n".join(LINES), small_target()), line=1)


def edited(change: object) -> str:
    """The lines with rank and score changed: ``change(rank, score)`` gives both."""
    rows = []
    for line in LINES:
        cells = line.split()
        cells[3], cells[4] = (repr(value) for value in change(int(cells[3]), float(cells[4])))  # type: ignore[operator]
        rows.append(" ".join(cells))
    return "\n".join(rows)


class TestOrder:
    """A strictly higher score with a worse rank, ties everywhere, and scores that rise with rank."""

    def test_one_inversion_in_one_query(self) -> None:
        cells = [line.split() for line in LINES]
        cells[13][3], cells[14][3] = cells[14][3], cells[13][3]
        text = "\n".join(" ".join(row) for row in cells)
        refused(read(text, small_target()), "disagree in 1 query", "declare the order", line=14)
        normalised(read(text, small_target(), order=Order.SCORE), 'declared order "score"')
        by_rank = as_lists(read(text, small_target(), order=Order.RANK), small_target())
        assert by_rank["q2"] == [row[2] for row in sorted(cells[12:24], key=lambda row: int(row[3]))]

    def test_distances(self) -> None:
        text = edited(lambda rank, score: (rank, 2 - score))
        refused(read(text, small_target()), "distance")
        reading = read(text, small_target(), order=Order.DISTANCE)
        assert reading.report.verdict is Verdict.ACCEPT
        assert as_lists(reading, small_target()) == as_lists(read("\n".join(LINES), small_target()), small_target())

    def test_all_tied(self) -> None:
        text = edited(lambda rank, score: (rank, 1.0))
        refused(read(text, small_target()), "tie in every query", "order")
        ranked = read(text, small_target(), order=Order.RANK)
        assert as_lists(ranked, small_target()) == as_lists(read("\n".join(LINES), small_target()), small_target())
        by_id = read(text, small_target(), order=Order.SCORE)
        assert as_lists(by_id, small_target())["q1"] == [f"t{i:02}" for i in range(12, 0, -1)]

    def test_ties_never_disagree_with_ranks(self) -> None:
        reading = read(edited(lambda rank, score: (rank, float(rank < 7))), small_target())
        assert reading.report.verdict is Verdict.ACCEPT
        assert reading.report.flags == ("ties",)
        assert "36 results" in reading.report.notes[0]

    def test_scores_equal_as_float32_are_ties(self) -> None:
        reading = read(edited(lambda rank, score: (rank, 1.0 + rank * 1e-9)), small_target())
        refused(reading, "tie in every query")

    def test_equal_ranks_cannot_define_an_order(self) -> None:
        text = edited(lambda rank, score: (max(rank, 2), score))
        refused(read(text, small_target(), order=Order.RANK), "rank 2 more than once", line=2)

    def test_rank_gaps_can(self) -> None:
        reading = read(edited(lambda rank, score: (rank * 7, -score)), small_target(), order=Order.RANK)
        assert as_lists(reading, small_target()) == as_lists(read("\n".join(LINES), small_target()), small_target())

    def test_nothing_to_declare_on(self) -> None:
        lists = json.dumps({q: [t for t, _ in r] for q, r in full_lists().items()})
        refused(read(lists, small_target(), order=Order.DISTANCE), "no scores")
        refused(read(json.dumps(nested(full_lists())), small_target(), order=Order.RANK), "no ranks")

    def test_jsonl_lists_against_their_scores(self) -> None:
        data = "\n".join(
            json.dumps({"qid": q, "tools": [t for t, _ in r], "scores": [2 - s for _, s in r]})
            for q, r in full_lists().items()
        )
        refused(read(data, small_target()), "distance")
        assert (
            as_lists(read(data, small_target(), order=Order.DISTANCE), small_target())["q1"][0]
            == full_lists()["q1"][0][0]
        )


class TestFlags:
    def test_missing_partial_shallow(self) -> None:
        one = read("\n".join(LINES[:3]), small_target(queries=3))
        assert one.report.verdict is Verdict.ACCEPT
        assert one.report.flags == ("missing:2", "partial", "shallow")
        assert "2 of 3 queries missing" in one.report.notes[0]
        half = read("\n".join(LINES[:24]), small_target(queries=4))
        assert half.report.flags == ("missing:2",)

    def test_shallow_is_judged_against_the_number_of_tools(self) -> None:
        lists = {"q1": [("t01", 0.5), ("t02", 0.7)], "q2": [("t02", 1.0), ("t01", 0.1)]}
        assert "shallow" not in read(json.dumps(nested(lists)), make_target(["q1", "q2"], ["t01", "t02"])).report.flags

    def test_truncated_after_ranking(self) -> None:
        rows = sorted(LINES, key=lambda line: float(line.split()[4]))
        reading = read("\n".join(rows), small_target(), limits=Limits(depth=5))
        assert reading.report.verdict is Verdict.NORMALISE
        assert "truncated" in reading.report.flags
        assert "21 in all" in reading.report.notes[0]
        full = as_lists(read("\n".join(LINES), small_target()), small_target())
        assert as_lists(reading, small_target()) == {query: tools[:5] for query, tools in full.items()}

    def test_half_precision(self) -> None:
        rng = np.random.default_rng(3)
        for dtype, flagged in ((np.float16, True), (np.float32, False)):
            scores = np.sort(rng.random(36).astype(dtype))[::-1].tolist()
            lists = {
                q: [(t, scores[12 * k + i]) for i, (t, _) in enumerate(r)]
                for k, (q, r) in enumerate(full_lists().items())
            }
            report = read(trec(lists), small_target()).report
            assert report.verdict is Verdict.ACCEPT
            assert ("half_precision" in report.flags) is flagged

    def test_whole_numbers_are_not_half_precision(self) -> None:
        assert "half_precision" not in read(edited(lambda rank, score: (rank, 100 - rank)), small_target()).report.flags

    def test_oracle(self) -> None:
        truth = {"q1": ["t02", "t05"], "q2": ["t07"]}
        target = make_target(["q1", "q2"], [f"t{i:02}" for i in range(12)], truth)
        lists = {"q1": [("t05", 9.5), ("t02", 9.0), ("t01", 1.0)], "q2": [("t07", 3.0), ("t01", 1.0)]}
        assert "oracle_like" in read(json.dumps(nested(lists)), target).report.flags
        lists["q1"][1], lists["q1"][2] = ("t01", 8.0), ("t02", 7.0)
        assert "oracle_like" not in read(json.dumps(nested(lists)), target).report.flags


class TestLimits:
    def test_upload(self, tmp_path: Path) -> None:
        path = tmp_path / "run"
        path.write_text("\n".join(LINES))
        for source in (path, io.BytesIO(path.read_bytes())):
            refused(read_run(source, small_target(), limits=Limits(upload_bytes=500)), "upload limit of 500 bytes")

    def test_upload_of_unknown_size(self) -> None:
        class Pipe(io.RawIOBase):
            def __init__(self, data: bytes) -> None:
                self.inner = io.BytesIO(data)

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: object) -> int:
                return self.inner.readinto(memoryview(buffer)[:7])  # type: ignore[arg-type]

        data = "\n".join(LINES).encode()
        refused(read_run(Pipe(data), small_target(), limits=Limits(upload_bytes=500)), "upload limit")  # type: ignore[arg-type]
        assert read_run(Pipe(data), small_target()).report.verdict is Verdict.ACCEPT  # type: ignore[arg-type]

    def test_expanded_and_ratio(self) -> None:
        import gzip

        import zstandard

        big = gzip.compress(b"q1 Q0 t01 1 1.0 tag\n" * 300_000)
        refused(read(big, small_target()), "expands more than 100 times")
        refused(read(zstandard.compress(bytes(200 << 20)), small_target()), "expands more than 100 times")
        refused(
            read(big, small_target(), limits=Limits(expansion_ratio=10**9, expanded_bytes=1 << 20)),
            "expands to more than 1 MiB",
        )

    def test_rows(self) -> None:
        few = Limits(rows=20)
        for data in (trec(full_lists()), json.dumps(nested(full_lists())), parquet(full_lists())):
            refused(read(data, small_target(), limits=few), "limit", "20")

    def test_line(self) -> None:
        refused(read(b"x" * (9 << 20), small_target()), "64 KiB", "limit for a line")
        refused(read(json.dumps({"query_id": "q1", "ranked_ids": ["t" * (5 << 20)]}), small_target()), "limit")

    def test_long_id(self) -> None:
        refused(
            read(with_line(4, f"q1 Q0 {'t' * 2000} 4 0.5 tag"), small_target()),
            "1,024 bytes, the limit for an id",
            line=4,
        )


@pytest.mark.parametrize(
    ("data", "mention"),
    [
        (b"", "no rows"),
        (b"\n\n", "no rows"),
        (b"\xef\xbb\xbf", "no rows"),
        (b"# only a comment\n", "no rows"),
        (b"{}", "no rows"),
        (b"query_id,tool_id,score\n", "no rows"),
        (b"PK\x03\x04....", "zip"),
        (b"\xfd7zXZ\x00....", "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (b"%PDF-1.7", "PDF"),
        (b"\x80\x04\x95pickle", "pickle"),
        (b"\x93NUMPY\x01\x00", "NumPy"),
        (b"a" * 257 + b"ustar\x0000", "tar"),
        (b"<!DOCTYPE html><title>502</title>", "HTML"),
        (b"<?xml version='1.0'?><Error/>", "XML"),
        ("q1 Q0 t01 1 0.5 tag\n".encode("utf-16"), "UTF-16"),
        ("q1 Q0 t01 1 0.5 tag\n".encode("utf-16-le"), "UTF-16"),
        ("q1 Q0 t01 1 0.5 tag\n".encode("utf-16-be"), "UTF-16"),
        ("q1 Q0 t01 1 0.5 tag\n".encode("utf-32"), "UTF-32"),
        ("q1 Q0 t01 1 0.5 tag\n".encode("utf-32-be"), "UTF-32"),
        (bytes(5000), "binary data"),
        (b"PAR1 this is not parquet PAR1", "damaged"),
        (b"\x1f\x8b\x08\x00garbage....", "damaged"),
        (b"\x28\xb5\x2f\xfdgarbage....", "zstd"),
    ],
)
def test_not_a_run(data: bytes, mention: str) -> None:
    refused(read(data, small_target()), mention)


class TestJson:
    @pytest.mark.parametrize(
        ("text", "mentions"),
        [
            ('{"q1": {"t01": 1.0, "t01": 2.0}}', ('duplicate key "t01" under "q1"',)),
            ('{"q1": {"t01": 1.0}, "q1": {"t02": 2.0}}', ('duplicate key "q1"',)),
            ('{"a": {"q1": {"t01": 1.0}}, "a": {"q2": {"t02": 2.0}}}', ('duplicate key "a"',)),
            ('{"q1": {"t01": NaN}}', ("NaN", '"q1" > "t01"')),
            ('{"q1": {"t01": -Infinity}}', ("Infinity",)),
            ('{"q1": {"t01": 1e400}}', ("too large", '"q1" > "t01"')),
            ('{"q1": {"t01": 1e39}}', ("not finite",)),
            ('{"q1": {"t01": ' + "9" * 400 + "}}", ("19 digits",)),
            ('{"q1": {"t01": ' + "9" * 5000 + "}}", ("19 digits",)),
            ('{"q1": {"t01": 1e9999999999999999999999}}', ("too large",)),
            ('{"q1": {"t01": "0.5"}}', ('text "0.5"', "write a number")),
            ('{"q1": {"t01": true}}', ("true",)),
            ('{"q1": {"t01": null}}', ("null",)),
            ('{"q1": {"t01": [1]}}', ("number",)),
            ('{"q1": 5}', ("expected an object",)),
            ('{"q1": ["t01", "t01"]}', ("duplicate", "t01")),
            ('{"q1": ["t01", 5]}', ("tool ids are texts",)),
            ('{"q1": ["t01", {"a": 1}]}', ("expected tool ids",)),
            ('{"q1": {"t01": 1}, "q2": ["t01"]}', ("write all of them in one way",)),
            ('{"q1": {"t01": 1}, "a": {"q2": {"t01": 1}}}', ("different depths",)),
            ('{"a":{"b":{"c":{"d":{"e": 1}}}}}', ("too deep",)),
            ("[" * 100_000, ("list",)),
            ('{"a":' * 100_000, ("16 levels",)),
            ('{"q1": {"t01": 1}} {"q2": {}}', ("follows the end",)),
            ('{"q1": {"t01": 1,}}', ("not valid JSON",)),
            ("{'q1': {'t01': 1}}", ("not valid JSON",)),
            ('{"q1": {"t01": 1', ("truncated", "byte 16")),
            ('{"q1": {"t0\\u00001": 1}}', ("t0U+00001",)),
            ('{"q1": {"t\\ud800": 1}}', ("\\ud800", "surrogate")),
            ('{"q1": {"t\\udc00": 1}}', ("\\udc00",)),
            ('{"q1": {"T01": 1}}', ("case",)),
            ('"q1"', ("column",)),
        ],
    )
    def test_refused(self, text: str, mentions: tuple[str, ...]) -> None:
        refused(read(text, small_target()), *mentions)

    def test_escaped_backslash_is_no_surrogate(self) -> None:
        target = make_target(["q"], ["\\ud800", "\U0001f600"])
        assert as_lists(read('{"q": {"\\\\ud800": 2, "\\ud83d\\ude00": 1}}', target), target) == {
            "q": ["\\ud800", "\U0001f600"]
        }

    def test_surrogates_across_reads(self) -> None:
        target = make_target(["q"], ["\U0001f600", "t"])
        for padding in range(65_536 - 30, 65_536):
            text = '{"q":' + " " * (padding - 5) + '{"\\ud83d\\ude00": 2, "t": 1}}'
            assert as_lists(read(text, target), target) == {"q": ["\U0001f600", "t"]}
            refused(read(text.replace("\\ude00", "x"), target), "surrogate")

    def test_invalid_utf8(self) -> None:
        refused(read(b'{"q1":\n {"t\xff": 1}}', small_target()), "0xFF at byte 12", line=2)

    def test_endless_text(self) -> None:
        refused(read(b'{"' + b"x" * (6 << 20), small_target()), "limit")


class TestJsonl:
    @pytest.mark.parametrize(
        ("line", "mentions"),
        [
            ('{"query_id": "q2", "ranked_ids": ["t01"', ("not valid JSON",)),
            ('{"query_id": "q1", "ranked_ids": ["t01"]}', ("already on line 1", "duplicate")),
            ('{"query_id": "q2", "query_id": "q3", "ranked_ids": []}', ('duplicate key "query_id"',)),
            ('{"query_id": 2, "ranked_ids": ["t01"]}', ("write it in quotes",)),
            ('{"ranked_ids": ["t01"]}', ('no "query_id"',)),
            ('{"query_id": "q2", "x": ["t01"]}', ('no "ranked_ids"',)),
            ('{"query_id": "q2", "ranked_ids": [1]}', ("is no tool",)),
            ('{"query_id": "q2", "ranked_ids": ["t01"], "scores": [1, 2]}', ("1 tool but 2 scores",)),
            ('{"query_id": "q2", "ranked_ids": ["t01"], "scores": [NaN]}', ("not a finite number",)),
            ('{"query_id": "q2", "ranked_ids": ["t01"], "scores": [1e39]}', ("not finite",)),
            ('{"query_id": "q2", "ranked_ids": ["t01"], "scores": ["1"]}', ("write a number",)),
            ('{"query_id": "q2", "ranked_ids": ["t01"], "scores": [true]}', ("write a number",)),
            ('{"query_id": "q2", "ranked_ids": ["t01", "t01"]}', ("duplicate result",)),
            ('{"query_id": "q2", "ranked_ids": ["t77"]}', ('"t77"',)),
            ('{"query_id": "q2", "ranked_ids": ["t\\ud800"]}', ("U+D800",)),
            ('{"query_id": "q2", "results": [{"score": 1}]}', ("is no tool",)),
            (
                '{"query_id": "q2", "results": [{"tool_id": "t01", "score": 1}, {"tool_id": "t02"}]}',
                ("write a number",),
            ),
            ("[1]", ("expected one object",)),
            ('{"query_id": ' + "[" * 5000, ("JSON",)),
        ],
    )
    def test_bad_line(self, line: str, mentions: tuple[str, ...]) -> None:
        text = '{"query_id": "q1", "ranked_ids": ["t02"]}\n' + line + '\n{"query_id": "q3", "ranked_ids": ["t01"]}\n'
        refused(read(text, small_target()), *mentions, line=2)

    def test_scores_on_some_lines(self) -> None:
        text = '{"query_id": "q1", "ranked_ids": ["t02"]}\n{"query_id": "q2", "ranked_ids": ["t02"], "scores": [1]}'
        refused(read(text, small_target()), "write scores on every line or on none")


class TestTables:
    @pytest.mark.parametrize(
        ("text", "mentions", "line"),
        [
            ("query_id,tool_id,score\nq1,t01,0.5\nq1,t02\n", ("2 columns, expected 3",), 3),
            ("query_id,tool_id,score\nq1,t01,0.5\nq1,t02,0.4,x\n", ("4 columns",), 3),
            ("query_id,tool_id,score\nq1,t01,0.5\nq1,t0", ("truncated",), 3),
            ("query_id,tool_id,score\nq1,t01,nan\n", ("finite",), 2),
            ('q1,t01,"0,5"\n', ("decimal point",), 1),
            ("q1,t01, 0.5\n", ("not a number",), 1),
            ("q1, t01,0.5\n", ('" t01"', "spaces"), 1),
            ('q1,"t01,0.5\nq1,t02,0.4\n', ("quotes",), 1),
            ("q1,t01,0.5\nq1,t01,0.5\n", ("duplicate", "first on line 1"), 2),
            ("query_id,tool_id\nq1,t01\n", ("score",), None),
            ("query_id,tool_id,score,score\nq1,t01,1,2\n", ("two columns",), 1),
            ("query_id,tool_id,rank\nq1,t01,1\nq1,t02,1\n", ("more than once",), 3),
            ("query_id,tool_id,rank\nq1,t01,1.0\n", ("whole number",), 2),
            ("q1\tt01\thigh\n", ("not a number",), 1),
            ("q1,Q0,t01,1,0.5,a\nq1,Q0,t02,2,0.4,b\n", ("several run tags",), 2),
        ],
    )
    def test_refused(self, text: str, mentions: tuple[str, ...], line: int | None) -> None:
        refused(read(text, small_target()), *mentions, line=line)

    def test_invalid_utf8(self) -> None:
        refused(read(b"q1,t01,0.5\nq1,t\xff,0.4\n", small_target()), "0xFF at byte 5", line=2)


class TestParquet:
    def write(self, **columns: object) -> bytes:
        out = io.BytesIO()
        pl.DataFrame(columns).write_parquet(out)
        return out.getvalue()

    @pytest.mark.parametrize(
        ("columns", "mentions"),
        [
            ({"query_id": [1], "tool_id": ["t01"], "score": [1.0]}, ("query_id", "Int64")),
            ({"query_id": ["q1"], "tool_id": ["t01"], "score": ["1.0"]}, ("score", "String")),
            ({"query_id": ["q1"], "tool_id": ["t01"], "score": [True]}, ("score", "Boolean")),
            ({"query_id": ["q1", None], "tool_id": ["t01", "t02"], "score": [1.0, 0.5]}, ("query_id", "null", "row 2")),
            ({"query_id": ["q1", "q1"], "tool_id": ["t01", "t02"], "score": [1.0, None]}, ("score", "null", "row 2")),
            (
                {"query_id": ["q1", "q1"], "tool_id": ["t01", "t02"], "score": [1.0, float("nan")]},
                ("score", "nan", "row 2"),
            ),
            ({"query_id": ["q1"], "tool_id": ["t01"], "score": [1e39]}, ("1e+39", "row 1")),
            ({"query_id": ["q1"], "tool_id": ["t99"], "score": [1.0]}, ("t99", "row 1")),
            ({"query_id": ["q1"], "tool_id": ["t01"], "rank": [1.0]}, ("rank", "Float64")),
            ({"query_id": ["q1"], "tool_id": ["t01"], "rank": [1 << 40]}, ("rank",)),
            ({"query_id": ["q1", "q1"], "tool_id": ["t01", "t01"], "score": [1.0, 0.5]}, ("duplicate",)),
            ({"qid": ["q1"], "name": ["t01"], "score": [1.0]}, ("tool_id", '"name"')),
            ({"query_id": ["q1"], "tool_id": ["t01"]}, ("score",)),
        ],
    )
    def test_refused(self, columns: dict[str, object], mentions: tuple[str, ...]) -> None:
        refused(read(self.write(**columns), small_target()), *mentions)

    def test_cut_anywhere(self) -> None:
        data = parquet(full_lists())
        for end in range(5, len(data), 97):
            refused(read(data[:end], small_target()))


def test_known_queries_with_foreign_tools_are_no_other_benchmark() -> None:
    text = "\n".join(line.replace(" t", " x", 1) for line in LINES[:-1]) + "\n" + LINES[-1].replace("q3", "q4")
    reading = read(text, small_target())
    assert "match benchmark" not in messages(reading)
    refused(reading, 'query id "q4"', 'tool id "x02"')


def test_parts_are_for_json() -> None:
    refused(read("\n".join(LINES), small_target(), part="a/b"), "no parts")
    refused(read(json.dumps(nested(full_lists())), small_target(), part="a/b"), "no parts")


def test_one_tag_after_a_bad_start_is_one_tag() -> None:
    text = "\n".join(["junk"] * 20_000 + LINES)
    reading = read(text, small_target())
    assert "several" not in messages(reading)
    assert reading.report.problem_count == 20_000


def test_semicolons_are_named() -> None:
    refused(read("q1;t01;0.5\nq1;t02;0.4\n", small_target()), "commas")
