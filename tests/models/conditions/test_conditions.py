"""Conditions that are known before a run begins, and nothing that is known only later."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.cgroup import CGROUP
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.ingest.collectors.process import PROCESS
from crosswind.ingest.collectors.qdisc import QDISC
from crosswind.models.conditions import conditions_at_start, conditions_now
from crosswind.models.conditions.conditions import NAMES
from crosswind.models.conditions.reading import OTHERS, READINGS

SECOND = 10**9
HOUR = 3600 * SECOND
START = 1000
RUN = Run("r", "bert", "lab", RunState.COMPLETED, 2, nodes=("n1",), started_ns=START * SECOND, ended_ns=1060 * SECOND)
Put = Callable[..., None]


def asked(store: Store, run: Run = RUN) -> "pd.Series[float]":
    """The one row of conditions of a run, without the prefix."""
    table = conditions_at_start(store, [run])
    assert all(name.startswith("condition.") for name in table)
    return table.iloc[0].rename(lambda name: str(name).removeprefix("condition."))


def earlier(name: str, began: int, ended: int, **fields: object) -> Run:
    return replace(RUN, run_id=name, started_ns=began * SECOND, ended_ns=ended * SECOND, **fields)  # type: ignore[arg-type]


def test_every_condition_is_missing_where_nothing_was_recorded(store: Store, keep: Put) -> None:
    keep(RUN)
    conditions = asked(store)
    recorded = conditions.dropna()
    assert recorded.to_dict() == {
        "neighbour_runs": 0.0,
        "neighbour_ranks": 0.0,
        "system_runs": 0.0,
        "hour_of_week": pytest.approx(72 + 1000 / 3600),  # 1970-01-01 was a Thursday
    }
    sampled = {name for reading in READINGS for name in reading.names} | set(OTHERS)
    assert sampled < set(conditions.index)


def test_counters_become_rates_of_the_newest_two_samples_and_of_the_look_back(store: Store, sample: Put) -> None:
    ticks = {"user_seconds_total": [0, 100, 250]}  # of 10 ms: 1 s in the first second, 1.5 s in the second
    rest = ("nice", "system", "irq", "softirq", "steal")
    columns = ticks | {f"{name}_seconds_total": [0, 0, 0] for name in rest}
    sample(CPU, [START - 2.5, START - 1.5, START - 0.5], **columns)
    sample(CPU, [START - 2.5, START - 1.5, START - 0.5], device="all", **columns)  # the sum of all cores once more
    conditions = asked(store)
    assert conditions["cpu_busy_cores"] == conditions["cpu_busy_ratio"] == pytest.approx(1.5)
    assert conditions["cpu_busy_cores_recent"] == pytest.approx(1.25)
    assert conditions["others_cores"] == pytest.approx(1.5)


def test_what_watched_processes_do_is_not_counted_as_done_by_others(store: Store, sample: Put) -> None:
    rest = ("nice", "system", "irq", "softirq", "steal")
    still = {f"{name}_seconds_total": [0, 0] for name in rest}
    times = [START - 2.0, START - 1.0]
    sample(CPU, times, user_seconds_total=[0, 150], boot_id="host", **still)
    sample(PROCESS, times, device="7", run_seconds_total=[0, SECOND // 2], boot_id="host", start_ticks=[1, 1])
    # A container of the same kernel is another node; the run is not on it, yet it uses the same cores.
    sample(CPU, times, node="n2", user_seconds_total=[0, 150], boot_id="host", **still)
    sample(
        PROCESS, times, node="n2", device="9", run_seconds_total=[0, SECOND // 4], boot_id="host", start_ticks=[1, 1]
    )
    sample(
        PROCESS, times, node="n3", device="9", run_seconds_total=[0, SECOND], boot_id="elsewhere", start_ticks=[1, 1]
    )
    assert asked(store)["others_cores"] == pytest.approx(1.5 - 0.5 - 0.25)


def test_of_several_nodes_the_worst_counts(store: Store, sample: Put) -> None:
    times = [START - 2.0, START - 1.0]
    for node, drops in (("n1", 3), ("n2", 8), ("n3", 99)):
        sample(QDISC, times, node=node, device="eth0", drops_total=[0, drops], backlog_bytes=[0, drops * 10])
    conditions = asked(store, replace(RUN, nodes=("n1", "n2")))
    assert conditions["queue_drops"] == 8.0
    assert conditions["queue_backlog_bytes"] == 80.0


def test_a_limit_that_is_gone_before_the_run_begins_is_not_in_force(store: Store, sample: Put) -> None:
    sample(MEMORY, [START - 3, START - 2, START - 1], device="node", available_bytes=[5, 4, 3])
    quota = {"cpu_quota_seconds": [50_000], "cpu_period_seconds": [100_000], "generation": [1]}
    sample(CGROUP, [START - 2.99], device="job", **quota)
    assert np.isnan(asked(store)["cpu_quota_cores"])
    sample(CGROUP, [START - 0.99], device="job", **quota)
    conditions = asked(store)
    assert conditions["cpu_quota_cores"] == 0.5
    assert conditions["available_bytes"] == 3 * 1024


def test_nothing_from_the_start_on_is_known(store: Store, keep: Put, sample: Put) -> None:
    past = [earlier(f"e{number}", 10 * number, 10 * number + 5 + number % 3) for number in range(1, 9)]
    keep(RUN, *past)
    columns = {f"{name}_seconds_total": [0, 10, 30] for name in ("user", "nice", "system", "irq", "softirq", "steal")}
    sample(CPU, [START - 3, START - 2, START - 1], **columns)
    sample(MEMORY, [START - 3, START - 2, START - 1], device="node", available_bytes=[5, 4, 3])
    before = asked(store)
    later = {name: [values[-1] + 1000, values[-1] + 9000] for name, values in columns.items()}
    sample(CPU, [START, START + 1], **later)  # from the very nanosecond on
    sample(MEMORY, [START, START + 1], device="node", available_bytes=[1, 1])
    sample(CGROUP, [START], device="job", cpu_quota_seconds=[1], cpu_period_seconds=[9], generation=[1])
    keep(earlier("later", START, START + 5), earlier("after", START + 70, START + 99, workload="other"))
    keep(replace(RUN, ended_ns=5000 * SECOND))  # its own outcome
    pd.testing.assert_series_equal(asked(store), before)
    assert before.notna().sum() > 15


def test_tags_change_nothing(store: Store, keep: Put) -> None:
    past = [earlier(f"e{number}", 10 * number, 10 * number + 5 + number % 3) for number in range(1, 9)]
    keep(RUN, *past)
    before = asked(store)
    keep(*(replace(run, tags={"injected": "cpu_hog:0:3", "split": "test", "position": "1"}) for run in [RUN, *past]))
    pd.testing.assert_series_equal(asked(store, replace(RUN, tags={"injected": "none"})), before)


def test_runs_in_progress_are_neighbours_on_shared_nodes(store: Store, keep: Put) -> None:
    keep(RUN, earlier("beside", 990, 1010, nodes=("n1", "n2"), world_size=8), earlier("far", 990, 1010, nodes=("n9",)))
    keep(earlier("gone", 900, 999), earlier("other system", 990, 1010, system="elsewhere"))
    keep(replace(RUN, run_id="lost", state=RunState.LOST, started_ns=1, ended_ns=None))
    conditions = asked(store)
    assert (conditions["neighbour_runs"], conditions["neighbour_ranks"], conditions["system_runs"]) == (1.0, 4.0, 2.0)
    assert conditions["idle_seconds"] == 0.0
    assert asked(store, replace(RUN, nodes=("n5",)))["neighbour_runs"] == 0.0


def test_idle_time_is_counted_from_the_last_end_on_these_nodes(store: Store, keep: Put) -> None:
    keep(earlier("long ago", 100, 200), earlier("newest", 300, 960), earlier("elsewhere", 300, 999, nodes=("n2",)))
    assert asked(store)["idle_seconds"] == pytest.approx(40.0)


DAY = 24 * 3600
NEIGHBOURS = ["condition.neighbour_runs", "condition.system_runs", "condition.idle_seconds"]


@pytest.mark.parametrize(
    ("began_days", "ended_days", "neighbours", "idle_days"),
    [(6.9, -1, 1, 0), (7.1, -1, 0, None), (13.8, 6.9, 0, 6.9), (14.0, 6.9, 0, None), (7.2, 7.1, 0, None)],
)
@pytest.mark.parametrize("names", [NEIGHBOURS, NAMES], ids=["alone", "among all"])
def test_a_run_that_began_more_than_a_week_ago_is_no_neighbour(
    store: Store, keep: Put, names: list[str], began_days: float, ended_days: float, neighbours: int, idle_days: float
) -> None:
    now = 30 * DAY
    keep(earlier("other", int(now - began_days * DAY), int(now - ended_days * DAY)))
    late = replace(RUN, started_ns=now * SECOND, ended_ns=(now + 60) * SECOND)
    conditions = conditions_at_start(store, [late], names=names)[NEIGHBOURS].to_numpy()[0]
    idle = np.nan if idle_days is None else idle_days * DAY
    np.testing.assert_allclose(conditions, [neighbours, neighbours, idle], rtol=1e-6)


def test_the_newest_runs_tell_how_far_they_lay_from_their_cohorts_medians(store: Store, keep: Put) -> None:
    keep(*(earlier(f"e{number}", 20 * number, 20 * number + 10) for number in range(1, 5)))
    keep(earlier("slow", 900, 920))
    conditions = asked(store)
    assert conditions["last_log_ratio"] == pytest.approx(np.log(2.0))
    assert conditions["last_age_seconds"] == pytest.approx(80.0)
    # Of the runs that three others of their cohort came before: log 2, then 0 with 0.7 of its weight.
    assert conditions["recent_log_ratio"] == pytest.approx(np.log(2.0) / 1.7)


def test_the_effect_of_a_node_is_drawn_to_nothing_where_it_ran_little(store: Store, keep: Put) -> None:
    runs = [
        earlier(
            f"e{number}", 20 * number, 20 * number + (18 if number % 2 else 10), nodes=("n1" if number % 2 else "n2",)
        )
        for number in range(1, 41)
    ]
    keep(*runs)
    slow, fast = (asked(store, replace(RUN, nodes=(node, "n1", "n2")))["node_effect"] for node in ("n1", "n2"))
    assert slow == fast  # of both nodes the slower counts
    assert 0.05 < slow < np.log(1.8) / 2  # half of the difference, less what its few runs cost
    assert np.isnan(asked(store, replace(RUN, nodes=("n7",)))["node_effect"])


def test_conditions_now_are_those_of_a_run_that_would_begin_then(store: Store, keep: Put, sample: Put) -> None:
    keep(RUN, *(earlier(f"e{number}", 20 * number, 20 * number + 10 + number) for number in range(1, 7)))
    sample(MEMORY, [START - 2, START - 1], device="node", available_bytes=[5, 4])
    now = conditions_now(store, ["n1"], at_ns=START * SECOND)
    pd.testing.assert_frame_equal(now, conditions_at_start(store, [RUN]))
    live = conditions_now(store, ["n1"]).iloc[0]
    assert np.isnan(live[["condition.idle_seconds", "condition.available_bytes"]]).all()  # 1970 is long ago


def test_rows_stand_in_the_order_of_the_runs_asked_about(store: Store, sample: Put) -> None:
    sample(MEMORY, [START - 2, START - 1], device="node", available_bytes=[5, 4])
    second = replace(RUN, run_id="s", started_ns=(START - 1) * SECOND)
    both = conditions_at_start(store, [RUN, second])["condition.available_bytes"]
    assert both.tolist() == [4 * 1024, 5 * 1024]
    assert len(conditions_at_start(store, [])) == 0


def test_a_run_without_a_start_or_a_question_without_nodes_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="run r: started_ns is unknown"):
        conditions_at_start(store, [replace(RUN, started_ns=None)])
    with pytest.raises(InvalidInputError, match="nodes is empty"):
        conditions_now(store, [])
