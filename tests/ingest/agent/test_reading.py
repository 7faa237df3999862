import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from crosswind.data.schema.metric import Column, MetricSet, Sample
from crosswind.ingest.agent.reading import InlineReader, Reading, ThreadReader


@dataclass
class Gated:
    """A source that answers when the test lets it."""

    metric_set: ClassVar[MetricSet] = MetricSet("gated", "turns", (Column("turns", "count"), Column("oil", "left")))
    gate: threading.Event = field(default_factory=threading.Event)
    readings: int = 0

    def available(self) -> bool:
        return True

    def read(self) -> Iterator[Sample]:
        self.readings += 1
        turn = self.readings
        assert self.gate.wait(30)
        yield Sample("a", {"turns": turn})


def answer_of(reader: ThreadReader) -> Reading:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if readings := reader.readings(is_due=False):
            return readings[0]
        time.sleep(0.005)
    raise AssertionError("no answer")


def test_rows_stand_in_the_order_of_the_set_with_none_for_missing() -> None:
    source = Gated()
    source.gate.set()
    reading = InlineReader("gated", source).read()
    assert reading.rows == [["a", 1, None]]
    assert reading.reason is None


def test_a_slow_source_keeps_nobody_waiting_and_its_answer_comes_later() -> None:
    source = Gated()
    reader = ThreadReader(InlineReader("gated", source), timeout_seconds=30)
    begin = time.monotonic_ns()
    assert reader.readings(is_due=True) == []
    assert reader.readings(is_due=True) == []  # not asked again while it is at work
    source.gate.set()
    reading = answer_of(reader)
    assert (reading.rows, source.readings) == ([["a", 1, None]], 1)
    assert begin <= reading.mono_ns  # stamped when it was read, not when it was taken in
    reader.finish(1.0)


def test_a_source_that_does_not_answer_in_time_is_down_until_it_does() -> None:
    source = Gated()
    reader = ThreadReader(InlineReader("gated", source), timeout_seconds=0.02)
    assert reader.readings(is_due=True) == []
    time.sleep(0.05)
    [down] = reader.readings(is_due=True)
    assert "no answer for" in str(down.reason)
    assert down.rows == ()
    assert source.readings == 1
    source.gate.set()
    assert answer_of(reader).rows == [["a", 1, None]]
    assert reader.readings(is_due=True) == []
    assert answer_of(reader).rows == [["a", 2, None]]
    reader.finish(1.0)


def test_the_end_waits_for_an_answer_but_not_for_ever() -> None:
    quick, stuck = Gated(), Gated()
    quick.gate.set()
    first = ThreadReader(InlineReader("gated", quick), timeout_seconds=1)
    second = ThreadReader(InlineReader("gated", stuck), timeout_seconds=1)
    first.readings(is_due=True)
    second.readings(is_due=True)
    assert [reading.rows for reading in first.finish(10.0)] == [[["a", 1, None]]]
    begin = time.monotonic()
    assert second.finish(0.05) == []
    assert time.monotonic() - begin < 5
    stuck.gate.set()
