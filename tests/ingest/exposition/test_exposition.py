import math
from dataclasses import replace

import pytest
from tests.ingest.exposition.shown import made_up, of_sources, shown
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.metric import Column, Kind, Scalar
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.collectors.amd_gpu import AMD_GPU
from crosswind.ingest.collectors.gpu_process import GPU_PROCESS
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.text import OPEN_METRICS, PLAIN, media_type_for, render

COUNT = Column("things_total", "things counted", Kind.COUNTER)
LEVEL = Column("level_ratio", "how full", dtype="float64", unit="ratio")


def samples(latest: dict[str, LatestReading], media_type: str = PLAIN) -> dict[str, str]:
    lines = render(latest, media_type).decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_a_column_without_a_name_in_use_is_named_by_its_set_and_device() -> None:
    text = render(made_up({"a": (3, 0.5)}, COUNT, LEVEL)).decode()
    assert text == (
        "# HELP collector_capability 1 when the source could be read, else 0\n"
        "# TYPE collector_capability gauge\n"
        'collector_capability{source="made_up"} 1\n'
        "# HELP collector_scrape_duration_seconds time that the last read took\n"
        "# TYPE collector_scrape_duration_seconds gauge\n"
        'collector_scrape_duration_seconds{source="made_up"} 0.25\n'
        "# HELP crosswind_made_up_level_ratio how full\n"
        "# TYPE crosswind_made_up_level_ratio gauge\n"
        'crosswind_made_up_level_ratio{device="a"} 0.5\n'
        "# HELP crosswind_made_up_things_total things counted\n"
        "# TYPE crosswind_made_up_things_total counter\n"
        'crosswind_made_up_things_total{device="a"} 3\n'
    )


def test_openmetrics_takes_total_from_the_family_and_ends() -> None:
    text = render(made_up({"a": (3,)}, COUNT), OPEN_METRICS).decode()
    assert text.endswith(
        "# HELP crosswind_made_up_things things counted\n"
        "# TYPE crosswind_made_up_things counter\n"
        'crosswind_made_up_things_total{device="a"} 3\n'
        "# EOF\n"
    )


def test_openmetrics_has_no_two_families_of_one_name() -> None:
    text = render(made_up({"a": (3, 4)}, COUNT, Column("things", "things now")), OPEN_METRICS).decode()
    assert "# TYPE crosswind_made_up_things gauge\n" in text
    assert "# TYPE crosswind_made_up_things_total unknown\n" in text
    assert text.count("# TYPE crosswind_made_up_things ") == 1


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "text"])
def test_what_is_no_number_is_left_out(value: Scalar) -> None:
    assert not any("level" in name for name in samples(made_up({"a": (3, value)}, COUNT, LEVEL)))


@pytest.mark.parametrize(
    ("device", "written"),
    [
        ('say "hi"', r"say \"hi\""),
        ("back\\slash", r"back\\slash"),
        ("two\nlines", r"two\nlines"),
        ('"} 1\nnode_load1 99', r"\"} 1\nnode_load1 99"),
        ("löwe 🦁", "löwe 🦁"),
    ],
)
def test_hostile_device_names_stay_inside_their_quotes(device: str, written: str) -> None:
    text = render(made_up({device: (3,)}, COUNT)).decode()
    assert f'crosswind_made_up_things_total{{device="{written}"}} 3' in text.splitlines()


def test_a_device_that_is_repeated_is_exposed_once() -> None:
    [source] = made_up({"a": (3,)}, COUNT).values()
    twice = replace(source, rows=replace(source.rows, rows=[("a", 3), ("a", 4)]))
    assert samples({"made_up": twice})['crosswind_made_up_things_total{device="a"}'] == "3"


def test_keys_of_a_set_are_labels() -> None:
    text = samples(made_up({"a": ("rx_discards", 3)}, Column("counter", "which", Kind.KEY, "string"), COUNT))
    assert text['crosswind_made_up_things_total{device="a",counter="rx_discards"}'] == "3"


def test_texts_and_stamps_are_not_exposed() -> None:
    columns = (
        Column("model", "name", Kind.FACT, "string"),
        Column("measured_ns", "when", Kind.FACT),
        Column("began", "epoch", Kind.EPOCH),
    )
    assert not any("made_up_" in name for name in samples(made_up({"a": ("x", 1, 2)}, *columns)))


def test_a_source_that_is_down_is_exposed_as_down_and_shows_nothing_old() -> None:
    [source] = made_up({"a": (3,)}, COUNT).values()
    exposed = samples({"made_up": replace(source, reason="UnavailableError: gone")})
    assert exposed == {
        'collector_capability{source="made_up"}': "0",
        'collector_scrape_duration_seconds{source="made_up"}': "0.25",
    }


def test_the_time_of_the_last_sweep_is_shown() -> None:
    own = shown(AGENT, [("agent", *[None] * len(AGENT.columns))])
    own = replace(own, rows=replace(own.rows, ts_ns=1_790_000_000_250_000_000))
    exposed = samples({"agent": own})
    assert exposed["collector_last_sweep_timestamp_seconds"] == "1790000000.25"
    assert "collector_last_sweep_timestamp_seconds" not in samples(made_up({"a": (1,)}, COUNT))


def test_families_are_sorted_and_each_is_exposed_in_one_place() -> None:
    text = render(of_sources(recorded_tree("two_sockets"), ["hwmon", "rapl", "thermal", "frequency"])).decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert names == sorted(set(names))


