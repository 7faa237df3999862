"""Every measure for real on this machine, small."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.data.schema.checks import QUANTITIES, Measured
from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.preflight.check import Failed, check
from crosswind.ingest.preflight.disk import Disk, mount_point
from crosswind.ingest.preflight.gemm import Gemm
from crosswind.ingest.preflight.loop import Loop
from crosswind.ingest.preflight.measure import Bench, NodeMeasure, processor
from crosswind.ingest.preflight.measures import NODE_MEASURES, WEIGHTS, chosen, shares
from crosswind.ingest.preflight.memory import Memory
from crosswind.ingest.preflight.peers import Alone
from crosswind.ingest.probe.place import Place

SMALL: tuple[NodeMeasure, ...] = (Gemm(side=64), Memory(array_bytes=1 << 20), Disk(file_bytes=2 << 20), Loop(turns=100))
HERE = Place(0, 1, "n1", None)


@pytest.mark.parametrize("measure", SMALL, ids=lambda measure: measure.name)
def test_a_measure_gives_what_it_is_named_after(measure: NodeMeasure, tmp_path: Path) -> None:
    values = list(measure.measure(Bench("n1", tmp_path, 0.05)))
    assert values
    for value in values:
        assert value.node == "n1"
        assert value.value > 0
        assert value.measure.partition("_")[0] == measure.name or value.measure == "noise"
        assert value.measure in QUANTITIES
        assert value.method
    assert list(tmp_path.iterdir()) == []


def test_every_measure_is_tried_small() -> None:
    assert {type(measure) for measure in SMALL} == {type(measure) for measure in NODE_MEASURES}


def test_a_core_computes_what_cores_compute(tmp_path: Path) -> None:
    """From a core that others use too to the fastest node: no unit is off by a thousand."""
    [value] = [
        measured.value for measured in Gemm(side=512).measure(Bench("n1", tmp_path, 0.3)) if measured.device == "cpu"
    ]
    assert 1e8 < value < 1e14
    [value] = [measured.value for measured in Memory(array_bytes=1 << 24).measure(Bench("n1", tmp_path, 0.3))]
    assert 1e7 < value < 1e13


def test_a_measure_leaves_the_process_its_cores(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    list(Memory(array_bytes=1 << 20).measure(Bench("n1", tmp_path, 0.05)))
    assert os.sched_getaffinity(0) == allowed


def test_memory_that_is_not_there_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        list(Memory(array_bytes=1 << 55).measure(Bench("n1", tmp_path, 0.05)))


def test_noise_is_one_where_nothing_interrupts_and_never_less(tmp_path: Path) -> None:
    values = {measured.measure: measured.value for measured in Loop(turns=1000).measure(Bench("n1", tmp_path, 0.1))}
    assert values["noise"] >= 1
    assert 1e-6 < values["loop"] < 0.1


def test_a_hundred_times_the_work_takes_far_longer(tmp_path: Path) -> None:
    """However much faster the machine's cores became in between."""
    little, much = (
        next(iter(Loop(turns=turns).measure(Bench("n1", tmp_path, 0.1)))).value for turns in (2_000, 200_000)
    )
    assert much > 5 * little


def test_a_disk_is_known_by_its_mount_point(tmp_path: Path) -> None:
    assert os.path.ismount(mount_point(tmp_path))
    assert mount_point(Path("/proc/self")) == "/proc"


def test_a_processor_has_a_name_even_where_the_kernel_has_none(tmp_path: Path) -> None:
    assert processor(tmp_path / "missing") == os.uname().machine
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast 9000\nmodel name\t: Fast 9000\n")
    assert processor(tmp_path / "cpuinfo") == "Fast 9000"


def test_a_folder_that_cannot_be_written_fails_the_disk_and_nothing_else(tmp_path: Path) -> None:
    checked = check(Alone(HERE), ["loop", "disk"], tmp_path / "missing", 0.2)
    assert checked is not None
    assert {measured.measure for measured in checked.measured} == {"loop", "noise"}
    [failed] = checked.failed
    assert isinstance(failed, Failed)
    assert (failed.node, failed.measure) == ("n1", "disk")
    assert str(tmp_path / "missing") in failed.reason


def test_one_node_has_no_network_and_gives_its_time_to_the_rest() -> None:
    checked = check(Alone(HERE), ["loop", "pairs", "allreduce"], Path("/"), 0.1)
    assert checked is not None
    assert {measured.measure for measured in checked.measured} == {"loop", "noise"}
    assert checked.failed == ()


def test_the_time_is_shared_out_whole() -> None:
    assert sum(shares(tuple(WEIGHTS), 30.0).values()) == pytest.approx(30.0)
    assert shares(("disk",), 30.0) == {"disk": 30.0}


def test_some_can_be_chosen_and_others_are_refused() -> None:
    assert chosen(None) == tuple(WEIGHTS)
    assert chosen("disk, gemm") == ("gemm", "disk")
    for words, quoted in (("gem", "'gem'"), ("", "''"), ("disk,", "''"), ("x" * 999, "x" * 40)):
        with pytest.raises(InvalidInputError, match=quoted):
            chosen(words)


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, crosswind.cli.verbs.check; print([m for m in ('numpy', 'torch', 'mpi4py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_value_is_kept_whole_on_its_way_between_ranks() -> None:
    checked = check(Alone(HERE), ["loop"], Path("/"), 0.05)
    assert checked is not None
    assert all(isinstance(measured, Measured) for measured in checked.measured)
    assert checked.nodes == ("n1",)
