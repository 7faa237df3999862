import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.errors import InvalidInputError
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts import Host
from crosswind.ingest.lab.injection import Applied, Injection, Truth
from crosswind.ingest.lab.injectors import INJECTORS, Target


@pytest.mark.parametrize(
    ("text", "injection"),
    [
        ("cpu_hog:1:2", Injection("cpu_hog", 2.0, 1, 1)),
        ("rate_cap:0:50@10", Injection("rate_cap", 50.0, 0, 0, 10.0)),
        ("latency:3:2.5@10-30.25", Injection("latency", 2.5, 3, 3, 10.0, 30.25)),
        ("pause:0:1@-20", Injection("pause", 1.0, 0, 0, None, 20.0)),
        ("slow_rank:0:1e-05@0-0.1", Injection("slow_rank", 1e-5, 0, 0, 0.0, 0.1)),
    ],
)
def test_an_injection_is_what_its_text_says(text: str, injection: Injection) -> None:
    assert Injection.parse(text) == injection
    assert str(injection) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected kind:rank:strength[@begin[-end]]"),
        ("cpu_hog:1", "expected kind:rank:strength[@begin[-end]]"),
        ("cpu_hog:1:2:3", "expected kind:rank:strength[@begin[-end]]"),
        ("earthquake:0:1", "kind 'earthquake': expected one of rate_cap, packet_loss, latency,"),
        ("cpu_hog:one:2", "rank 'one': expected a whole number from 0 on"),
        ("cpu_hog:-1:2", "rank '-1': expected a whole number from 0 on"),
        ("cpu_hog:1:much", "strength 'much': expected a number"),
        ("cpu_hog:1:nan", "strength 'nan': expected a number"),
        ("cpu_hog:1:0", "strength 0: cpu_hog expects 1 to 64 processes"),
        ("cpu_hog:1:1.5", "strength 1.5: cpu_hog expects a whole number of processes"),
        ("packet_loss:1:101", "strength 101: packet_loss expects 0.001 to 100 %"),
        ("rate_cap:1:1e400", "strength inf: rate_cap expects 1 to 100000 Mbit/s"),
        ("cpu_hog:1:2@", "times '': expected begin, begin-end or -end in seconds"),
        ("cpu_hog:1:2@soon", "times 'soon': expected begin, begin-end or -end in seconds"),
        ("cpu_hog:1:2@5-", "times '5-': expected begin, begin-end or -end in seconds"),
        ("cpu_hog:1:2@5-3", "end 3: expected seconds after the begin 5"),
        ("cpu_hog:1:2@-0", "end 0: expected seconds after the begin 0"),
        ("cpu_hog:1:2@1e400", "begin inf: expected seconds from 0 on"),
    ],
)
def test_what_is_no_injection_is_refused_with_its_field(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Injection.parse(text)
    assert str(raised.value).startswith(f"injection {text!r}: {message}")


@pytest.mark.parametrize(
    "change",
    [{"strength": math.nan}, {"rank": -1}, {"host": -1}, {"begin_seconds": math.nan}, {"end_seconds": math.nan}],
)
def test_an_injection_that_cannot_be_is_never_made(change: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        replace(Injection("cpu_hog", 2.0, 0, 0), **change)


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
