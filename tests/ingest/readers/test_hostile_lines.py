"""Lines made to be tried over and over: a megabyte of them must not take longer than any other megabyte."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.telemetry.dcgmi_dmon import DcgmiDmonReader
from crosswind.ingest.readers.telemetry.influx import InfluxReader
from crosswind.ingest.readers.telemetry.mlperf_power import MlperfPowerReader
from crosswind.ingest.readers.telemetry.nvidia_smi import NvidiaSmiReader
from crosswind.ingest.readers.telemetry.prometheus import PrometheusReader
from crosswind.ingest.series.sample_values import LINE, NUMBER
from crosswind.ingest.series.series_text import parsed_series

COUNT = 200_000  # of quadratic ones, 20 000 took seconds
SECONDS = 1.0
BLANKS = " " * COUNT


@pytest.mark.parametrize(
    "line",
    [
        f"{BLANKS}!",
        f"a{BLANKS}!",
        f'a{{}}{BLANKS}"',
        f"a 1{BLANKS}#!",
        f"a 1{BLANKS}2{BLANKS}#!",
        "a 1" + " #" * COUNT,
        "a " + "1" * COUNT + " 1 x",
        "a{" + '\\"' * COUNT,
        "a{" + '"a"' * COUNT,
    ],
    ids=lambda line: f"{line[:3]}..{line[-3:]}",
)
def test_a_line_that_is_no_sample_is_found_out_at_once(line: str) -> None:
    def is_none() -> bool:
        match = LINE.fullmatch(line)
        return match is None or NUMBER.fullmatch(match[3]) is None

    assert took(is_none) < SECONDS


@pytest.mark.parametrize(
    "text", [f"a{{b{BLANKS}!}}", f'a{{b="1",{BLANKS}!}}', f'a{{b="1"{BLANKS}!}}', f'a{{b ={BLANKS}"']
)
def test_a_series_with_labels_in_bad_form_is_found_out_at_once(text: str) -> None:
    def is_refused() -> bool:
        with pytest.raises(MalformedError):
            parsed_series(text)
        return True

    assert took(is_refused) < SECONDS


def test_a_number_that_is_none_is_found_out_at_once() -> None:
    assert took(lambda: NUMBER.fullmatch("1" * COUNT + "x") is None) < SECONDS
    assert took(lambda: NUMBER.fullmatch("1e" + "1" * COUNT + "x") is None) < SECONDS


@pytest.mark.parametrize(
    "head",
    [
        f"#Entity A{BLANKS}x",
        f"#Entity{' A' * COUNT}x",
        "#" * COUNT + "x",
        "# Entity " * (COUNT // 9) + "x",
        "a" + ",b=c" * COUNT + " x",
        f"a b=1{BLANKS}x",
        'a b="' * COUNT,
        ":::MLLOG {" + '"key": "power_reading"' * (COUNT // 20),
        "timestamp, " * COUNT,
    ],
    ids=lambda head: head[:12],
)
def test_a_head_of_no_format_is_nobodys_at_once(head: str) -> None:
    readers = (DcgmiDmonReader(), InfluxReader(), MlperfPowerReader(), NvidiaSmiReader(), PrometheusReader())
    for reader in readers:
        assert took(lambda: not reader.recognises(Path("a"), head.encode()[: 1 << 16] + b"\n")) < SECONDS  # noqa: B023


def took(is_so: Callable[[], bool]) -> float:
    """CPU time of the best of five turns: a busy machine makes one slow, hardly five."""
    return min(turn(is_so) for _ in range(5))


def turn(is_so: Callable[[], bool]) -> float:
    begun = time.process_time()
    assert is_so()
    return time.process_time() - begun
