"""Rates while a run makes its steps, from counters as collectors write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import MetricSet, with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.amd_gpu import AMD_GPU
from crosswind.ingest.collectors.cgroup import CGROUP
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.cxi import CXI
from crosswind.ingest.collectors.ethtool import ETHTOOL
from crosswind.ingest.collectors.frequency import FREQUENCY
from crosswind.ingest.collectors.infiniband import INFINIBAND
from crosswind.ingest.collectors.lustre import LUSTRE
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.ingest.collectors.network import NETWORK
from crosswind.ingest.collectors.nfs import NFS
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.collectors.pressure import PRESSURE
from crosswind.ingest.collectors.protocol import PROTOCOL
from crosswind.ingest.collectors.qdisc import QDISC
from crosswind.models.explain.causes.low_clock import CLOCKS, missing_clock_shares
from crosswind.models.explain.causes.packet_loss import OUT_OF_ORDER
from crosswind.models.explain.cohort.columns import COLUMNS, COMPARED_SAMPLES, RUNS_ALIKE, SAMPLED, SAMPLED_COLUMNS
from crosswind.models.explain.evidence.indicators import ComparedRun, Sampled
from crosswind.models.explain.evidence.node_rates import rates_during, sampled_during
from crosswind.models.explain.evidence.rate import Rate
from crosswind.models.explain.evidence.step_columns import OTHER_THREADS

SECOND = 10**9
METRIC_SETS = (
    AMD_GPU,
    CGROUP,
    CPU,
    CXI,
    ETHTOOL,
    FREQUENCY,
    GPU,
    INFINIBAND,
    LUSTRE,
    MEMORY,
    NETWORK,
    NFS,
    PRESSURE,
    PROTOCOL,
    QDISC,
)
SETS = {metric_set.name: metric_set for metric_set in METRIC_SETS}
RUN = Run("r", "w", "s", RunState.COMPLETED, nodes=("n1", "n2"))
EVIDENCE = (*SAMPLED, *COMPARED_SAMPLES)
RATES = [(sampled, rate) for sampled in EVIDENCE for rate in sampled.rates]
Samples = Callable[..., None]


@pytest.fixture
def sample(store: Store) -> Samples:
    """Stores a device's rows, one at each of these seconds; columns hold raw values."""

    def put(
        metric_set: MetricSet, seconds: Sequence[float], device: str, *, node: str = "n1", **columns: object
    ) -> None:
        times = [int(second * SECOND) for second in seconds]
        keys = {"ts_ns": times, "mono_ns": times, "node": [node] * len(times), "device": [device] * len(times)}
        rows = keys | {"boot_id": [f"boot of {node}"] * len(times)} | columns
        part = "-".join([metric_set.name, node, device, *columns.get("statistic", [])[:1]])  # type: ignore[attr-defined]
        plain = "".join(letter if letter.isalnum() else "-" for letter in part)
        store.lake.append(plain, to_table(with_node_keys(metric_set), rows))

    return put


def spans(begin: float, end: float, *, steps: int = 10, run: Run = RUN) -> pd.DataFrame:
    """Steps of one rank from one second to another."""
    times = {"begin_ns": int(begin * SECOND), "end_ns": int(end * SECOND)}
    return pd.DataFrame([{"run_id": run.run_id, "rank": 0, **times, "steps": steps + 1, "first": 0, "last": steps}])


def sampled_in(store: Store, runs: Sequence[Run], spans: pd.DataFrame) -> dict[str, dict[str, float]]:
    return sampled_during(store.lake, runs, spans, SAMPLED, compared=COMPARED_SAMPLES)


def lost(by_run: Mapping[str, Mapping[str, float]], runs: Sequence[Run]) -> list[float]:
    """Return the share of its clock that each run lacks."""
    clocks = {run_id: {clock.column: values[clock.column] for clock in CLOCKS} for run_id, values in by_run.items()}
    return list(missing_clock_shares([ComparedRun(run, {}, {}, {}, {}, clocks[run.run_id]) for run in runs]).values())


