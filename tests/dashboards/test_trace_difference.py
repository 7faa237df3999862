"""The page of a difference: words, bars that sum, and no request."""

import re

from tests.models.traces.made_traces import STREAM, THREAD, Row, made

from crosswind.cli.text.trace_difference import difference_text
from crosswind.dashboards.trace_difference import difference_page
from crosswind.data.schema.answers.trace_difference import RunsDifference
from crosswind.data.traces.trace import Kind
from crosswind.models.traces.difference.difference import difference


def answer(slower: int) -> RunsDifference:
    def rows(ns: int) -> list[Row]:
        steps: list[Row] = [(Kind.STEP, f"s{step}", THREAD, 1000 * step, 1000) for step in range(6)]
        return steps + [(Kind.KERNEL, "<gemm>", STREAM, 1000 * step, ns + step) for step in range(6)]

    return difference([made(rows(200), 0)], [made(rows(200 + slower), 0)])


def test_page_shows_the_sum_and_escapes_names() -> None:
    page = difference_page(answer(300))
    assert "<h1>No sure difference" in page
    assert "&lt;gemm&gt; slower" in page
    assert "<gemm>" not in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="http', page)
    assert "B - A" in page


def test_text_begins_with_words_and_ends_its_table_with_the_sum() -> None:
    lines = difference_text(answer(300)).split("\n")
    assert lines[0].startswith("No sure difference: B's step is 0 ns (0 %) shorter")
    assert any(line.startswith("sum = B - A") for line in lines)
    assert any(line.startswith("<gemm> slower") for line in lines)


def test_runs_that_are_the_same_have_a_page() -> None:
    assert "From A to B" in difference_page(answer(0))
