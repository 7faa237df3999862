"""Traces of several ranks, one at a time whole in memory: answers as of whole traces, and memory that stays small."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.traces.ranks import write_ranks
from tests.models.traces.made_traces import DLRM8, KINETO, read
from tests.needs import needs_data
from tests.traced_run import two_ranks

from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.clocks import clocks
from crosswind.models.traces.collectives import collectives
from crosswind.models.traces.critical_path import critical_path
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.pop import pop_of_devices
from crosswind.models.traces.several.compact import compact
from crosswind.models.traces.several.ranks_read import RanksRead, Several
from crosswind.models.traces.what_if.survey import what_ifs_of

PUBLISHED = {
    "dlrm8": DLRM8,
    "gloo2": ["gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"],
    "sampled2": [f"sampled2/sampled_rank-{rank}.json.gz" for rank in range(2)],
    "triton": ["triton_tiny.json.gz"],
    "host only": ["rank_missing.json.gz"],
}
MEGABYTES = 12  # of a rank's file
A_RANK = 3.0  # megabytes of memory that a further rank may take: activities of the graph and what its building takes
IN_ALL = 4.0  # times the largest file, above what the imports take, without the ranks' own


@needs_data(KINETO)
@pytest.mark.parametrize("name", PUBLISHED)
def test_answers_of_several_ranks_are_those_of_whole_traces(name: str) -> None:
    check(read(*PUBLISHED[name]))


def test_answers_of_two_made_ranks_are_those_of_whole_traces() -> None:
    check(two_ranks())


def check(whole: list[RankTrace]) -> None:
    """Assert that compact traces give the same activities, path, and replays."""
    several = Several.of(iter(whole))
    matched, other = collectives(whole), several.collectives
    assert (matched.operation, matched.missing, matched.notes) == (other.operation, other.missing, other.notes)
    assert np.array_equal(matched.begin_ns, other.begin_ns)
    assert np.array_equal(matched.bytes, other.bytes)
    assert np.array_equal(clocks(whole).offset_ns, several.clocks.offset_ns)
    made = graph(whole)
    for column in ("begin_ns", "duration_ns", "work", "rank", "part", "step", "before", "lag_work"):
        assert np.array_equal(getattr(made.activities, column), getattr(several.graph.activities, column)), column
    assert critical_path(whole).by_name() == critical_path(several.traces).by_name()
    assert what_ifs_of(whole) == what_ifs_of(several.traces)


def test_a_compact_trace_is_smaller_and_its_efficiency_is_the_same() -> None:
    whole = two_ranks()
    parts = RanksRead.of(iter(whole))
    assert pop_of_devices(parts.several.traces, uses=[one.devices for one in parts.parts]) == pop_of_devices(whole)
    assert sum(len(compact(trace).events) for trace in whole) < sum(len(trace.events) for trace in whole)
    assert set(compact(whole[0]).names) < set(whole[0].names)


@pytest.mark.thorough
def test_memory_of_the_command_hardly_grows_with_the_ranks(tmp_path: Path) -> None:
    write_ranks(tmp_path / "all", 32, megabytes=MEGABYTES, recorded=tmp_path / "absent")
    peaks = {count: peak(tmp_path, count) for count in (2, 8, 32)}
    for few, many in ((2, 8), (8, 32)):
        assert peaks[many] - peaks[few] <= A_RANK * (many - few), peaks
    largest = max(path.stat().st_size for path in (tmp_path / "all").iterdir()) / 2**20
    assert peaks[8] - peak(tmp_path, 0) <= IN_ALL * largest + A_RANK * 8, peaks


def peak(folder: Path, count: int) -> float:
    """Return the most memory, MiB, of a command that reports on so many ranks; of its refusal with none."""
    some = folder / f"some{count}"
    some.mkdir()
    for rank in range(count):
        (some / f"rank{rank}.json").symlink_to(folder / "all" / f"rank{rank}.json")
    code = (
        "import json, resource, sys; from crosswind.cli.main import main; import crosswind.models.traces.report;"
        " main(sys.argv[1:]); print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))"
    )
    command = [sys.executable, "-c", code, "trace", str(some), "--json"]
    environment = os.environ | {"CROSSWIND_HOME": str(folder / "home")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(json.loads(done.stdout.splitlines()[-1]))
