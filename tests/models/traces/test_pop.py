"""POP's metrics equal those published with Paraver's examples, to 1e-4 percentage points."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.traces.made_traces import DLRM8, KINETO, OTHER_STREAM, OTHER_THREAD, STREAM, THREAD, Row, made, read
from tests.models.traces.test_critical_path import step
from tests.needs import needs_data

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Kind
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.paraver import ParaverReader
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.pop import IdealNetwork, Pop, pop_of_devices, pop_of_hosts, scaling
from crosswind.models.traces.what_if.ideal_network import on_ideal_network

PARAVER = KINETO.parent / "paraver"
US = 1000.0


def published() -> dict[str, list[float]]:
    """The rows of the published table, of 1, 2 and 4 processes."""
    with (PARAVER / "modelfactors_1_2_4.csv").open() as stream:
        rows = [row for row in csv.reader(stream, delimiter=";") if len(row) > 1]
    return {row[0].strip("#"): [float(value) for value in row[1:]] for row in rows}


def example(processes: int) -> Pop:
    """The metrics of an example."""
    path = PARAVER / f"epoch_{processes}proc.prv.gz"
    return pop_of_hosts(list(ParaverReader().read(path, Report(str(path), "paraver"))))


@needs_data(PARAVER)
def test_published_metrics() -> None:
    table = published()
    ideal = zip(table["Runtime (ideal)"], table["Useful duration (ideal, max)"], strict=True)
    networks = [IdealNetwork(runtime * US, useful * US, is_estimated=False) for runtime, useful in ideal]  # simulated
    pops = [example(processes).on(network) for processes, network in zip((1, 2, 4), networks, strict=True)]
    scalings = [scaling(pop, pops[0]) for pop in pops]
    ours = {
        "Parallel efficiency": [pop.parallel for pop in pops],
        "Load balance": [pop.load_balance for pop in pops],
        "Communication efficiency": [pop.communication for pop in pops],
        "Serialization efficiency": [pop.serialisation for pop in pops],
        "Transfer efficiency": [pop.transfer for pop in pops],
        "Computation scalability": [one.computation for one in scalings],
        "Global efficiency": [one.global_efficiency for one in scalings],
        "IPC scalability": [one.ipc for one in scalings],
        "Instruction scalability": [one.instructions for one in scalings],
        "Frequency scalability": [one.frequency for one in scalings],
    }
    for name, values in ours.items():
        assert [100 * value for value in values] == pytest.approx(table[name], abs=1e-4), name
    assert [pop.ipc for pop in pops] == pytest.approx(table["Average IPC"], abs=1e-6)
    assert [pop.frequency_ghz for pop in pops] == pytest.approx(table["Average frequency (GHz)"], abs=1e-6)
    assert not any(pop.is_estimated for pop in pops)
    assert [one.speedup for one in scalings] == pytest.approx(table["Speedup"], abs=1e-6)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 500), st.integers(0, 400))
def test_factors_multiply(useful: list[int], waiting: int, transfer: int) -> None:
    runtime = max(useful) + waiting + transfer
    pop = Pop(runtime, tuple(map(float, useful)), tuple(map(str, useful))).on(IdealNetwork(max(useful) + waiting))
    assert pop.is_estimated
    assert pop.parallel == pytest.approx(pop.load_balance * pop.communication)
    assert pop.communication == pytest.approx(pop.serialisation * pop.transfer)
    assert pop.transfer == pytest.approx((runtime - transfer) / runtime)


def test_devices_are_useful_when_they_compute() -> None:
    rows: list[Row] = [(Kind.KERNEL, "gemm", STREAM, 0, 40), (Kind.COLLECTIVE, "nccl", OTHER_STREAM, 20, 60)]
    idle: list[Row] = [(Kind.KERNEL, "gemm", STREAM, 0, 20), (Kind.COLLECTIVE, "nccl", OTHER_STREAM, 79, 1)]
    pop = pop_of_devices([made(rows, 0), made([*idle, (Kind.COPY, "copy", STREAM, 90, 10)], 1)])
    assert pop.locations == ("rank 0, device 0", "rank 1, device 0")
    assert (pop.useful_ns, pop.runtime_ns) == ((40, 20), 100)
    assert (pop.parallel, pop.load_balance, pop.communication) == pytest.approx((0.3, 0.75, 0.4))
    assert (pop.device_communication, pop.orchestration) == pytest.approx((0.5, 0.8))


def test_ranks_without_a_device_are_named() -> None:
    rows: list[Row] = [(Kind.KERNEL, "gemm", STREAM, 0, 40)]
    pop = pop_of_devices([made(rows, 0), made([(Kind.OPERATOR, "mm", THREAD, 0, 9)], 1)])
    assert (pop.locations, pop.notes[-1]) == (("rank 0, device 0",), "rank 1: no work of a device")


def test_hosts_are_useful_in_operators_or_as_stated_by_thread() -> None:
    rows: list[Row] = [(Kind.OPERATOR, "mm", THREAD, 0, 60), (Kind.SYNC, "wait", THREAD, 50, 50)]
    pop = pop_of_hosts([made(rows, 0)])
    assert (pop.useful_ns, pop.runtime_ns, pop.locations) == ((50,), 100, ("rank 0",))
    assert pop.notes
    threads: list[Row] = [(Kind.USEFUL, "run", THREAD, 0, 60), (Kind.USEFUL, "run", OTHER_THREAD, 20, 20)]
    pop = pop_of_hosts([made(threads, 4)])
    assert pop.locations == ("rank 4, thread 1", "rank 4, thread 2")
    assert (pop.useful_ns, pop.notes) == ((60, 20), ())
    assert np.isnan(pop.ipc)


def test_an_ideal_network_is_estimated_from_a_replay() -> None:
    traces = [step(0, 100), step(1, 300)]
    pop = on_ideal_network(pop_of_devices(traces), graph(traces))
    assert pop.is_estimated
    assert pop.runtime_ns == 410 * US
    assert pop.serialisation == pytest.approx(300 / 301)
    assert pop.transfer == pytest.approx(301 / 410)


@needs_data(PARAVER)
@pytest.mark.parametrize(("processes", "simulated"), [(2, 99.842359), (4, 99.203493)])
def test_the_estimate_of_serialisation_is_near_a_simulators(processes: int, simulated: float) -> None:
    path = PARAVER / f"epoch_{processes}proc.prv.gz"
    traces = list(ParaverReader().read(path, Report(str(path), "paraver")))
    pop = on_ideal_network(pop_of_hosts(traces), graph(traces))
    assert 100 * pop.serialisation == pytest.approx(simulated, abs=0.6)


def test_weak_scaling_is_against_a_problem_that_grows() -> None:
    one, two = Pop(100.0, (80.0,), ("a",)), Pop(110.0, (80.0, 80.0), ("a", "b"))
    assert scaling(two, one).computation == pytest.approx(0.5)
    assert scaling(two, one, "weak").computation == pytest.approx(1.0)


def test_traces_without_such_locations_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no event at these locations"):
        pop_of_devices([made([(Kind.OPERATOR, "mm", THREAD, 0, 1)])])
    with pytest.raises(InvalidInputError, match="no event at these locations"):
        pop_of_hosts([made([])])


@needs_data(KINETO)
def test_a_published_run_has_both_kinds_of_locations() -> None:
    traces = read(*DLRM8)
    devices, hosts = pop_of_devices(traces), pop_of_hosts(traces)
    assert (len(devices.locations), len(hosts.locations)) == (8, 8)
    assert devices.parallel < hosts.parallel < 1
