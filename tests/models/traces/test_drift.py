"""Clocks that drift are recovered where a capture is long enough to show it, and others are left alone."""

from dataclasses import replace

import numpy as np
import pytest
from tests.models.traces.made_traces import DLRM8, KINETO, STREAM, Row, made, read
from tests.needs import needs_data

from crosswind.data.traces.trace import Events, Kind, RankTrace
from crosswind.models.traces.clocks import aligned, clocks
from crosswind.models.traces.collectives import collectives
from crosswind.models.traces.drift import drift

PPM = 1e-6


def drifting(trace: RankTrace, ppm: float) -> RankTrace:
    """The same trace by a clock that runs so much faster from the first event on."""
    events = trace.events
    first = events.begin_ns.min()

    def by(times: np.ndarray) -> np.ndarray:
        return times + np.rint(ppm * PPM * (times - first)).astype(np.int64)

    begin, end = by(events.begin_ns), by(events.end_ns)
    return replace(trace, events=Events(**(events.columns | {"begin_ns": begin, "duration_ns": end - begin})))


def long_run(rank: int, seconds: float = 10.0, noise_ns: float = 20_000.0) -> RankTrace:
    ends = np.linspace(1e8, seconds * 1e9, 200)
    late = np.abs(np.random.default_rng(rank).standard_t(2, 200)) * noise_ns  # a tail, as of hosts that are busy
    rows: list[Row] = [
        (Kind.COLLECTIVE, "ncclAllReduce", STREAM, int(end - 1e6), int(1e6 + by))
        for end, by in zip(ends, late, strict=True)
    ]
    return made(rows, rank)


@pytest.mark.parametrize("ppm", [20.0, -35.0])
def test_a_drift_of_a_long_capture_is_recovered(ppm: float) -> None:
    traces = [long_run(0), drifting(long_run(1), ppm), drifting(long_run(2), -2 * ppm)]
    result = clocks(traces)
    assert result.rate == pytest.approx([0.0, -ppm * PPM, 2 * ppm * PPM], abs=1.5 * PPM)
    assert result.residual_ns.max() < 30_000
    assert len([note for note in result.notes if "parts in a million" in note]) == 2
    moved = aligned(traces, result)
    assert all(np.abs(one.events.end_ns - moved[0].events.end_ns).mean() < 100_000 for one in moved)


@needs_data(KINETO)
@pytest.mark.parametrize("files", [DLRM8, ["gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"]])
def test_short_captures_show_no_drift(files: list[str]) -> None:
    traces = read(*files)
    result = clocks(traces)
    assert not result.rate.any()
    matched = collectives(traces)
    assert np.array_equal(result.on_first(matched.end_ns), matched.end_ns + result.offset_ns)


def test_chance_alone_is_no_drift() -> None:
    times = np.linspace(0.0, 5e9, 100)
    draws = np.random.default_rng(7).standard_t(2, (300, 100)) * 50_000.0
    assert sum(drift(times, one) != (0.0, 0.0) for one in draws) <= 3  # 1 %


def test_few_or_equal_moments_show_no_drift() -> None:
    assert drift(np.arange(5.0), np.arange(5.0)) == (0.0, 0.0)
    assert drift(np.ones(50), np.arange(50.0)) == (0.0, 0.0)
    assert drift(np.full(50, np.nan), np.arange(50.0)) == (0.0, 0.0)
