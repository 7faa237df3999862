from typing import Any

import pytest

from crosswind.data.catalog import tables
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.occupancy import Allocation, Placement, Source
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.ingest.spool.records import (
    ALLOCATION_TYPES,
    INJECTION_TYPES,
    PLACEMENT_TYPES,
    RANK_TYPES,
    RUN_TYPES,
    TEXT_LIMITS,
    allocation_of,
    injection_of,
    placement_of,
    rank_of,
    run_of,
)

RUN: dict[str, Any] = {"run_id": "r1", "workload": "toy", "system": "lab", "state": "running"}
ALLOCATION: dict[str, Any] = {"job_id": "7", "node": "n1", "sampled_as": "n1.lab", "source": "prolog"}
PLACEMENT: dict[str, Any] = {"node": "n1", "pid": 4, "start_ticks": 9, "sampled_as": "n1.lab", "source": "probe"}
RANK: dict[str, Any] = {"run_id": "r1", "rank": 0, "node": "n1", "pid": 7, "started_ns": 1}
INJECTION: dict[str, Any] = {
    "run_id": "r1",
    "kind": "rate_cap",
    "strength": 100.0,
    "unit": "Mbit/s",
    "node": "n1",
    "rank": 0,
    "started_ns": 5,
    "ended_ns": 9,
}


def test_a_run_record_becomes_a_run() -> None:
    more = {
        "world_size": 4,
        "configuration": {"lr": 0.1, "batch": 8, "fused": True, "optimiser": "adam"},
        "job_id": "12_3",
        "nodes": ["a", "b"],
        "started_ns": 5,
        "ended_ns": 9,
        "exit_code": 137,
        "command": ["torchrun", "träin.py"],
        "software": {"torch": "2.13"},
        "tags": {"who": "me"},
    }
    stated = {"accelerator": "NVIDIA H100 80GB HBM3", "accelerators_per_node": 8}
    lists = {"nodes": ("a", "b"), "command": ("torchrun", "träin.py")}
    assert run_of(RUN | more) == Run(**{**RUN, **more, **lists, "state": RunState.RUNNING})
    assert run_of(RUN | {"facts": stated}).facts == Facts(accelerator="NVIDIA H100 80GB HBM3", accelerators_per_node=8)


def test_a_rank_record_becomes_a_rank() -> None:
    assert rank_of(RANK | {"clock_offset_ns": -5}) == Rank("r1", 0, "n1", 7, 1, clock_offset_ns=-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_id": None}, "run record: run_id missing"),
        ({"run_id": "", "system": ""}, "run record: run_id, system missing"),
        ({"run_id": 5}, "run record: run_id is 5, expected str"),
        ({"run_id": "r" * 65}, "run_id is '" + "r" * 40 + "', expected 64 printable characters at most"),
        ({"workload": "w" * 201}, "expected 200 printable characters at most"),
        ({"workload": "clear\x1b[2J"}, "expected 200 printable characters at most"),
        ({"run_id": "r\x00"}, "expected 64 printable characters at most"),
        ({"state": "sleeping"}, "state 'sleeping' is not one of running, completed, failed, stopped, lost"),
        ({"world_size": True}, "world_size is True, expected int"),
        ({"world_size": -1}, "world_size is '-1', expected 0 to 2147483647"),
        ({"exit_code": 2**31}, "exit_code is '2147483648', expected 0 to 2147483647"),
        ({"started_ns": 2**63}, "expected 0 to 9223372036854775807"),
        ({"started_ns": -1}, "started_ns is '-1'"),
        ({"started_ns": 1.5}, "started_ns is 1.5, expected int"),
        ({"nodes": "n1"}, "nodes is 'n1', expected list"),
        ({"configuration": []}, "configuration is [], expected dict"),
        ({"configuration": {"a": {"b": 1}}}, "configuration.a is {'b': 1}, expected a number, text or boolean"),
        ({"configuration": {"a": None}}, "configuration.a is None"),
        ({"configuration": {"a": "x" * 5000}}, "expected a number, text or boolean of at most 4096 characters"),
        ({"tags": {"x" * 5000: "a"}}, "of at most 4096 characters"),
        ({"facts": ["H100"]}, "run record: facts is ['H100'], expected dict"),
        ({"facts": {"gpu": "H100"}}, "run record: fact 'gpu' is unknown, expected one of accelerator, accelerators"),
        ({"facts": {"node_count": 0}}, "run record: fact node_count is 0, expected a whole number from 1 to 10000000"),
        ({"colour": "red"}, "run record: unknown field 'colour'"),
    ],
)
def test_a_run_record_that_does_not_fit_is_refused_by_field_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as raised:
        run_of(RUN | change)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": None}, "rank record: rank missing"),
        ({"rank": -1}, "rank is '-1', expected 0 to 2147483647"),
        ({"pid": 2**40}, "expected 0 to 2147483647"),
        ({"rank": "0"}, "rank is '0', expected int"),
        ({"node": "n" * 256}, "expected 255 printable characters at most"),
        ({"host": "n1"}, "rank record: unknown field 'host'"),
    ],
)
def test_a_rank_record_that_does_not_fit_is_refused_by_field_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as raised:
        rank_of(RANK | change)
    assert message in str(raised.value)