def recorded_rates(store: Store, begin: float = 0.0, end: float = 10.0) -> dict[str, float]:
    """Return the rates of a run of ten steps of a second each, as far as they were sampled."""
    rates = sampled_in(store, [RUN], spans(begin, end))["r"]
    return {name: value for name, value in rates.items() if not np.isnan(value)}


@pytest.mark.parametrize(("sampled", "rate"), RATES)
def test_every_rate_is_of_columns_that_a_collector_writes_and_becomes_a_column_of_segments(
    sampled: Sampled, rate: Rate
) -> None:
    names = {column.name for column in SETS[rate.metric_set].columns}
    assert rate.needs <= names
    assert sampled.column in COLUMNS or sampled in CLOCKS
    assert all(SETS[rate.metric_set][name].name.endswith("_total") != rate.is_gauge for name in rate.columns)


def test_every_column_that_is_sampled_has_a_rate() -> None:
    columns = {sampled.column for sampled, _ in RATES}
    assert columns == {*SAMPLED_COLUMNS, "core_clock", "gpu_clock"} - {OTHER_THREADS}
    assert not columns & {column for alike in RUNS_ALIKE for column in alike.columns}


def test_nothing_is_known_where_nobody_sampled(store: Store) -> None:
    assert recorded_rates(store) == {}
    assert sampled_in(store, [replace(RUN, nodes=())], spans(0, 10)) == {}
    assert sampled_in(store, [RUN], spans(0, 10, steps=0)) == {}


@pytest.mark.parametrize("devices", [("all",), ("cpu0", "cpu1"), ("all", "cpu0", "cpu1")])
def test_stolen_time_is_a_share_of_the_time_that_cores_had_work(
    store: Store, sample: Samples, devices: Sequence[str]
) -> None:
    """Two cores for five seconds, in ticks of 10 ms; the second one had no work."""
    still = {f"{mode}_seconds_total": [0, 0] for mode in ("nice", "system", "iowait", "irq", "softirq")}
    ticks = {"all": (300, 600, 100), "cpu0": (300, 100, 100), "cpu1": (0, 500, 0)}
    for device in devices:
        columns = zip(("user", "idle", "steal"), ticks[device], strict=True)
        sample(CPU, [1, 6], device, **still, **{f"{mode}_seconds_total": [0, grown] for mode, grown in columns})
    assert recorded_rates(store)["stolen"] == pytest.approx(0.25)  # of each second of a step


def test_swap_pressure_and_faults_of_the_worst_node(store: Store, sample: Samples) -> None:
    sample(MEMORY, [1, 3], "node", swapped_in_pages_total=[100, 300])
    sample(MEMORY, [1, 3], "node", node="n2", swapped_in_pages_total=[0, 1000])
    sample(MEMORY, [1, 3], "node", node="n3", swapped_in_pages_total=[0, 9000])  # not of the run
    for device, waited in (("memory", 400_000), ("io", 600_000), ("cpu", 900_000)):
        sample(PRESSURE, [1, 3], device, waiting_seconds_total=[0, waited])
    rates = recorded_rates(store)
    assert rates["swapped_in"] == pytest.approx(500.0)
    assert rates["memory_stalled"] == pytest.approx(0.2)
    assert not {"io_stalled", "cpu_waited"} & rates.keys()  # of the node: whose tasks waited, it does not say


def test_a_jobs_group_shows_that_its_tasks_waited_for_cores_and_storage(store: Store, sample: Samples) -> None:
    waited = {"cpu_waiting_seconds_total": [0, 1_000_000], "io_waiting_seconds_total": [0, 600_000]}
    sample(CGROUP, [1, 3], "/job_7", **waited, generation=[1, 1])
    rates = recorded_rates(store)
    assert (rates["cpu_waited"], rates["io_stalled"]) == (pytest.approx(0.5), pytest.approx(0.3))


def test_clients_of_file_systems_tell_how_long_reads_took(store: Store, sample: Samples) -> None:
    sample(NFS, [1, 3], "/data", read_execute_seconds_total=[100, 900])  # milliseconds
    assert recorded_rates(store)["io_stalled"] == pytest.approx(0.4)
    sample(LUSTRE, [1, 3], "scratch", read_seconds_total=[0, 1_000_000])  # microseconds
    assert recorded_rates(store)["io_stalled"] == pytest.approx(0.5)