def test_cores_memory_network_and_pressure_have_the_names_of_node_exporter() -> None:
    exposed = samples(
        of_sources(recorded_tree("two_cores"), ["cpu", "memory", "network", "protocol", "pressure", "disk", "softnet"])
    )
    assert exposed['node_cpu_seconds_total{cpu="0",mode="user"}'] == "486.15"  # 48615 ticks
    assert exposed["node_memory_MemTotal_bytes"] == "25276502016"  # 24684084 kB
    assert exposed['node_network_receive_bytes_total{device="eth0"}'] == "466641190"
    assert exposed["node_netstat_Tcp_RetransSegs"] == "483"
    assert {
        "node_context_switches_total",
        "node_load1",
        "node_procs_running",
        "node_vmstat_pgmajfault",
    } <= exposed.keys()
    assert {f"node_pressure_{of}_waiting_seconds_total" for of in ("cpu", "io", "memory")} <= exposed.keys()
    assert 'node_softnet_processed_total{cpu="0"}' in exposed
    assert not any(name.startswith("crosswind_memory_") and "_bytes" in name for name in exposed)


def test_the_sum_over_cores_is_no_core() -> None:
    exposed = samples(of_sources(recorded_tree("two_cores"), ["cpu"]))
    assert not any(name.startswith("node_cpu_seconds_total") and "all" in name for name in exposed)
    assert 'crosswind_cpu_user_seconds_total{device="all"}' in exposed


def test_energy_temperature_and_ports_have_the_names_of_node_exporter() -> None:
    exposed = samples(of_sources(recorded_tree("two_sockets"), ["rapl", "thermal", "hwmon", "frequency"]))
    exposed |= samples(of_sources(recorded_tree("fabric"), ["infiniband"]))
    assert exposed['node_rapl_dram_joules_total{index="1"}'] == "7713.562041"
    assert exposed['node_thermal_zone_temp{type="acpitz",zone="0"}'] == "27.8"
    assert exposed['node_hwmon_temp_celsius{chip="coretemp/coretemp.0",sensor="Package id 0"}'] == "61.0"
    assert exposed['node_cpu_scaling_frequency_hertz{cpu="3"}'] == "800000000.0"
    assert exposed['node_infiniband_port_data_transmitted_bytes_total{device="mlx5_0",port="1"}'] == "820573989857968"


def test_gpus_of_both_vendors_share_their_names() -> None:
    nvidia = {"index": 0, "energy_joules_total": 2_500, "sm_clock_hertz": 1980, "throttle_power_seconds_total": 10**9}
    nvidia |= {"ecc_corrected_lifetime_total": 3, "nvlink_transmit_bytes_total": 1}
    amd = {"index": 1, "energy_joules_total": 65536, "throttle_power_total": 7}
    latest = {
        "gpu": shown(GPU, [("GPU-1", *map(nvidia.get, (column.name for column in GPU.columns)))]),
        "amd_gpu": shown(AMD_GPU, [("amd-1", *map(amd.get, (column.name for column in AMD_GPU.columns)))]),
        "gpu_process": shown(GPU_PROCESS, [("GPU-1", 42, 1024)]),
    }
    exposed = {name: value for name, value in samples(latest).items() if name.startswith(("gpu_", "crosswind_"))}
    assert exposed == {
        'gpu_energy_joules_total{gpu="0",uuid="GPU-1"}': "2.5",
        'gpu_energy_joules_total{gpu="1",uuid="amd-1"}': "1.0",
        'gpu_clock_hertz{clock="sm",gpu="0",uuid="GPU-1"}': "1980000000.0",
        'gpu_throttle_seconds_total{gpu="0",reason="power",uuid="GPU-1"}': "1.0",
        'gpu_throttle_cycles_total{gpu="1",reason="power",uuid="amd-1"}': "7",
        'gpu_ecc_errors_total{gpu="0",type="corrected",uuid="GPU-1",volatile="false"}': "3",
        'gpu_nvlink_tx_bytes_total{gpu="0",uuid="GPU-1"}': "1024",
        'gpu_process_memory_bytes{pid="42",uuid="GPU-1"}': "1024",
        'crosswind_gpu_index{device="GPU-1"}': "0",
        'crosswind_amd_gpu_index{device="amd-1"}': "1",
    }


def test_the_agent_reports_itself_where_it_is_given() -> None:
    own = {"cpu_seconds_total": 1.5, "missed_ticks_total": 2, "dropped_rows_total": 3, "shipped_bytes_total": 4}
    latest = {"agent": shown(AGENT, [("agent", *map(own.get, (column.name for column in AGENT.columns)))])}
    exposed = samples(latest)
    assert exposed["collector_cpu_seconds_total"] == "1.5"
    assert exposed["collector_missed_ticks_total"] == "2"
    assert exposed['collector_samples_dropped_total{stage="rows"}'] == "3"
    assert exposed['crosswind_agent_shipped_bytes_total{device="agent"}'] == "4"


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/plain", PLAIN),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPEN_METRICS),
        ("application/openmetrics-text;q=0.3, text/plain;q=0.9", PLAIN),
        ("application/openmetrics-text;q=0", PLAIN),
        ("application/openmetrics-text;q=lots", PLAIN),
    ],
)
def test_the_format_is_the_one_requested(accept: str, media_type: str) -> None:
    assert media_type_for(accept) == media_type