def test_a_record_of_a_place_becomes_an_allocation_or_a_placement() -> None:
    assert allocation_of(ALLOCATION | {"gpus": ["0"], "uid": 2**32 - 2, "restart_count": 1}) == Allocation(
        "7", "n1", "n1.lab", Source.PROLOG, restart_count=1, uid=2**32 - 2, gpus=("0",)
    )
    assert placement_of(PLACEMENT | {"rank": 3, "gpus": []}) == Placement("n1", 4, 9, "n1.lab", Source.PROBE, rank=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job_id": ""}, "allocation record: job_id missing"),
        ({"sampled_as": None}, "allocation record: sampled_as missing"),
        ({"source": "gossip"}, "source 'gossip' is not one of environment, prolog, probe"),
        ({"started_ns": "5"}, "started_ns is '5', expected int"),
        ({"restart_count": 2**31}, "expected 0 to 2147483647"),
        ({"gpus": "0,1"}, "gpus is '0,1', expected list"),
        ({"gpus": [0]}, "gpus is [0], expected 64 short names at most"),
        ({"gpus": ["0"] * 65}, "expected 64 short names at most"),
        ({"gpus": ["x" * 81]}, "expected 64 short names at most"),
        ({"gpus": ["a\n"]}, "expected 64 short names at most"),
        ({"environ": "PATH=/"}, "allocation record: unknown field 'environ'"),
    ],
)
def test_an_allocation_that_does_not_fit_is_refused_by_field_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as raised:
        allocation_of(ALLOCATION | change)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start_ticks": None}, "placement record: start_ticks missing"),
        ({"pid": True}, "pid is True, expected int"),
        ({"local_rank": -1}, "expected 0 to 2147483647"),
        ({"step_id": "s" * 65}, "expected 64 printable characters at most"),
        ({"uid": 5}, "placement record: unknown field 'uid'"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused_by_field_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as raised:
        placement_of(PLACEMENT | change)
    assert message in str(raised.value)


def test_an_injection_record_becomes_what_was_injected() -> None:
    assert injection_of(INJECTION) == Injected("r1", "rate_cap", 100.0, "Mbit/s", "n1", 0, 5, 9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, "injection record: kind missing"),
        ({"strength": float("nan")}, "strength is nan, expected a finite number, 0 or more"),
        ({"strength": -0.5}, "strength is -0.5, expected a finite number, 0 or more"),
        ({"ended_ns": 4}, "ended_ns is 4, expected started_ns or later"),
        ({"kind": "k" * 65}, "expected 64 printable characters at most"),
        ({"job_id": "7"}, "injection record: unknown field 'job_id'"),
    ],
)
def test_an_injection_that_does_not_fit_is_refused_by_field_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedError) as raised:
        injection_of(INJECTION | change)
    assert message in str(raised.value)


def test_every_field_of_a_record_has_a_column_that_is_wide_enough() -> None:
    own = {
        "shared",
        "listed_ns",
        "cohort",
        "reversed_id",
    }  # what its owner says to the store, and what the store derives
    assert set(RUN_TYPES) == {column.name for column in tables.runs.c} - own
    assert set(RANK_TYPES) == {column.name for column in tables.ranks.c}
    assert set(ALLOCATION_TYPES) == {column.name for column in tables.allocations.c}
    assert set(PLACEMENT_TYPES) == {column.name for column in tables.placements.c}
    assert set(INJECTION_TYPES) == {column.name for column in tables.injections.c}
    every = (tables.runs, tables.ranks, tables.allocations, tables.placements, tables.injections)
    columns = [column for table in every for column in table.c if column.name not in own]
    widths = {column.name: width for column in columns if (width := getattr(column.type, "length", None))}
    del widths["state"], widths["source"]  # one of a few words
    assert widths == TEXT_LIMITS