def test_heat_and_power_of_processors_and_gpus(store: Store, sample: Samples) -> None:
    sample(FREQUENCY, [1, 3], "package0", throttled_seconds_total=[0, 200])  # milliseconds
    sample(FREQUENCY, [1, 3], "cpu0", throttled_seconds_total=[0, 1900])
    assert recorded_rates(store)["heat_throttled"] == pytest.approx(0.1)
    throttles = {"throttle_thermal_seconds_total": [0, 10**9], "throttle_power_seconds_total": [0, 4 * 10**8]}
    sample(GPU, [1, 3], "GPU-1", **throttles, throttle_board_limit_seconds_total=[0, 0], driver_epoch=[1, 1])
    rates = recorded_rates(store)
    assert rates["heat_throttled"] == pytest.approx(0.5)
    assert rates["power_throttled"] == pytest.approx(0.2)


def test_an_amd_gpu_is_held_down_for_a_share_of_its_controllers_cycles(store: Store, sample: Samples) -> None:
    held = {
        "throttle_power_total": [0, 250],
        "throttle_prochot_total": [0, 0],
        "throttle_memory_thermal_total": [7, 107],
    }
    sample(AMD_GPU, [1, 3], "gpu-1", **held, accumulation_total=[1000, 2000], driver_epoch=[1, 1])
    rates = recorded_rates(store)
    assert rates["power_throttled"] == pytest.approx(0.25)
    assert rates["heat_throttled"] == pytest.approx(0.1)


def test_a_link_is_busy_for_bytes_over_its_speed_in_the_busier_direction(store: Store, sample: Samples) -> None:
    speed = {"speed_bytes_per_second": [8, 8]}  # of 125 000 bytes: one megabyte a second
    for device, received, sent in (("eth0", 200_000, 400_000), ("eth1", 100_000, 100_000), ("lo", 9_000_000, 0)):
        counters = {"receive_bytes_total": [0, received], "transmit_bytes_total": [0, sent]}
        sample(NETWORK, [1, 3], device, **counters, **speed, ifindex=[1, 1])
    assert recorded_rates(store)["link_busy"] == pytest.approx(0.2)
    words = {"receive_bytes_total": [0, 1_000_000], "transmit_bytes_total": [0, 0]}  # of 4 octets
    sample(INFINIBAND, [1, 3], "mlx5_0/1", **words, rate_bytes_per_second=[40, 40], registration=[1, 1])
    assert recorded_rates(store)["link_busy"] == pytest.approx(0.4)


def test_a_link_without_a_speed_gives_no_rate(store: Store, sample: Samples) -> None:
    counters = {"receive_bytes_total": [0, 200_000], "transmit_bytes_total": [0, 9]}
    sample(NETWORK, [1, 3], "eth0", **counters, speed_bytes_per_second=[None, None], ifindex=[1, 1])
    assert recorded_rates(store) == {}


def test_what_asks_senders_to_wait(store: Store, sample: Samples) -> None:
    facts = {"ifindex": [1, 1]}
    for name, value in (("rx_prio3_pause", 40), ("rx_prio3_pause_duration", 9000), ("tx_prio3_pause", 700)):
        sample(ETHTOOL, [1, 3], "eth0", statistic=[name] * 2, value_total=[0, value], **facts)
    marks = {"rp_cnp_handled_total": [0, 6], "np_ecn_marked_roce_packets_total": [0, 2]}
    again = {"local_ack_timeout_err_total": [0, 4], "packet_seq_err_total": [5, 15]}
    sample(INFINIBAND, [1, 3], "mlx5_0/1", transmit_wait_total=[0, 2000], registration=[1, 1], **marks, **again)
    sample(PROTOCOL, [1, 3], "tcp", retransmitted_segments_total=[10, 18], delivered_marked_segments_total=[0, 1])
    rates = recorded_rates(store)
    assert (rates["pauses"], rates["port_waits"], rates["marks"]) == (20.0, 1000.0, 3.0)
    assert (rates["retransmits"], rates["retries"]) == (4.0, 5.0)


