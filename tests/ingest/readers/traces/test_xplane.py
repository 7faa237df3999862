"""XLA's profiles give a trace for each device, with the host's events."""

import contextlib
import gzip
import random
from pathlib import Path

import pytest
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import Kind
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.ingest.readers.traces.xplane import XplaneReader

RECORDED = Path(__file__).parents[2] / "recorded/xplane_cuda"
SHARED = Path(__file__).parents[5] / "shared/data/traces/xplane"


def test_a_recorded_profile_has_the_kernels_of_its_json() -> None:
    [trace] = read_traces([RECORDED / "two_steps.xplane.pb.gz"])
    [other] = read_traces([RECORDED / "two_steps.trace.json.gz"])
    kernels, others = trace.events.on_device(), other.events.on_device()
    assert sorted(trace.names_of(kernels)) == sorted(other.names_of(others))
    assert kernels.duration_ns.sum() == pytest.approx(others.duration_ns.sum(), rel=1e-3)
    assert (kernels.correlation > 0).all()
    assert trace.node == "vm"


def test_damaged_ones_are_read_or_are_an_error(tmp_path: Path) -> None:
    content = gzip.decompress((RECORDED / "two_steps.xplane.pb.gz").read_bytes())
    chance = random.Random(1)
    for number in range(40):
        damaged = bytearray(content)
        for _ in range(number):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path = tmp_path / "a.xplane.pb"
        path.write_bytes(damaged[: len(damaged) - number * 100])
        with contextlib.suppress(MalformedError):
            list(XplaneReader().read(path, Report(str(path), "xplane")))


def test_a_profile_that_is_cut_off_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(gzip.decompress((RECORDED / "two_steps.xplane.pb.gz").read_bytes())[:1000])
    with pytest.raises(MalformedError, match=r"a\.xplane\.pb: protobuf: .*cut off"):
        list(XplaneReader().read(path, Report(str(path), "xplane")))


@needs_data(SHARED)
def test_each_device_of_a_host_is_a_rank() -> None:
    traces = read_traces([SHARED / "mi300_jax_conv.xplane.pb"])
    assert [trace.rank for trace in traces] == list(range(8))
    assert [len(trace.events.on_device()) for trace in traces] == [60] + [25] * 7
    [trace] = read_traces([SHARED / "te_fused_attention.xplane.pb"])
    assert len(trace.events.on_device()) == 150
    assert len(trace.events.of(Kind.FRAME)) == 1692
