import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.injection import Applied, Injection, Truth
from crosswind.ingest.lab.injectors import INJECTORS, Target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "earthquake"}, "kind 'earthquake': expected one of rate_cap, packet_loss, latency,"),
        ({"rank": -1}, "rank -1, host 0: expected 0 or more"),
        ({"host": -1}, "rank 0, host -1: expected 0 or more"),
        ({"strength": math.nan}, "strength nan: cpu_hog expects 1 to 64 processes"),
        ({"strength": 0.0}, "strength 0: cpu_hog expects 1 to 64 processes"),
        ({"strength": 1.5}, "strength 1.5: cpu_hog expects a whole number of processes"),
        ({"kind": "packet_loss", "strength": 101.0}, "strength 101: packet_loss expects 0.001 to 100 %"),
        ({"kind": "rate_cap", "strength": math.inf}, "strength inf: rate_cap expects 1 to 100000 Mbit/s"),
    ],
)
def test_an_injection_that_cannot_be_is_never_made(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        replace(Injection("cpu_hog", 2.0, 0, 0), **change)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("kind", INJECTORS)
def test_every_kind_has_its_name_a_unit_and_limits(kind: str) -> None:
    lowest, highest = INJECTORS[kind].limits
    assert INJECTORS[kind].kind == kind
    assert INJECTORS[kind].unit
    assert 0 <= lowest < highest < math.inf


def test_the_truth_is_what_was_really_done(tmp_path: Path) -> None:
    conditions = Conditions.create(tmp_path / "conditions", 2)
    target = Target(Host("cwlab-1-2-abcdef", 0), (), 1, tmp_path, conditions)
    begin = time.time_ns()
    applied = Applied(Injection("slow_input", 12.5, 0, 1), target, "node7")
    assert conditions.get(1, "slow_input_ms") == 12.5
    began = time.time_ns()
    truth = applied.end()
    assert conditions.get(1, "slow_input_ms") == 0
    assert truth == Truth("slow_input", 12.5, "ms a batch", "node7", 1, truth.started_ns, truth.ended_ns)
    assert begin <= truth.started_ns <= began <= truth.ended_ns <= time.time_ns()
