"""A store with days of samples whose counters wrap, saturate, are reset, are corrected and go missing."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa

from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, with_node_keys
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.store.metrics.series import series
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
DAY, HOUR = 86_400 * SECOND, 3600 * SECOND
START = 20_000 * DAY  # 2024-10-04
DAYS = 3
APART = 600 * SECOND
NODES = ("n1", "n2")
METER = with_node_keys(
    MetricSet(
        "meter",
        "counters of every kind, and gauges",
        (
            Column("wrapped_total", "w", Kind.COUNTER, "uint64", unit="By", scale=4.0, width_bits=20),
            Column("saturated_total", "s", Kind.COUNTER, "uint64", width_bits=16, on_full=OnFull.SATURATE),
            Column("reset_total", "r", Kind.COUNTER, "int64", on_full=OnFull.RESET),
            Column("clamped_total", "c", Kind.COUNTER, "float64", on_full=OnFull.CLAMP),
            Column("power_watts", "p", dtype="float64", unit="W"),
            Column("heat_celsius", "h", dtype="int64", unit="Cel", scale=0.001),
        ),
    )
)
METRICS = tuple(f"meter.{column.name}" for column in METER.columns if column.kind in (Kind.COUNTER, Kind.GAUGE))
GAUGES = ("meter.power_watts", "meter.heat_celsius")
COUNTERS = tuple(one for one in METRICS if one not in GAUGES)
Values = Mapping[tuple[str, ...], tuple[float | None, ...]]


@cache
def samples(seed: int, node: str, day: int, apart_ns: int = APART) -> pa.Table:
    """Return a day of samples of a node with two devices."""
    random = np.random.default_rng([seed, day, NODES.index(node) if node in NODES else 9])
    tables = [_device(random, (node, device), day, apart_ns) for device in ("d0", "d1")]
    return pa.concat_tables(tables)


def _device(random: np.random.Generator, of: tuple[str, str], day: int, apart_ns: int) -> pa.Table:
    count = DAY // apart_ns
    times = START + day * DAY + np.arange(count) * apart_ns + random.integers(0, apart_ns // 2, count)
    is_kept = random.random(count) < 0.9
    times = times[is_kept]
    rows = len(times)
    missing = random.random((6, rows)) < 0.05
    grown = random.integers(0, 3000, rows).cumsum() + day * 1_500_000
    reset = grown % 400_000
    corrected = grown - np.where(random.random(rows) < 0.2, random.integers(0, 5000, rows), 0)
    boots = [f"b{day + (number > rows // 2)}" for number in range(rows)]  # a boot a day, at noon
    values = {
        "wrapped_total": grown % 2**20,
        "saturated_total": np.minimum(grown // 40, 2**16 - 1),
        "reset_total": reset,
        "clamped_total": corrected.astype(float),
        "power_watts": random.normal(200, 40, rows),
        "heat_celsius": random.integers(20_000, 90_000, rows),
    }
    columns = {
        name: [None if lacks else value for value, lacks in zip(of_all.tolist(), missing[place], strict=True)]
        for place, (name, of_all) in enumerate(values.items())
    }
    keys = {"node": [of[0]] * rows, "device": [of[1]] * rows, "boot_id": boots}
    return to_table(METER, {"ts_ns": times.tolist(), "mono_ns": times.tolist(), **keys, **columns})


def fill(
    lake: Lake, seed: int = 1, *, days: range = range(DAYS), nodes: tuple[str, ...] = NODES, apart_ns: int = APART
) -> None:
    """Store days of samples, a part for each node and half of a day."""
    for day in days:
        for node in nodes:
            rows = samples(seed, node, day, apart_ns)
            for half in range(2):
                lake.append(
                    f"{node}-{seed}-{day}-{half}", rows.slice(half * len(rows) // 2, len(rows) - len(rows) // 2)
                )


def asked(**others: object) -> SeriesQuestion:
    """Return a question for every metric in steps of an hour."""
    times = {"from_ns": START, "to_ns": START + DAYS * DAY, "step_seconds": 3600.0}
    return SeriesQuestion(METRICS, **{**times, "limit": 1000, **others})  # type: ignore[arg-type]


def values(store: Store, question: SeriesQuestion) -> Values:
    """Return the values of a question by metric, names and statistic."""
    answer = series(store, question, START + 100 * DAY)
    return {(one.metric, *one.labels.values(), one.statistic): one.values for one in answer.series}


def every_statistic(store: Store, **others: object) -> Values:
    """Return everything that roll-ups have."""
    plain = values(store, asked(statistics=(Statistic.MEAN, Statistic.MIN, Statistic.MAX, Statistic.SUM), **others))
    rates = asked(statistics=(Statistic.RATE,), **others)
    of_counters = SeriesQuestion(**{**vars(rates), "metrics": COUNTERS})
    return {**plain, **values(store, of_counters)}


def same(ones: Values, others: Values) -> None:
    """Check that two answers are the same."""
    assert set(ones) == set(others)
    for key, values in ones.items():
        one, other = (np.array(given, np.float64) for given in (values, others[key]))
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other), str(key))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=str(key))