def test_clocks_are_compared_with_the_highest_of_the_systems_runs(store: Store, sample: Samples) -> None:
    runs = [replace(RUN, run_id=f"r{place}", nodes=(f"n{place}",)) for place in range(3)]
    runs.append(replace(RUN, run_id="else", system="other", nodes=("n3",)))
    for run, kilohertz in zip(runs, (3_000_000, 2_400_000, None, 1_000_000), strict=True):
        sample(FREQUENCY, [1, 3], "cpu0", node=run.nodes[0], frequency_hertz=[kilohertz, kilohertz])
        sample(FREQUENCY, [1, 3], "cpu1", node=run.nodes[0], frequency_hertz=[800_000, None])  # idle
    of_runs = pd.concat([spans(0, 10, run=run) for run in runs])
    by_run = sampled_in(store, runs, of_runs)
    assert lost(by_run, runs) == pytest.approx([0.0, 0.2, 1 - 0.8 / 3, 0.0])


def test_of_gpus_those_in_use_count_and_the_slowest_of_them(store: Store, sample: Samples) -> None:
    for node, device, megahertz, used in (("n1", "a", 1980, 90), ("n1", "b", 345, 0), ("n2", "c", 1485, 80)):
        sample(GPU, [1, 3], device, node=node, sm_clock_hertz=[megahertz] * 2, utilization_ratio=[used] * 2)
    runs = [replace(RUN, run_id="fast", nodes=("n1",)), RUN]
    by_run = sampled_in(store, runs, pd.concat([spans(0, 10, run=run) for run in runs]))
    assert lost(by_run, runs) == pytest.approx([0.0, 0.25])


def test_a_group_without_a_quota_is_not_throttled_where_anything_was_sampled(store: Store, sample: Samples) -> None:
    sample(QDISC, [1, 3], "eth0", overlimits_total=[0, 6], ifindex=[1, 1], generation=[0, 0])
    assert recorded_rates(store) == {"throttled": 0.0, "overlimits": 3.0}


def test_of_queued_bytes_the_mean_counts_however_long_a_step_is(store: Store, sample: Samples) -> None:
    facts = {"ifindex": [1, 1, 1], "generation": [0, 0, 0]}
    sample(QDISC, [1, 3, 4], "eth0 root", backlog_bytes=[0, 3000, 0], **facts)
    sample(QDISC, [1, 3, 4], "eth0 1:", backlog_bytes=[600, 0, 0], **facts)
    assert recorded_rates(store, 0, 10)["backlog"] == recorded_rates(store, 0, 5)["backlog"] == pytest.approx(1200.0)


def test_rates_are_growth_over_seconds_of_pairs_within_and_no_others(store: Store, sample: Samples) -> None:
    random = np.random.default_rng(0)
    places, devices = [], {}
    for node in ("n1", "n2"):
        for device in ("tcp", "udp"):
            times = np.sort(random.choice(np.arange(0, 400, 0.25), 120, replace=False))
            counts = random.integers(0, 9, 120).cumsum()
            devices[node, device] = times, counts
            sample(PROTOCOL, times.tolist(), device, node=node, out_of_order_segments_total=counts.tolist())
        for moment in range(12):
            begin = float(random.uniform(-20, 380))
            places.append((moment, node, int(begin * SECOND), int((begin + random.uniform(1, 90)) * SECOND)))
    table = pd.DataFrame(places, columns=["moment", "at_node", "from_ns", "until_ns"])
    measured = rates_during(store.lake, table, 12, [OUT_OF_ORDER])["out_of_order"]
    expected = np.full(12, np.nan)
    for moment, node, begin, end in places:
        times, counts = devices[node, "tcp"]
        pairs = [
            (counts[place] - counts[place - 1], times[place] - times[place - 1])
            for place in range(1, 120)
            if begin <= times[place - 1] * SECOND and times[place] * SECOND < end
        ]
        grown, seconds = np.sum([pair for pair in pairs if pair[1] <= 30] or [(0, 0)], axis=0)
        if seconds:
            expected[moment] = np.fmax(expected[moment], grown / seconds)
    assert (~np.isnan(expected)).sum() > 8
    assert measured == pytest.approx(expected, nan_ok=True)
